//! Steps against mixtures of two states, drawn at random and verified from the limits alone, and names against all
//! permutations.

use super::change::{states_between, with_lower_rates};
use super::{
    CopyEnd, CopyPriority, CopyTerms, CopyTraffic, Migration, MigrationProblem, MigrationRefusal,
    ServerChange, StepPurpose, migrate, names_with_fewest_moves, verify_change,
};
use crate::limits::LimitMethod;
use crate::problem::{PlanningProblem, PlanningWorkload, WorkloadOnClass};
use crate::server::PlannedServer;
use crate::testing::{any_class, any_workload, problem_on};
use calculus::ArrivalCurve;
use model::{PerStage, RateLimit, Slo, Stage};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use units::{Percentile, Seconds};

/// A server on which enforcers have the old or the new limit of each workload at each stage, as bits of `mask` say, and
/// workloads of one state alone are there or not.
fn mixture(old: &PlannedServer, new: &PlannedServer, mask: u64) -> PlannedServer {
    let mut bits = (0..64).cycle().map(|bit| mask >> bit & 1 == 1);
    let mut bit = move || bits.next().expect("there is no end");
    let queue = if bit() { new.queue } else { old.queue };
    let mut mixed = PlannedServer { class: old.class, members: Vec::new(), limits: Vec::new(), queue };
    let newcomers = new.members.iter().filter(|member| !old.members.contains(member));
    for &workload in old.members.iter().chain(newcomers) {
        let [before, after] =
            [old, new].map(|state| state.members.contains(&workload).then(|| *state.limits_of(workload)));
        let limits = match (before, after) {
            (Some(before), Some(after)) => {
                PerStage::from_fn(|stage| if bit() { after[stage] } else { before[stage] })
            }
            (one, other) => match one.or(other).filter(|_| bit()) {
                Some(limits) => limits,
                None => continue,
            },
        };
        mixed.members.push(workload);
        mixed.limits.push(limits);
    }
    mixed
}

fn fitted(problem: &PlanningProblem, members: &[usize]) -> Option<PlannedServer> {
    if members.is_empty() {
        let queue = problem.shortest_queue(0);
        return Some(PlannedServer { class: 0, members: Vec::new(), limits: Vec::new(), queue });
    }
    LimitMethod::Exact.fit(problem, 0, members.to_vec()).ok()
}

/// Random workloads of a server before and after, whose limits keep all SLOs.
fn any_change() -> impl Strategy<Value = (PlanningProblem, PlannedServer, PlannedServer)> {
    let workloads = prop::collection::vec((any_workload(), 0u8..6), 2..7);
    (workloads, any_class()).prop_filter_map("both fit", |(drawn, enforced)| {
        let (workloads, kinds): (Vec<_>, Vec<u8>) = drawn.into_iter().unzip();
        let problem = problem_on(workloads, enforced);
        let with = |absent: u8| {
            let indices = kinds.iter().enumerate().filter(|(_, kind)| **kind != absent);
            indices.map(|(index, _)| index).collect::<Vec<usize>>()
        };
        let old = fitted(&problem, &with(0))?;
        let new = fitted(&problem, &with(1))?;
        Some((problem, old, new))
    })
}

/// Tries mixtures of two states of a server; returns the number of promises that were checked.
fn try_mixtures(problem: &PlanningProblem, old: &PlannedServer, new: &PlannedServer, masks: &[u64]) -> usize {
    let both = |w: usize| old.members.contains(&w) && new.members.contains(&w);
    let mut checked = 0;
    for &mask in masks {
        let mixed = mixture(old, new, mask);
        if let Err(broken) = mixed.verify_promises(problem, both) {
            panic!("a mixture breaks a promise: {broken:?}\n{old:#?}\n{new:#?}\n{mixed:#?}");
        }
        checked += mixed.members.iter().filter(|&&w| both(w)).count();
    }
    checked
}

