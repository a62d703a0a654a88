//! A whole run against slow and obvious judges.

use model::{Observation, Observations, Op, PerStage, RateLimit, Request, RequestOutcome, Stage, StageLimit};
use proptest::prelude::*;
use units::{Bytes, Nanos};
use verify::{
    Finding, Findings, Judgement, LagSummary, LimitFinding, OverallVerdict, ServiceAgreement, Verdict,
    WorkFunction, examine, judge,
};

const LIMITS: [(Stage, f64, f64); 3] =
    [(Stage::NetworkIn, 2000.0, 60.0), (Stage::Storage, 0.5, 0.02), (Stage::NetworkOut, 1000.0, 40.0)];

fn agreement(name: &str) -> ServiceAgreement {
    let limit = |(stage, rate_per_s, burst_work)| StageLimit {
        rate_per_s,
        burst_work,
        ..StageLimit::new(stage, RateLimit::default(), 0.0)
    };
    let limits = LIMITS.map(limit).to_vec();
    ServiceAgreement {
        bound_s: Some(0.05),
        covers_every_request: true,
        limits,
        ..ServiceAgreement::slo_only(name, "90% < 60ms".parse().unwrap())
    }
}

/// Bytes on the network; 1 ms on the device, and one more for a write.
fn needs(request: &Request) -> PerStage<Option<f64>> {
    let storage = if request.op == Op::Write { 0.002 } else { 0.001 };
    PerStage::from_fn(|stage| Some(if stage == Stage::Storage { storage } else { request.size.0 as f64 }))
}

fn work(_: &ServiceAgreement) -> WorkFunction<'static> {
    Box::new(needs)
}

/// Returns, for each arrival, the largest work of any interval that ends with it, less what the rate
/// allows.
fn levels(arrivals: &[(Nanos, f64)], rate: f64) -> Vec<f64> {
    let excess = |from: usize, until: usize| {
        let sum: f64 = arrivals[from..=until].iter().map(|(_, amount)| amount).sum();
        sum - rate * (arrivals[until].0 - arrivals[from].0).as_secs()
    };
    (0..arrivals.len()).map(|until| (0..=until).map(|from| excess(from, until)).fold(0.0, f64::max)).collect()
}

/// By limit, the levels of requests in order of arrival.
fn all_levels(requests: &[&Observation], arrival: fn(&Observation) -> Nanos) -> Vec<Vec<f64>> {
    let mut ordered = requests.to_vec();
    ordered.sort_by_key(|at| arrival(at));
    let request = |at: &Observation| {
        let size = at.size;
        let op = at.op;
        Request { arrival: arrival(at), size, op, offset: None, response: None }
    };
    let amounts = |stage: Stage| {
        let amount = |at: &&Observation| (arrival(at), needs(&request(at))[stage].unwrap());
        ordered.iter().map(amount).collect::<Vec<_>>()
    };
    LIMITS.iter().map(|(stage, rate, _)| levels(&amounts(*stage), *rate)).collect()
}

fn agree(found: &[LimitFinding], levels: &[Vec<f64>]) -> bool {
    let largest = |levels: &Vec<f64>| levels.iter().copied().fold(0.0, f64::max);
    found.iter().zip(levels).all(|(limit, levels)| {
        let needed = largest(levels);
        (limit.needed_burst - needed).abs() < 1e-9
            && (limit.kept == (needed <= limit.burst) || (needed - limit.burst).abs() < 1e-6)
    })
}

prop_compose! {
    /// Of two workloads. Sending reorders requests.
    fn runs()(rows in prop::collection::vec(
        (0u64..20, 0u32..2, any::<bool>(), 1u64..50, 0u64..30, prop::option::weighted(0.9, 1u64..100)), 1..40,
    )) -> Observations {
        let mut now = 0;
        let row = |(gap, workload, is_write, size, late, latency): (u64, u32, bool, u64, u64, Option<u64>)| {
            now += gap;
            let ms = |at: u64| Nanos(at * 1_000_000);
            let outcome = latency.map_or(RequestOutcome::Lost, |latency| RequestOutcome::Done(ms(now + latency)));
            let op = if is_write { Op::Write } else { Op::Read };
            Observation { workload, op, size: Bytes(size), intended: ms(now), sent: ms(now + late), outcome }
        };
        let requests = rows.into_iter().map(row).collect();
        Observations { workloads: vec!["a".into(), "b".into()], requests, ..Observations::default() }
    }
}

