use super::*;
use crate::device::{Cost, Device};
use crate::experiment::{EXPERIMENTS, find};
use proptest::prelude::*;

fn model() -> Model {
    Model {
        channels: 2,
        read: Cost::new(Nanos(1000), 10),
        write: Cost::new(Nanos(2000), 20),
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
        let demand = Demand::scaled(requests.clone(), &profile(), load).unwrap();
        // Device time by the model itself, over many rounds.
        let busy: u64 = requests.iter().map(|r| model().service(r.op, r.size).0).sum();
        let share = busy as f64 / 2.0 / demand.period.0 as f64;
        prop_assert!((share / load - 1.0).abs() < 1e-3, "{share} for {load}");
        // Gaps keep their proportions, across rounds, too.
        let two = demand.until(Nanos(2 * demand.period.0));
        prop_assert_eq!(two.len(), 2 * requests.len());
        for (at, pair) in requests.windows(2).enumerate() {
            let was = (pair[1].arrival - pair[0].arrival).0 as f64 * demand.time_scale;
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
        let sizes = [4096, 8192, 12288].map(Bytes);
        let outstanding = 4;
        let base = base(&model(), &profile(), &sizes, outstanding);
        let demands = [first, second].map(|requests| Demand::scaled(requests, &profile(), load).unwrap());
        let curve = |demand: &Demand| {
            let traffic = CircularTrace::from_first_arrival(demand.jobs(&profile()), demand.period).unwrap();
            WorstCase { reshaping: Reshaping::EveryStage }.sketch(&traffic).curve(Stage::Storage).clone()
        };
        let names = vec!["a".to_owned(), "b".to_owned()];
        let analysis = Analysis::new(names, demands.iter().map(curve).collect(), base);
        let end = Nanos(3 * demands[0].period.0.max(demands[1].period.0));
        let mut all: Vec<(usize, Request)> = demands[0].until(end).into_iter().map(|r| (0, r)).collect();
        all.extend(demands[1].until(end).into_iter().map(|mut r| {
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

/// Levels and latencies of requests that are sent to the device by priority, at most so many at once.
fn served(all: &[(usize, Request)], outstanding: usize) -> Vec<(usize, Nanos)> {
    let mut device = Device::new(model());
    let mut waiting = [std::collections::VecDeque::new(), std::collections::VecDeque::new()];
    let (mut there, mut found, mut next): (Vec<Nanos>, _, _) = (Vec::new(), Vec::new(), 0);
    loop {
        // The next thing that happens: an arrival or a completion.
        let arrives = all.get(next).map(|(_, request)| request.arrival);
        let ends = there.iter().min().copied();
        let now = match (arrives, ends) {
            (Some(arrives), Some(ends)) => arrives.min(ends),
            (Some(at), None) | (None, Some(at)) => at,
            (None, None) => return found,
        };
        there.retain(|end| *end > now);
        while let Some((level, request)) = all.get(next).filter(|(_, request)| request.arrival <= now) {
            waiting[*level].push_back(*request);
            next += 1;
        }
        while there.len() < outstanding {
            let Some(level) = (0..2).find(|&level| !waiting[level].is_empty()) else { break };
            let request = waiting[level].pop_front().expect("it is not empty");
            let end = device.submit(now, request.op, request.size);
            found.push((level, end - request.arrival));
            there.push(end);
        }
    }
}

#[test]
fn a_circle_begun_elsewhere_is_the_same_circle() {
    let requests = [3, 5, 11, 12].map(|at| request(at * 1000, Op::Read, 4096)).to_vec();
    let demand = Demand::of_work(requests, 1e-6, 0.1).unwrap();
    let turned = demand.clone().begun_at(2);
    assert_eq!(turned.requests[0].arrival, Nanos::ZERO);
    let gaps = |demand: &Demand| {
        let all = demand.until(Nanos(2 * demand.period.0));
        all.windows(2).map(|pair| (pair[1].arrival - pair[0].arrival).0).collect::<Vec<_>>()
    };
    assert_eq!(gaps(&turned)[..5], gaps(&demand)[2..7]);
}

#[test]
fn plans_of_all_experiments_admit_what_they_promise() {
    let Some(traces) = testkit::shared("traces") else { return };
    for experiment in EXPERIMENTS {
        let planned = Planned::of(experiment, &traces).unwrap_or_else(|fault| panic!("{fault}"));
        for case in &planned.cases {
            let (policy, admitted) = &case.policy;
            // Where SLOs do not follow from bounds, somebody may be refused.
            let asked = matches!(case.case.slos, Slos::Asked(_));
            assert!(*admitted || asked, "{} {}", experiment.name, case.case.name);
            for workload in policy.workloads.iter().filter(|workload| workload.admitted) {
                assert!(workload.bound_s.is_some_and(|bound| bound <= workload.slo_s), "{}", workload.name);
                assert!(!workload.limits.is_empty());
            }
        }
    }
}

#[test]
fn whoever_misbehaves_is_planned_as_if_it_did_not() {
    let Some(traces) = testkit::shared("traces") else { return };
    let planned = Planned::of(find("fig-3.6").unwrap(), &traces).unwrap();
    let [behaved, flooding] = &planned.cases[..] else { panic!("two cases") };
    assert_eq!(behaved.policy, flooding.policy);
    let faster = behaved.sent[0].period.0 as f64 / flooding.sent[0].period.0 as f64;
    assert!((faster - 11.0).abs() < 1e-3, "{faster}");
}

#[test]
fn a_folder_without_traces_says_what_to_do() {
    let fault = Planned::of(find("fig-3.3").unwrap(), Path::new("/nonexistent")).expect_err("no traces");
    assert!(fault.hint.as_deref().unwrap_or_default().contains("--data"), "{fault}");
}