/// Every mixture of states that pass the check keeps all promises, directly and by way of the lower rates.
#[test]
fn mixtures_of_limits_keep_promises_where_the_check_says_so() {
    let mut runner = TestRunner::deterministic();
    let strategy = (any_change(), prop::collection::vec(any::<u64>(), 24));
    let mut by_states = [0; 8];
    let mut refused = 0;
    let mut checked = 0;
    for _ in 0..400 {
        let ((problem, old, new), masks) = strategy.new_tree(&mut runner).expect("drawn").current();
        let check = |one: &PlannedServer, other: &PlannedServer| {
            let both = |w: usize| one.members.contains(&w) && other.members.contains(&w);
            verify_change(&problem, one, other, &both)
        };
        let Ok(between) = states_between(&problem, &check, &old, &new) else {
            refused += 1;
            continue;
        };
        by_states[between.len().min(7)] += 1;
        let states: Vec<&PlannedServer> = [&old].into_iter().chain(&between).chain([&new]).collect();
        for pair in states.windows(2) {
            checked += try_mixtures(&problem, pair[0], pair[1], &masks);
        }
    }
    println!("{by_states:?} by number of states between, {refused} refused; {checked} promises checked");
    let through_states: usize = by_states[2..].iter().sum();
    assert!(by_states[0] > 100 && by_states[1] > 100 && through_states > 5, "too few changes were possible");
}

/// A copy of constant rate: halves of a twentieth of each stage.
struct ConstantCopies;

impl CopyTraffic for ConstantCopies {
    fn rates(&self) -> usize {
        6
    }

    fn traffic(&self, workload: usize, terms: CopyTerms) -> PlanningWorkload {
        let CopyTerms { end, rate, number, priority } = terms;
        let rate = 0.05 / f64::from(1u32 << rate);
        let curve = ArrivalCurve::from_limits(&[(rate, 1e-3)]);
        let latency = match priority {
            CopyPriority::Below(longest) => longest * 10.0 + 10.0,
            CopyPriority::With(latency) => latency,
        };
        let word = if end == CopyEnd::Read { "read" } else { "write" };
        PlanningWorkload {
            name: format!("copy-{word}-{workload}-{number}"),
            slo: Slo::new(Percentile::new(99.0).unwrap(), Seconds(latency)).unwrap(),
            on_class: vec![WorkloadOnClass {
                curves: PerStage::from_fn(|_| curve.clone()),
                mean_rate: PerStage::from_fn(|_| rate),
                largest_request: 1e-3,
                base_latency: 0.0,
                overtaking: 0.0,
            }],
        }
    }
}

/// The servers of a random assignment where all of them fit, and their workloads elsewhere.
fn servers_of(problem: &PlanningProblem, homes: &[usize], count: usize) -> Option<Vec<PlannedServer>> {
    let mut servers = Vec::new();
    for server in 0..count {
        let members: Vec<usize> = (0..homes.len()).filter(|&w| homes[w] == server).collect();
        servers.push(fitted(problem, &members)?);
    }
    Some(servers)
}

fn names(workloads: &[PlanningWorkload]) -> Vec<&str> {
    workloads.iter().map(|workload| workload.name.as_str()).collect()
}

/// The problem with the workloads of a migration, copies included.
fn with_copies(problem: &PlanningProblem, migration: &Migration) -> PlanningProblem {
    let classes = problem.classes.clone();
    let workloads = migration.workloads.clone();
    PlanningProblem::new(classes, workloads, problem.max_rate, problem.slo_factor).expect("unique names")
}