proptest! {
    #[test]
    fn every_workload_is_judged_by_its_own_requests(run in runs()) {
        let found = examine(&run, &[agreement("b"), agreement("c")], 0.9, &work);
        let own: Vec<&Observation> = run.requests.iter().filter(|at| at.workload == 1).collect();
        let judged = judge(own.iter().map(|at| at.latency()), agreement("b").slo, 0.9);
        let b = &found.workloads[0];
        prop_assert_eq!((b.judgement.requests, b.judgement.over), (own.len() as u64, judged.over));
        prop_assert_eq!(b.judgement.measured_s, judged.measured_s);
        let meant = all_levels(&own, |at| at.intended);
        prop_assert!(agree(&b.limits, &meant), "{:?} {meant:?}", b.limits);
        prop_assert!(agree(&b.sent_limits, &all_levels(&own, |at| at.sent)));
        // Beyond the bound: counted by hand; within limits: where no level is above its burst.
        let beyond: Vec<usize> = (0..own.len())
            .filter(|at| own[*at].latency().is_none_or(|at| at > Nanos(50_000_050)))
            .collect();
        let clear = |at: usize| meant.iter().zip(LIMITS).all(|(levels, limit)| (levels[at] - limit.2).abs() > 1e-6);
        let within = |at: &&usize| meant.iter().zip(LIMITS).all(|(levels, limit)| levels[**at] <= limit.2);
        let bound = b.bound.unwrap();
        prop_assert_eq!(bound.beyond, beyond.len() as u64);
        if beyond.iter().all(|at| clear(*at)) {
            prop_assert_eq!(bound.beyond_within_limits, beyond.iter().filter(within).count() as u64);
        }
        // A bound is broken by a slow request, measured from its sending, of a workload that kept all
        // limits, as intended and as sent.
        let kept = |levels: &[Vec<f64>]| levels.iter().zip(LIMITS).all(|(levels, limit)| levels.iter().all(|at| *at <= limit.2));
        let slow = own.iter().filter(|at| matches!(at.outcome, RequestOutcome::Done(done) if done.saturating_sub(at.sent) > Nanos(50_000_050)));
        if (0..own.len()).all(clear) && !own.is_empty() {
            let broken = if kept(&meant) && kept(&all_levels(&own, |at| at.sent)) { slow.count() as u64 } else { 0 };
            prop_assert!(bound.broken == broken || !b.sent_limits.iter().all(|at| at.kept), "{} {broken}", bound.broken);
        }
        // Workload c was not observed, and a has no agreement.
        let unseen = found.workloads[1].judgement;
        prop_assert!(unseen.requests == 0 && unseen.verdict == Verdict::TooFew);
        prop_assert_eq!(found.unjudged.iter().map(|at| at.name.as_str()).collect::<Vec<_>>(), ["a"]);
        prop_assert_eq!(found.unjudged[0].requests, run.requests.len() as u64 - b.judgement.requests);
        let read: Findings = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
        prop_assert_eq!(read, found);
    }
}

#[test]
fn a_broken_bound_is_never_met() {
    let run = |latency_ms: u64| {
        let request = |at: u64| Observation {
            workload: 0,
            op: Op::Read,
            size: Bytes(1),
            intended: Nanos(at * 1_000_000_000),
            sent: Nanos(at * 1_000_000_000),
            // The first request takes `latency_ms`, all others one millisecond.
            outcome: RequestOutcome::Done(Nanos(
                at * 1_000_000_000 + if at == 0 { latency_ms } else { 1 } * 1_000_000,
            )),
        };
        let requests = (0..500).map(request).collect();
        Observations { workloads: vec!["b".into()], requests, ..Observations::default() }
    };
    let found = |latency_ms, covers_every_request| {
        let agreement = ServiceAgreement { covers_every_request, ..agreement("b") };
        examine(&run(latency_ms), &[agreement], 0.9, &work)
    };
    let broken = found(51, true);
    assert_eq!(
        (broken.overall(), broken.workloads[0].judgement.verdict),
        (OverallVerdict::BoundBroken, Verdict::Met)
    );
    assert!(broken.workloads[0].is_bound_broken());
    assert_eq!(found(50, true).overall(), OverallVerdict::AllMet);
    // A bound of a percentile may be exceeded.
    assert_eq!(found(51, false).overall(), OverallVerdict::AllMet);
}

fn overall(verdicts: &[(Verdict, bool, bool)]) -> OverallVerdict {
    let slo = "90% < 60ms".parse().unwrap();
    let one = |(verdict, admitted, late): &(Verdict, bool, bool)| {
        let at_percentile = Nanos(if *late { 7_000_000 } else { 0 });
        let lag = LagSummary { median: Nanos(0), at_percentile, max: at_percentile };
        let found = Finding::from_judgement("w", None, judge([], slo, 0.95));
        let judgement = Judgement { verdict: *verdict, ..found.judgement };
        Finding { judgement, admitted: *admitted, ..found }.with_lag(Some(lag))
    };
    Findings {
        confidence: 0.95,
        window_s: None,
        workloads: verdicts.iter().map(one).collect(),
        unjudged: Vec::new(),
    }
    .overall()
}

#[test]
fn the_worst_that_is_certain_decides() {
    use Verdict::{Met, NotMet, TooFew};
    assert_eq!(overall(&[]), OverallVerdict::AllMet);
    assert_eq!(overall(&[(Met, true, false), (NotMet, false, false)]), OverallVerdict::AllMet);
    assert_eq!(overall(&[(Met, true, false), (TooFew, true, false)]), OverallVerdict::TooFew);
    assert_eq!(overall(&[(TooFew, true, false), (Met, true, true)]), OverallVerdict::Spoiled);
    assert_eq!(overall(&[(Met, true, true), (NotMet, true, false)]), OverallVerdict::SomeNotMet);
    // The lag of a generator is not a miss of the system.
    assert_eq!(overall(&[(NotMet, true, true)]), OverallVerdict::Spoiled);
}
