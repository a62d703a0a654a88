//! Packing that is interrupted, judged twice, or run by many threads: invariants of the result.

mod support;

use model::UndefinedLatency;
use placement::SearchEffort;
use placement::admission::{
    AdmissionController, AdmissionProcedure, AdmissionRefusal, IdenticalServers, Priority, SharedServer,
};
use placement::packing::{Packing, PackingControl, PackingProblem, SecondJudgement, pack};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Load, applicants, by_stage};

/// A procedure with a quick check that sees a share of the load.
struct GlancedLoad {
    /// The shares it sees one after the other, for ten looks each; the last one stays.
    shares: &'static [f64],
    /// The looks since it forgot.
    looks: AtomicUsize,
}

impl GlancedLoad {
    fn new(shares: &'static [f64]) -> Self {
        Self { shares, looks: AtomicUsize::new(0) }
    }

    /// One that sees three quarters.
    fn constant() -> Self {
        Self::new(&[0.75])
    }

    /// One that sees the more the more it was asked since it forgot.
    fn remembering() -> Self {
        Self::new(&[0.2, 0.5, 0.9, 1.0])
    }
}

impl AdmissionProcedure for GlancedLoad {
    type Sketch = f64;

    fn name(&self) -> &'static str {
        Load.name()
    }

    fn priorities(&self, server: &SharedServer<'_, f64>) -> Vec<Priority> {
        Load.priorities(server)
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, f64>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        Load.latencies(server, priorities)
    }

    fn likely_fits(&self, server: &SharedServer<'_, f64>, _: &[Priority]) -> Option<bool> {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let share = self.shares[(look / 10).min(self.shares.len() - 1)];
        let seen: f64 = server.members.iter().map(|member| share * *member.sketch).sum();
        let keeps_all = (0..server.members.len()).all(|member| server.keeps(member, seen));
        (!keeps_all).then_some(false)
    }

    fn forget(&self) {
        self.looks.store(0, Ordering::Relaxed);
    }
}

fn packed(loads: &[f64], servers: usize, control: &PackingControl<'_>) -> Packing {
    packed_by(&Load, loads, servers, control)
}

fn packed_by<P: AdmissionProcedure<Sketch = f64> + Sync>(
    procedure: &P,
    loads: &[f64],
    servers: usize,
    control: &PackingControl<'_>,
) -> Packing {
    let applicants = applicants(loads, &[1.0]);
    let servers = IdenticalServers { count: servers, slo_factor: 1.0, levels_max: usize::MAX };
    let loads = by_stage(loads);
    let problem = PackingProblem { servers, applicants: &applicants, loads: &loads, servers_min: 1 };
    pack(std::slice::from_ref(procedure), &problem, SearchEffort::FirstFound, control)
}

fn load_of(members: &[usize], loads: &[f64]) -> f64 {
    members.iter().map(|&member| loads[member]).sum()
}

proptest! {
    /// Whenever it stops: every server holds, no workload is lost or placed twice, and each refusal has a
    /// reason.
    #[test]
    fn an_interrupted_search_has_a_valid_answer(
        loads in prop::collection::vec(0.01..1.2f64, 1..60),
        after in 0usize..150,
        judged in any::<bool>(),
        blamed in 1usize..9,
    ) {
        let asked = AtomicUsize::new(0);
        let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= after;
        let is_kept = |members: &[usize]| members.len() <= if members[0].is_multiple_of(5) { 2 } else { 7 };
        let missing = |members: &[usize]| members.iter().copied().filter(|member: &usize| member.is_multiple_of(blamed)).collect();
        let judgement = judged.then_some(SecondJudgement { confirms: &is_kept, missing: &missing });
        let packing = packed(&loads, 60, &PackingControl { interrupted: &interrupted, watch: &|_| (), judgement });
        let mut seen = packing.servers.concat();
        for members in &packing.servers {
            prop_assert!(!members.is_empty() && load_of(members, &loads) <= 1.0);
            prop_assert!(!judged || is_kept(members));
        }
        for (refused, why) in &packing.refused {
            let expected = match why {
                AdmissionRefusal::Alone(_) => loads[*refused] > 1.0,
                AdmissionRefusal::Interrupted => packing.interrupted,
                _ => false,
            };
            prop_assert!(expected, "{refused}: {why}");
            seen.push(*refused);
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..loads.len()).collect::<Vec<_>>());
        if !packing.interrupted {
            prop_assert!(packing.refused.iter().all(|(applicant, _)| loads[*applicant] > 1.0));
        }
    }

    /// Blocks of workloads at once and server by server: the same places as one workload after the other.
    #[test]
    fn filling_is_first_fit(loads in prop::collection::vec(0.01..1.3f64, 1..80), servers in 1usize..6) {
        let packing = packed(&loads, servers, &PackingControl::UNWATCHED);
        let by_glances = packed_by(&GlancedLoad::constant(), &loads, servers, &PackingControl::UNWATCHED);
        prop_assert_eq!(&by_glances.servers, &packing.servers);
        prop_assert_eq!(&by_glances.refused, &packing.refused);
        let identical = IdenticalServers { count: servers, slo_factor: 1.0, levels_max: usize::MAX };
        let mut controller = AdmissionController::new(Load, identical);
        let mut first_fit = vec![Vec::new(); servers];
        let mut refused = Vec::new();
        for (index, applicant) in applicants(&loads, &[1.0]).into_iter().enumerate() {
            match controller.admit(vec![applicant]) {
                Some(server) => first_fit[server].push(index),
                None => refused.push(index),
            }
        }
        first_fit.retain(|members: &Vec<usize>| !members.is_empty());
        let without_place: Vec<usize> = packing.refused.iter().map(|(applicant, _)| *applicant).collect();
        prop_assert_eq!(&without_place, &refused);
        if refused.iter().any(|&applicant| loads[applicant] <= 1.0) {
            prop_assert_eq!(packing.servers, first_fit);
        } else {
            prop_assert!(packing.servers.len() <= first_fit.len());
        }
    }
}

