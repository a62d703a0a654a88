//! Percentiles in windows against a judge that counts request by request.

use model::{Observation, Observations, Op, PerStage, RequestOutcome, Slo};
use proptest::prelude::*;
use units::{Bytes, Nanos};
use verify::{Findings, ServiceAgreement, SloWindow, Verdict, WorkFunction, examine};

const WINDOW: Nanos = Nanos(1_000_000_000);

/// Requests of two workloads: instant in milliseconds, workload, and latency in milliseconds, none where lost.
type Run = Vec<(u64, u32, Option<u64>)>;

fn observations(run: &Run) -> Observations {
    let mut run = run.clone();
    run.sort_by_key(|(at, ..)| *at);
    let request = |&(at, workload, latency): &(u64, u32, Option<u64>)| {
        let intended = Nanos(at * 1_000_000);
        let outcome = match latency {
            Some(ms) => RequestOutcome::Done(intended + Nanos(ms * 1_000_000)),
            None => RequestOutcome::Lost,
        };
        Observation { workload, op: Op::Read, size: Bytes(1), intended, sent: intended, outcome }
    };
    Observations {
        workloads: vec!["a".into(), "b".into()],
        stages: Vec::new(),
        requests: run.iter().map(request).collect(),
        stage_times: Vec::new(),
    }
}

fn windows(run: &Run, slo: Slo) -> Findings {
    let agreement = ServiceAgreement::slo_only("a", slo);
    let observations = observations(run);
    let work = |_: &ServiceAgreement| -> WorkFunction<'static> { Box::new(|_| PerStage::from_fn(|_| None)) };
    examine(&observations, &[agreement], 0.95, &work).with_windows(&observations, WINDOW)
}

/// The definition: in each whole window, the smallest latency that enough requests do not exceed.
fn counted(run: &Run, percent: f64, slo_ms: u64) -> Vec<(u64, u64, Option<u64>, Verdict)> {
    let first = run.iter().map(|(at, ..)| *at).min().unwrap_or(0);
    let last = run.iter().map(|(at, ..)| *at).max().unwrap_or(0);
    let mut windows = Vec::new();
    let mut from = first;
    while from + 1000 <= last {
        let inside =
            run.iter().filter(|(at, workload, _)| *workload == 0 && (from..from + 1000).contains(at));
        let latencies: Vec<u64> = inside.map(|(.., latency)| latency.unwrap_or(u64::MAX)).collect();
        let count = latencies.len() as u64;
        let over = latencies.iter().filter(|latency| **latency > slo_ms).count() as u64;
        let enough = |limit: u64| {
            latencies.iter().filter(|latency| **latency <= limit).count() as f64
                >= percent / 100.0 * count as f64
        };
        let measured = latencies.iter().copied().filter(|limit| enough(*limit)).min();
        let verdict = match measured {
            Some(limit) if percent >= 100.0 && limit > slo_ms => Verdict::NotMet,
            Some(limit) if count as f64 * (100.0 - percent) >= 100.0 => {
                if limit <= slo_ms {
                    Verdict::Met
                } else {
                    Verdict::NotMet
                }
            }
            _ => Verdict::TooFew,
        };
        windows.push((count, over, measured.filter(|limit| *limit < u64::MAX), verdict));
        from += 1000;
    }
    windows
}

fn milliseconds(window: &SloWindow) -> (u64, u64, Option<u64>, Verdict) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds of the test")]
    let measured = window.measured_s.map(|seconds| (seconds * 1000.0).round() as u64);
    (window.requests, window.over, measured, window.verdict)
}

proptest! {
    #[test]
    fn windows_are_those_of_the_definition(
        run in proptest::collection::vec((0u64..5000, 0u32..2, proptest::option::weighted(0.97, 0u64..60)), 0..250),
    ) {
        for (slo, percent) in [("90% < 40ms", 90.0), ("50% < 20ms", 50.0), ("100% < 20ms", 100.0)] {
            let findings = windows(&run, slo.parse().expect("an SLO"));
            let found: Vec<_> = findings.workloads[0].windows.iter().map(milliseconds).collect();
            let slo_ms = if percent == 90.0 { 40 } else { 20 };
            prop_assert_eq!(found, counted(&run, percent, slo_ms));
        }
    }
}

#[test]
fn one_bad_window_does_not_hide_in_the_run() {
    let mut run: Run = (0..20_000).map(|at| (at, 0, Some(1))).collect();
    run[5000..5010].iter_mut().for_each(|(.., latency)| *latency = Some(900));
    run.push((20_000, 1, Some(1)));
    let findings = windows(&run, "99.9% < 100ms".parse().expect("an SLO"));
    let found = &findings.workloads[0];
    assert!(
        found.judgement.measured_s.is_some_and(|seconds| seconds < 0.1),
        "10 of 20,000 are fewer than 0.1 %"
    );
    let missed: Vec<f64> = found
        .windows
        .iter()
        .filter(|window| window.verdict == Verdict::NotMet)
        .map(|window| window.from_s)
        .collect();
    assert_eq!((found.windows.len(), missed), (20, vec![5.0]));
    assert_eq!(findings.window_s, Some(1.0));
}

#[test]
fn a_run_shorter_than_a_window_has_none() {
    let findings = windows(&vec![(0, 0, Some(1)), (900, 0, Some(1))], "50% < 1s".parse().expect("an SLO"));
    assert!(findings.workloads[0].windows.is_empty());
}