/// Checks what a migration says against its steps: everybody is somewhere at every step, moves lead to the end, bytes fit,
/// and consecutive steps may mix in any way.
fn judge(problem: &MigrationProblem<'_>, migration: &Migration, masks: &[u64]) -> usize {
    let whole = with_copies(problem.instance, migration);
    let everybody = problem.instance.workloads.len();
    let mut state: Vec<PlannedServer> = problem.servers.iter().map(|server| server.before.clone()).collect();
    let mut checked = 0;
    for step in &migration.steps {
        for (old, new) in state.iter().zip(&step.servers) {
            checked += try_mixtures(&whole, old, new, masks);
            assert!(new.verify(&whole).is_ok(), "a step breaks a promise");
        }
        let mut seen = vec![0; everybody];
        for server in &step.servers {
            server.members.iter().filter(|&&w| w < everybody).for_each(|&w| seen[w] += 1);
        }
        assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        match &step.purpose {
            StepPurpose::Copy(moves) => {
                for it in moves {
                    assert!(step.servers[it.from].members.contains(&it.workload));
                    assert!(step.servers[it.from].members.contains(&it.copies[0]));
                    assert!(step.servers[it.to].members.contains(&it.copies[1]));
                }
            }
            StepPurpose::Switch(moves) => {
                assert!(moves.iter().all(|it| step.servers[it.to].members.contains(&it.workload)));
                let copies =
                    step.servers.iter().flat_map(|server| &server.members).filter(|&&w| w >= everybody);
                assert_eq!(copies.count(), 0, "copies end with the switch");
            }
            StepPurpose::MakeRoom | StepPurpose::Settle => {}
        }
        for (server, terms) in step.servers.iter().zip(&problem.servers) {
            let stored: u64 = server.members.iter().filter_map(|&w| problem.bytes.get(w)).sum();
            assert!(terms.capacity.is_none_or(|capacity| stored <= capacity));
        }
        state.clone_from(&step.servers);
    }
    let after: Vec<PlannedServer> = problem.servers.iter().map(|server| server.after.clone()).collect();
    assert_eq!(state, after);
    checked
}

/// Random placements on four servers, one of which is empty at first, lead to each other by steps that keep all promises.
#[test]
fn steps_lead_from_any_placement_to_another() {
    let mut runner = TestRunner::deterministic();
    let workloads = prop::collection::vec((any_workload(), 0usize..3, 0usize..4, 1u64..50), 3..8);
    let strategy = (workloads, any_class(), prop::collection::vec(any::<u64>(), 6), any::<bool>());
    let mut found = 0;
    let mut stuck = 0;
    let mut unreachable = 0;
    let mut checked = 0;
    let mut moves = 0;
    for _ in 0..300 {
        let (drawn, enforced, masks, is_full) = strategy.new_tree(&mut runner).expect("drawn").current();
        let curves = drawn.iter().map(|(workload, ..)| workload.clone()).collect();
        let instance = problem_on(curves, enforced);
        let [before, after]: [Vec<usize>; 2] =
            [drawn.iter().map(|it| it.1).collect(), drawn.iter().map(|it| it.2).collect()];
        let bytes: Vec<u64> = drawn.iter().map(|it| it.3).collect();
        let (Some(old), Some(new)) = (servers_of(&instance, &before, 4), servers_of(&instance, &after, 4))
        else {
            continue;
        };
        let stored = |server: &PlannedServer| server.members.iter().map(|&w| bytes[w]).sum::<u64>();
        let servers: Vec<ServerChange> = old
            .into_iter()
            .zip(new)
            .map(|(before, after)| {
                let capacity = is_full.then(|| stored(&before).max(stored(&after)) + 20);
                ServerChange { before, after, capacity }
            })
            .collect();
        let problem = MigrationProblem {
            instance: &instance,
            servers,
            together: vec![None; bytes.len()],
            bytes,
            keeps_rules: &|_| true,
            copies: &ConstantCopies,
        };
        match migrate(&problem) {
            Ok(migration) => {
                assert!(migration.broken_before.is_empty());
                checked += judge(&problem, &migration, &masks);
                moves += migration.workloads.len() - instance.workloads.len();
                let mut unique = names(&migration.workloads);
                unique.sort_unstable();
                unique.dedup();
                assert_eq!(unique.len(), migration.workloads.len());
                found += 1;
            }
            Err(MigrationRefusal::Stuck { remaining, .. }) => {
                assert!(!remaining.is_empty());
                stuck += 1;
            }
            Err(MigrationRefusal::Unreachable { .. }) => unreachable += 1,
        }
    }
    println!(
        "{found} found with {} moves, {stuck} stuck, {unreachable} unreachable; {checked} promises checked",
        moves / 2
    );
    assert!(found > 5 * (stuck + unreachable) && moves > 200, "too few migrations were found");
}

