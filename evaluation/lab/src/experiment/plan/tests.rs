use super::*;
use crate::device::{EmulatedSsd, LinearServiceTime, SsdModel};
use crate::experiment::{EXPERIMENTS, PolicyName, find_experiment, forecast};
use proptest::prelude::*;
use verify::Verdict;

fn model() -> SsdModel {
    SsdModel {
        channels: 2,
        read: LinearServiceTime::new(Nanos(1000), 10),
        write: LinearServiceTime::new(Nanos(2000), 20),
        bandwidth: None,
    }
}

fn request(arrival: u64, op: Op, size: u64) -> Request {
    Request { arrival: Nanos(arrival), size: Bytes(size), op, offset: None, response: None }
}

prop_compose! {
    fn any_requests()(gaps in prop::collection::vec((1u64..100_000, any::<bool>(), 1u64..4), 2..60)) -> Vec<Request> {
        let mut at = 7;
        gaps.into_iter().map(|(gap, reads, pages)| {
            at += gap;
            request(at, if reads { Op::Read } else { Op::Write }, pages * 4096)
        }).collect()
    }
}

fn profile() -> StorageProfile {
    model().profile(&[4096, 8192, 12288].map(Bytes))
}

proptest! {
    #[test]
    fn a_scaled_trace_is_the_load_that_was_asked_for(requests in any_requests(), load in 0.01f64..0.9) {
        let scaled = ScaledTrace::with_device_load(requests.clone(), &profile(), load).unwrap();
        let period = scaled.trace.period();
        // Device time by the model itself, over many rounds.
        let busy: u64 = requests.iter().map(|r| model().service_time(r.op, r.size).0).sum();
        let share = busy as f64 / 2.0 / period.0 as f64;
        prop_assert!((share / load - 1.0).abs() < 1e-3, "{share} for {load}");
        // Gaps keep their proportions, across rounds, too.
        let two = scaled.trace.until(Nanos(2 * period.0));
        prop_assert_eq!(two.len(), 2 * requests.len());
        for (at, pair) in requests.windows(2).enumerate() {
            let was = (pair[1].arrival - pair[0].arrival).0 as f64 * scaled.time_scale;
            for base in [at, at + requests.len()] {
                let is = (two[base + 1].arrival - two[base].arrival).0 as f64;
                prop_assert!((is - was).abs() <= 2.0, "{is} for {was}");
            }
        }
    }

    /// The device itself, served in order of priority by as many requests as the proxy sends, keeps the bounds.
    #[test]
    fn no_latency_exceeds_its_bound(
        first in any_requests(), second in any_requests(), load in 0.05f64..0.45, shift in 0u64..1_000_000,
    ) {
        let outstanding = 4;
        let sent = [first, second]
            .map(|requests| ScaledTrace::with_device_load(requests, &profile(), load).unwrap());
        let curve = |sent: &ScaledTrace| {
            let jobs = sent.storage_jobs(&profile());
            WorstCase { reshaping: Reshaping::EveryStage }.sketch(&jobs).curve(Stage::Storage).clone()
        };
        let tenant = |sent: &ScaledTrace| AnalysedTenant {
            name: "tenant".to_owned(),
            curve: curve(sent),
            largest: longest_work(sent.trace.items(), &profile()),
        };
        let queue = DeviceQueue { channels: 2, outstanding, reserve: 0 };
        let analysis = DeviceAnalysis::new(sent.iter().map(tenant).collect(), queue, 0.0);
        let end = Nanos(3 * sent[0].trace.period().max(sent[1].trace.period()).0);
        let mut all: Vec<(usize, Request)> = sent[0].trace.until(end).into_iter().map(|r| (0, r)).collect();
        all.extend(sent[1].trace.until(end).into_iter().map(|mut r| {
            r.arrival = r.arrival + Nanos(shift);
            (1, r)
        }));
        all.sort_by_key(|(_, request)| request.arrival);
        let bounds = [analysis.bound(0, &[]), analysis.bound(1, &[0])];
        for (level, latency) in served(&all, outstanding as usize) {
            prop_assert!(latency.as_secs() <= bounds[level], "{latency} at level {level}: {bounds:?}");
        }
    }
}

/// Returns levels and latencies of requests that go to the device by priority, at most `outstanding` at a
/// time.
fn served(all: &[(usize, Request)], outstanding: usize) -> Vec<(usize, Nanos)> {
    let mut device = EmulatedSsd::new(model());
    let mut waiting = [std::collections::VecDeque::new(), std::collections::VecDeque::new()];
    let mut completions: Vec<Nanos> = Vec::new();
    let mut latencies = Vec::new();
    let mut next = 0;
    loop {
        // The next thing that happens: an arrival or a completion.
        let arrives = all.get(next).map(|(_, request)| request.arrival);
        let ends = completions.iter().min().copied();
        let now = match (arrives, ends) {
            (Some(arrives), Some(ends)) => arrives.min(ends),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return latencies,
        };
        completions.retain(|end| *end > now);
        while let Some((level, request)) = all.get(next).filter(|(_, request)| request.arrival <= now) {
            waiting[*level].push_back(*request);
            next += 1;
        }
        while completions.len() < outstanding {
            let Some(level) = (0..2).find(|&level| !waiting[level].is_empty()) else { break };
            let request = waiting[level].pop_front().expect("it is not empty");
            let end = device.submit(now, request.op, request.size);
            latencies.push((level, end - request.arrival));
            completions.push(end);
        }
    }
}