fn packed_and_judged(
    loads: &[f64],
    servers: usize,
    confirms: &(dyn Fn(&[usize]) -> bool + Sync),
    missing: &(dyn Fn(&[usize]) -> Vec<usize> + Sync),
) -> Packing {
    let judgement = Some(SecondJudgement { confirms, missing });
    packed(loads, servers, &PackingControl { judgement, ..PackingControl::UNWATCHED })
}

#[test]
fn whoever_misses_leaves_a_server_and_not_who_came_last() {
    let is_kept = |members: &[usize]| !members.contains(&0) || members.len() <= 2;
    let first = packed_and_judged(&[0.1; 10], 10, &is_kept, &|_| vec![0]);
    assert_eq!(first.servers, [vec![1, 2, 3, 4, 5, 6, 7, 8, 9], vec![0]]);
    let last = packed_and_judged(&[0.1; 10], 10, &is_kept, &|_| Vec::new());
    assert_eq!(last.servers, [vec![0, 1], vec![2, 3, 4, 5, 6, 7, 8, 9]]);
}

#[test]
fn whoever_was_dropped_is_offered_to_the_other_servers() {
    let is_kept = |members: &[usize]| !members.contains(&0) || members.len() <= 5;
    let packing = packed_and_judged(&[0.1; 14], 10, &is_kept, &|_| vec![0]);
    assert_eq!(packing.servers, [vec![1, 2, 3, 4, 5, 6, 7, 8, 9], vec![0, 10, 11, 12, 13]]);
}

#[test]
fn whoever_fails_the_judgement_alone_costs_nobody_else_the_place() {
    let is_kept = |members: &[usize]| !members.contains(&0);
    for missing in [
        &(|_: &[usize]| Vec::new()) as &(dyn Fn(&[usize]) -> Vec<usize> + Sync),
        &|_| vec![0],
        &<[usize]>::to_vec,
    ] {
        let packing = packed_and_judged(&[0.3; 7], 10, &is_kept, missing);
        let refused: Vec<usize> = packing.refused.iter().map(|(applicant, _)| *applicant).collect();
        assert_eq!((refused, packing.servers.concat().len()), (vec![0], 6), "{:?}", packing.servers);
    }
}

#[test]
fn questions_grow_with_the_number_of_workloads() {
    for count in [400, 800, 1600, 3200] {
        let loads: Vec<f64> = (0..count).map(|number| 0.02 + f64::from(number % 17) * 0.005).collect();
        let packing = packed(&loads, 3200, &PackingControl::UNWATCHED);
        assert!(packing.refused.is_empty());
        assert!(packing.asked <= 2 * loads.len(), "{} questions for {count}", packing.asked);
        // First fit needs at most 1.7 times the least (Dósa and Sgall 2013).
        assert!(packing.servers.len() <= packing.lower_bound * 17 / 10 + 1);
    }
}