/// Two workloads that fill their servers change places by way of a third.
#[test]
fn a_free_server_resolves_a_cycle() {
    let curve = || ArrivalCurve::from_limits(&[(0.6, 0.01)]);
    let workloads = vec![(1, [curve(), curve(), curve()]), (1, [curve(), curve(), curve()])];
    let instance = problem_on(workloads, None);
    let [first, second, empty] = [&[0][..], &[1], &[]].map(|members| fitted(&instance, members).unwrap());
    let change = |before: &PlannedServer, after: &PlannedServer| ServerChange {
        before: before.clone(),
        after: after.clone(),
        capacity: None,
    };
    let problem = |servers| MigrationProblem {
        instance: &instance,
        servers,
        bytes: vec![1, 2],
        together: vec![None; 2],
        keeps_rules: &|_| true,
        copies: &ConstantCopies,
    };
    let two = problem(vec![change(&first, &second), change(&second, &first)]);
    let Err(MigrationRefusal::Stuck { remaining, .. }) = migrate(&two) else { panic!("there is no room") };
    assert_eq!(remaining.len(), 2);
    let three = problem(vec![change(&first, &second), change(&second, &first), change(&empty, &empty)]);
    let migration = migrate(&three).expect("the third helps");
    judge(&three, &migration, &[0, u64::MAX, 0x5555]);
    let copies = migration.steps.iter().filter(|step| matches!(step.purpose, StepPurpose::Copy(_)));
    assert_eq!(copies.count(), 3);
    // The smaller one takes the detour.
    assert!(names(&migration.workloads).contains(&"copy-read-0-1"));
}

proptest! {
    /// No permutation keeps more.
    #[test]
    fn names_keep_as_much_as_any_permutation(
        weights in prop::collection::vec(prop::collection::vec(0i64..20, 4), 1..5),
        old in 1usize..5,
    ) {
        let new = weights.len();
        let found = names_with_fewest_moves(new, old, |row, column| weights[row][column]);
        let kept = |names: &[Option<usize>]| -> i64 {
            names.iter().enumerate().filter_map(|(row, name)| Some(weights[row][(*name)?])).sum()
        };
        let mut taken: Vec<usize> = found.iter().flatten().copied().collect();
        prop_assert!(taken.iter().all(|&name| name < old));
        taken.sort_unstable();
        prop_assert!(taken.windows(2).all(|pair| pair[0] != pair[1]), "a name is taken twice");
        let mut best = 0;
        let mut all = vec![Vec::new()];
        for _ in 0..new {
            let with = |names: &Vec<Option<usize>>, name| [&names[..], &[name]].concat();
            all = all
                .iter()
                .flat_map(|names| (0..old).map(Some).chain([None]).map(move |name| with(names, name)))
                .filter(|names: &Vec<Option<usize>>| {
                    let last = names.last().copied().flatten();
                    last.is_none() || names.iter().filter(|name| **name == last).count() == 1
                })
                .collect();
        }
        all.iter().for_each(|names| best = kept(names).max(best));
        prop_assert_eq!(kept(&found), best);
    }
}

/// The larger of both limits and the workloads of both count: states that hold alone may not be mixed.
#[test]
fn states_that_hold_alone_may_not_mix() {
    let steep = || ArrivalCurve::from_limits(&[(0.1, 0.05)]);
    let instance = problem_on(vec![(0, [steep(), steep(), steep()]), (0, [steep(), steep(), steep()])], None);
    let limits = |rate: f64| PerStage::from_fn(|_: Stage| RateLimit { rate, burst: 0.01 });
    let queue = instance.shortest_queue(0);
    let state = |one: f64, other: f64| PlannedServer {
        class: 0,
        members: vec![0, 1],
        limits: vec![limits(one), limits(other)],
        queue,
    };
    let [old, new] = [state(0.7, 0.2), state(0.2, 0.7)];
    // Rates alone decide: no promise is in force.
    assert!(verify_change(&instance, &old, &new, &|_| false).is_err());
    let between = with_lower_rates(&old, &new);
    assert_eq!(between.limits, [limits(0.2), limits(0.2)]);
    assert_eq!(verify_change(&instance, &old, &between, &|_| false), Ok(()));
    assert_eq!(verify_change(&instance, &between, &new, &|_| false), Ok(()));
}