#[test]
fn a_trace_that_begins_elsewhere_is_the_same_sequence() {
    let requests = [3, 5, 11, 12].map(|at| request(at * 1000, Op::Read, 4096)).to_vec();
    let scaled = ScaledTrace::with_load(requests, 1e-6, 0.1).unwrap();
    let rotated = scaled.clone().rotated_to(2);
    assert_eq!(rotated.trace.items()[0].arrival, Nanos::ZERO);
    let gaps = |scaled: &ScaledTrace| {
        let all = scaled.trace.until(Nanos(2 * scaled.trace.period().0));
        all.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).0).collect::<Vec<_>>()
    };
    assert_eq!(gaps(&rotated)[..5], gaps(&scaled)[2..7]);
}

#[test]
fn plans_of_all_experiments_admit_what_they_promise() {
    let Some(traces) = testkit::shared("traces") else { return };
    for experiment in EXPERIMENTS {
        let planned = ExperimentPlan::new(experiment, &traces).unwrap_or_else(|error| panic!("{error}"));
        for case in &planned.cases {
            // Only where SLOs do not follow from bounds can a tenant be refused.
            let requested = matches!(case.case.slos, SloRule::Requested(_));
            assert!(case.admits_all || requested, "{} {}", experiment.name, case.case.name);
            for workload in case.policy.workloads.iter().filter(|workload| workload.admitted) {
                assert!(
                    workload.bound_s.is_some_and(|bound| bound <= workload.slo.latency.0),
                    "{}",
                    workload.name
                );
                assert!(!workload.limits.is_empty());
            }
        }
    }
}

#[test]
fn whoever_misbehaves_is_planned_as_if_it_did_not() {
    let Some(traces) = testkit::shared("traces") else { return };
    let planned = ExperimentPlan::new(find_experiment("fig-3.6").unwrap(), &traces).unwrap();
    let [behaved, flooding] = &planned.cases[..] else { panic!("two cases") };
    assert_eq!((&behaved.policy, behaved.admits_all), (&flooding.policy, flooding.admits_all));
    let faster = behaved.sent[0].trace.period().0 as f64 / flooding.sent[0].trace.period().0 as f64;
    assert!((faster - 11.0).abs() < 1e-3, "{faster}");
}

#[test]
fn a_folder_without_traces_says_what_to_do() {
    let experiment = find_experiment("fig-3.3").unwrap();
    let error = ExperimentPlan::new(experiment, Path::new("/nonexistent")).expect_err("no traces");
    assert!(error.hint.as_deref().unwrap_or_default().contains("--data"), "{error}");
}

/// Every other policy breaks an SLO that counts and that the protecting policy keeps, and the default
/// length of the experiment decides all of them.
#[test]
fn every_other_policy_breaks_what_the_analysis_keeps() {
    let experiment = find_experiment("policies").unwrap();
    let planned = ExperimentPlan::new(experiment, Path::new("/nonexistent")).expect("no trace is read");
    let verdicts = |case: &CasePlan, policy| {
        let found = forecast(&planned, case, policy, experiment.warm_up, experiment.duration);
        let found = found.into_iter().enumerate();
        found
            .filter(|(at, _)| case.promises(*at))
            .map(|(_, found)| found.judgement.verdict)
            .collect::<Vec<_>>()
    };
    for policy in experiment.policies.iter().copied() {
        let all: Vec<_> = planned.cases.iter().flat_map(|case| verdicts(case, policy)).collect();
        let ours = policy == PolicyName::Tailwright;
        let broken = all.contains(&Verdict::NotMet);
        assert!(ours != broken, "{}: {all:?}", policy.name());
        assert!(!ours || all.iter().all(|verdict| *verdict == Verdict::Met), "{all:?}");
    }
}

/// A pulse that is cut at the end of the trace continues at its beginning.
#[test]
fn a_pulse_train_repeats_without_a_seam() {
    let planned =
        ExperimentPlan::new(find_experiment("policies").unwrap(), Path::new("/nonexistent")).unwrap();
    let sent = &planned.cases[0].sent[1].trace;
    let twice = sent.until(Nanos(2 * sent.period().0));
    let gaps: Vec<u64> = twice.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).0).collect();
    let shortest = gaps.iter().min().unwrap();
    let longest = gaps.iter().max().unwrap();
    let pauses: Vec<usize> = (0..gaps.len()).filter(|&at| gaps[at] > longest / 2).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] - pair[0] == 400), "{pauses:?}");
    // At the end of the trace the next request follows after one mean gap.
    assert!(gaps.iter().all(|gap| *gap < 3 * shortest || *gap > longest / 2));
}
