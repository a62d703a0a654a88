//! Few servers by a procedure that is simple enough to know the least number.

mod support;

use placement::SearchEffort;
use placement::admission::IdenticalServers;
use placement::packing::{Packing, PackingControl, PackingProblem, pack};
use proptest::prelude::*;
use support::{Load, applicants, by_stage};

fn packed(loads: &[f64], slos: &[f64], servers: usize) -> Packing {
    packed_with(loads, slos, servers, 1, SearchEffort::Exhaustive)
}

fn packed_with(
    loads: &[f64],
    slos: &[f64],
    servers: usize,
    servers_min: usize,
    effort: SearchEffort,
) -> Packing {
    let applicants = applicants(loads, slos);
    let by_stage = by_stage(loads);
    let servers = IdenticalServers { count: servers, slo_factor: 1.0, levels_max: usize::MAX };
    let problem = PackingProblem { servers, applicants: &applicants, loads: &by_stage, servers_min };
    pack(&[Load], &problem, effort, &PackingControl::UNWATCHED)
}

/// The least number of servers of capacity 1, by trying everything.
fn least(loads: &[f64], used: &[f64]) -> usize {
    let Some((first, rest)) = loads.split_first() else { return used.len() };
    let with = |server: usize| {
        let mut used = used.to_vec();
        used.resize(used.len().max(server + 1), 0.0);
        used[server] += first;
        (used[server] <= 1.0).then(|| least(rest, &used))
    };
    (0..=used.len()).filter_map(with).min().expect("an empty server is large enough")
}

#[test]
fn many_are_placed_with_few_questions() {
    let loads = vec![0.25; 400];
    let packing = packed(&loads, &[1.0], 1000);
    assert_eq!((packing.servers.len(), packing.lower_bound, packing.refused.len()), (100, 100, 0));
    // A server takes a few questions, and twelve workloads that do not fit.
    assert!(packing.asked <= 1600, "{} questions", packing.asked);
}

#[test]
fn copies_of_one_that_did_not_fit_are_passed_over() {
    // A server has room for one that is large, and then for small ones only.
    let loads: Vec<f64> = (0..60).map(|number| if number % 6 == 5 { 0.1 } else { 0.7 }).collect();
    let mut workloads = applicants(&loads, &[1.0]);
    let [large, small] = [0, 5].map(|kind: usize| workloads[kind].sketch.clone());
    for workload in &mut workloads {
        workload.sketch = if *workload.sketch > 0.5 { large.clone() } else { small.clone() };
    }
    let servers = IdenticalServers { count: 60, slo_factor: 1.0, levels_max: usize::MAX };
    let problem =
        PackingProblem { servers, applicants: &workloads, loads: &by_stage(&loads), servers_min: 1 };
    let packing = pack(&[Load], &problem, SearchEffort::FirstFound, &PackingControl::UNWATCHED);
    assert_eq!((packing.servers.len(), packing.refused.len()), (50, 0));
    // Each by itself would take over a thousand.
    assert!(packing.asked <= 300, "{} questions", packing.asked);
}

#[test]
fn an_even_spread_over_more_servers_is_given_when_asked_for() {
    let loads = vec![0.25; 12];
    for at_least in 1..12 {
        let packing = packed_with(&loads, &[1.0], 20, at_least, SearchEffort::FirstFound);
        assert_eq!(packing.servers.len(), at_least.max(3));
    }
    assert_eq!(
        packed_with(&loads, &[1.0], 5, 6, SearchEffort::FirstFound).servers.len(),
        3,
        "first fit on all"
    );
}

#[test]
fn who_does_not_fit_is_refused_with_a_reason() {
    let packing = packed(&[0.6, 0.6, 0.6, 0.3], &[1.0], 2);
    assert_eq!(packing.servers, [vec![0, 3], vec![1]]);
    assert_eq!(packing.refused.len(), 1);
    let (refused, why) = &packing.refused[0];
    assert!(*refused == 2 && why.to_string().contains("w2"), "{why}");
    assert_eq!(packed(&[], &[1.0], 2).servers.len(), 0);
    assert_eq!(packed(&[2.0], &[1.0], 5).refused.len(), 1);
}

proptest! {
    #[test]
    fn packings_are_valid_and_near_the_least(loads in prop::collection::vec(0.05..0.8f64, 1..9), servers in 1..10usize) {
        let packing = packed(&loads, &[1.0], servers);
        let mut seen: Vec<usize> = packing.servers.concat();
        seen.extend(packing.refused.iter().map(|(applicant, _)| *applicant));
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..loads.len()).collect::<Vec<_>>());
        for members in &packing.servers {
            prop_assert!(!members.is_empty() && members.iter().map(|&m| loads[m]).sum::<f64>() <= 1.0);
        }
        let least = least(&loads, &[]);
        if packing.refused.is_empty() {
            prop_assert!(packing.lower_bound <= least && least <= packing.servers.len());
            // First fit decreasing needs at most 11/9 of the least and 2/3 more (Dósa 2007).
            prop_assert!(9 * packing.servers.len() <= 11 * least + 6, "{} against {least}", packing.servers.len());
        } else {
            prop_assert!(servers < 2 * least);
        }
    }

    /// SLOs differ: no workload with a tight one is on a server too full for it.
    #[test]
    fn everybody_keeps_its_slo(loads in prop::collection::vec(0.01..0.4f64, 1..30)) {
        let slos = [0.5, 1.0, 2.0];
        let packing = packed(&loads, &slos, 30);
        prop_assert!(packing.refused.is_empty());
        for members in &packing.servers {
            let load: f64 = members.iter().map(|&m| loads[m]).sum();
            prop_assert!(members.iter().all(|m| load <= slos[m % slos.len()]));
        }
    }
}