#[test]
fn more_than_a_few_hundred_are_refused_in_short() {
    let packing = packed(&[0.4; 400], 10, &PackingControl::UNWATCHED);
    assert_eq!((packing.servers.len(), packing.refused.len()), (10, 380));
    assert!(packing.refused.iter().all(|(_, why)| why.to_string() == "none of 10 servers has room"));
}

#[test]
fn the_answer_is_the_same_whatever_the_number_of_threads() {
    let loads: Vec<f64> = (0..1100).map(|number| 0.02 + f64::from(number * 7 % 31) * 0.015).collect();
    let is_kept = |members: &[usize]| !members.iter().any(|member| member % 97 == 0) || members.len() <= 4;
    let missing = |members: &[usize]| members.iter().copied().filter(|member| member % 97 == 0).collect();
    let judgement = Some(SecondJudgement { confirms: &is_kept, missing: &missing });
    let applicants = applicants(&loads, &[1.0]);
    let loads = by_stage(&loads);
    for count in [1, 30, 200, 2000] {
        let servers = IdenticalServers { count, slo_factor: 1.0, levels_max: usize::MAX };
        let problem = PackingProblem { servers, applicants: &applicants, loads: &loads, servers_min: 1 };
        let control = PackingControl { judgement, ..PackingControl::UNWATCHED };
        let packed_by = |threads: usize| {
            let procedures: Vec<GlancedLoad> = (0..threads).map(|_| GlancedLoad::remembering()).collect();
            let packing = pack(&procedures, &problem, SearchEffort::FirstFound, &control);
            format!("{:?} {:?} {}", packing.servers, packing.refused, packing.asked)
        };
        let by_one = packed_by(1);
        for threads in [2, 2, 3, 8] {
            assert_eq!(packed_by(threads), by_one, "{threads} threads, {count} servers");
        }
    }
}

/// The filled servers of a lane are certain, finished or not.
#[test]
fn an_interruption_takes_nobody_from_a_server_that_was_certain() {
    // Three lanes, each with seven servers of 33 members, and one of 19, which is taken apart when the lane has ended.
    let loads = [0.03; 750];
    let mut before = 0;
    for questions in (0..).step_by(3) {
        let packing = placed_after(&Load, &loads, questions, None);
        let members = packing.servers.concat();
        let distinct: BTreeSet<usize> = members.iter().copied().collect();
        assert_eq!(distinct.len(), members.len(), "{questions}: somebody has two places");
        assert!(packing.servers.iter().all(|server| load_of(server, &loads) <= 1.0 + 1e-9));
        // Those about whom nothing is certain yet.
        assert!(members.len() + 10 >= before, "{questions}: {} placed after {before}", members.len());
        before = before.max(members.len());
        if !packing.interrupted {
            break;
        }
    }
    assert_eq!(before, 750);
}

/// Returns the placed workloads when a search is interrupted this many questions after the check of single
/// workloads.
fn placed_after<P: AdmissionProcedure<Sketch = f64> + Sync>(
    procedure: &P,
    loads: &[f64],
    questions: usize,
    judgement: Option<SecondJudgement<'_>>,
) -> Packing {
    let asked = AtomicUsize::new(0);
    let interrupted = || asked.fetch_add(1, Ordering::Relaxed) >= loads.len() + questions;
    packed_by(
        procedure,
        loads,
        loads.len(),
        &PackingControl { interrupted: &interrupted, watch: &|_| (), judgement },
    )
}

#[test]
fn an_interrupted_search_gives_the_server_that_is_being_filled() {
    let first_fails = |members: &[usize]| !members.contains(&0);
    let missing = |_: &[usize]| vec![0];
    let judgement = SecondJudgement { confirms: &first_fails, missing: &missing };
    // Few workloads fit beside the first ones, so the first server stays open for many questions.
    let loads: Vec<f64> = [0.1; 9].into_iter().chain([0.3; 191]).collect();
    for questions in 4..150 {
        for packing in [
            placed_after(&Load, &loads, questions, None),
            placed_after(&GlancedLoad::constant(), &loads, questions, None),
        ] {
            assert!(packing.interrupted && packing.servers.len() == 1, "{questions}: {:?}", packing.servers);
            assert!(packing.servers[0].len() >= 2 && load_of(&packing.servers[0], &loads) <= 1.0);
        }
        let judged = placed_after(&Load, &loads, questions, Some(judgement));
        assert!(judged.servers.len() == 1 && first_fails(&judged.servers[0]), "{:?}", judged.servers);
    }
}
