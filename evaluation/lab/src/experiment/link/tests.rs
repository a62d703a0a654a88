//! Bounds against a fluid link with strict priority, simulated here without the analysis.

use super::simulation::simulate_on_link;
use super::work::{link_time, tenant_disk};
use crate::experiment::{
    CasePlan, ExperimentPlan, ExperimentTenant, PolicyName, ScaledTrace, find_experiment,
};
use model::Op;
use std::path::Path;
use units::{Bytes, Nanos};

/// An arrival and its work, seconds.
type Arrival = (f64, f64);

/// Latencies of arrivals at a server that interrupts them for any arrival of higher priority.
fn latencies(above: &[Arrival], own: &[Arrival]) -> Vec<f64> {
    let mut higher = above.to_vec();
    higher.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut next = 0;
    let mut backlog = 0.0_f64;
    let mut now = 0.0;
    let mut latency = |&(arrival, work): &Arrival| {
        while let Some((at, more)) = higher.get(next).filter(|(at, _)| *at <= arrival) {
            backlog = (backlog - (at - now)).max(0.0) + more;
            (now, next) = (*at, next + 1);
        }
        backlog = (backlog - (arrival - now)).max(0.0) + work;
        now = arrival;
        // Higher-priority work that arrives before the end is served first.
        let mut end = arrival + backlog;
        for (at, more) in &higher[next..] {
            if *at >= end {
                break;
            }
            end += more;
        }
        end - arrival
    };
    own.iter().map(&mut latency).collect()
}

/// Latencies over disk and link under the protected policy, by tenant; empty for those without a promise.
fn simulated(case: &CasePlan, seconds: u64) -> Vec<Vec<f64>> {
    let end = Nanos(seconds * 1_000_000_000);
    let passed = |(tenant, sent): (&ExperimentTenant, &ScaledTrace)| {
        let requests = sent.trace.until(end);
        let service =
            tenant_disk(tenant, sent).map_or(0.0, |disk| disk.service_time(Op::Read, Bytes(1)).as_secs());
        let at_disk: Vec<Arrival> =
            requests.iter().map(|request| (request.arrival.as_secs(), service)).collect();
        let stored = latencies(&[], &at_disk);
        let at_link =
            requests.iter().zip(&stored).map(|(r, after)| (r.arrival.as_secs() + after, link_time(r)));
        (at_link.collect::<Vec<_>>(), stored)
    };
    let passed: Vec<_> = case.case.tenants.iter().zip(&case.sent).map(passed).collect();
    let workloads = &case.policy.workloads;
    let of = |(at, (own, stored)): (usize, &(Vec<Arrival>, Vec<f64>))| {
        let Some(level) = workloads[at].priority else { return Vec::new() };
        let others =
            workloads.iter().zip(&passed).filter(|(other, _)| other.priority.is_some_and(|p| p < level));
        let above: Vec<Arrival> = others.flat_map(|(_, (arrivals, _))| arrivals.clone()).collect();
        latencies(&above, own).iter().zip(stored).map(|(link, disk)| link + disk).collect()
    };
    passed.iter().enumerate().map(of).collect()
}

#[test]
fn the_judge_by_hand() {
    // 4 s of work at 0; at 1 and 2, 1 s each of higher priority; the arrival at 5 waits for the rest.
    let found = latencies(&[(2.0, 1.0), (1.0, 1.0)], &[(0.0, 4.0), (5.0, 1.0), (10.0, 1.0)]);
    assert_eq!(found, [6.0, 2.0, 1.0]);
}

/// Checks that the share of requests beyond the bound is as the SLO allows, for every admitted tenant.
fn keeps_its_bounds(case: &CasePlan, seconds: u64) {
    for (workload, found) in case.policy.workloads.iter().zip(simulated(case, seconds)) {
        let Some(bound) = workload.bound_s else { continue };
        let beyond = found.iter().filter(|latency| **latency > bound).count() as f64;
        assert!(beyond <= 0.01 * found.len() as f64, "{}: {beyond} of {}", workload.name, found.len());
        assert!(bound <= workload.slo.latency.0 && !workload.limits.is_empty(), "{}", workload.name);
    }
}

#[test]
fn figure_3_7_keeps_its_bounds() {
    // All its workloads are synthetic.
    let experiment = find_experiment("fig-3.7").unwrap();
    let planned = ExperimentPlan::new(experiment, Path::new("/nonexistent")).expect("no trace is read");
    for case in &planned.cases {
        assert!(case.admits_all, "{:?}", case.policy);
        keeps_its_bounds(case, 600);
    }
    let slos: Vec<f64> = planned.cases[1].slos.iter().map(|slo| slo.latency.0).collect();
    assert!(slos.iter().all(|slo| *slo >= slos[3]), "K has the lowest: {slos:?}");
    // Each asks for its share of the link.
    let case = &planned.cases[0];
    for (tenant, sent) in case.case.tenants.iter().zip(&case.sent) {
        let busy: f64 = sent.trace.items().iter().map(link_time).sum::<f64>() / sent.trace.period().as_secs();
        assert!((busy / tenant.load - 1.0).abs() < 1e-6, "{busy}");
    }
}

/// Two simulations that share only the requests agree.
#[test]
fn forecasts_agree_with_the_fluid_link() {
    let experiment = find_experiment("fig-3.7").unwrap();
    let planned = ExperimentPlan::new(experiment, Path::new("/nonexistent")).expect("no trace is read");
    let case = &planned.cases[0];
    let found = simulate_on_link(case, PolicyName::Tailwright, Nanos::ZERO, Nanos(60_000_000_000));
    for (found, expected) in found.iter().zip(simulated(case, 60)) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            let found = found.expect("everybody is answered").as_secs();
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }
}

#[test]
fn whoever_is_admitted_behind_one_link_keeps_its_slo() {
    let Some(traces) = testkit::shared("traces") else { return };
    let planned = ExperimentPlan::new(find_experiment("fig-4.1").unwrap(), &traces).unwrap();
    let workloads = &planned.cases[0].policy.workloads;
    assert!((1..8).contains(&workloads.iter().filter(|workload| workload.admitted).count()));
    keeps_its_bounds(&planned.cases[0], 600);
}
