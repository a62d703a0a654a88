//! Rules are kept by every search, as a slow check that shares no code with them finds, and refuse no workload without need.

use super::*;
use crate::limits::LimitMethod;
use crate::placement::{
    CurvePriorities, Fleet, Placement, PlacementOrder, place, place_cheapest, place_first_fit,
    place_whole_curves,
};
use crate::problem::{PlanningClass, PlanningProblem, PlanningWorkload, WorkloadOnClass};
use crate::testing::{SLOS, any_workload};
use crate::{SearchEffort, SuggestedChange, advise, lower_bound};
use calculus::ArrivalCurve;
use model::{PerStage, Slo};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use std::cmp::Reverse;
use units::Seconds;

/// Classes with their numbers of servers, bytes and failure domains, and workloads with their rules.
#[derive(Debug, Clone)]
pub(crate) struct RuledCase {
    pub(crate) classes: Vec<ClassRule>,
    pub(crate) workloads: Vec<(usize, [ArrivalCurve; 3], WorkloadRule)>,
}

impl RuledCase {
    fn rules(&self) -> PlacementRules {
        let rules = self.workloads.iter().map(|(_, _, rule)| rule.clone());
        PlacementRules::new(self.classes.clone(), rules.collect())
    }

    pub(crate) fn problem(&self) -> PlanningProblem {
        let class = |(index, class): (usize, &ClassRule)| PlanningClass {
            name: format!("c{index}"),
            count: class.count,
            enforced: None,
        };
        let on_class = |curves: &[ArrivalCurve; 3]| WorkloadOnClass {
            curves: PerStage::from_fn(|stage| curves[stage as usize].clone()),
            mean_rate: PerStage::default(),
            largest_request: 0.0,
            base_latency: 0.0,
            overtaking: 0.0,
        };
        let workload = |(index, (slo, curves, _)): (usize, &(usize, [ArrivalCurve; 3], WorkloadRule))| {
            PlanningWorkload {
                name: format!("w{index}"),
                slo: Slo::new("99.9".parse().unwrap(), Seconds(SLOS[*slo])).unwrap(),
                on_class: vec![on_class(curves); self.classes.len()],
            }
        };
        let classes = self.classes.iter().enumerate().map(class).collect();
        let workloads = self.workloads.iter().enumerate().map(workload).collect();
        PlanningProblem::new(classes, workloads, 0.999, 0.999).unwrap().with_rules(self.rules())
    }

    /// Returns true if workloads on servers of these classes, as many as named, keep every rule under some numbering.
    fn keeps(&self, servers: &[(usize, Vec<usize>)]) -> bool {
        self.keeps_numbered(servers, &mut Vec::new())
    }

    fn keeps_numbered(&self, servers: &[(usize, Vec<usize>)], numbers: &mut Vec<usize>) -> bool {
        let Some((class, _)) = servers.get(numbers.len()) else { return self.keeps_with(servers, numbers) };
        (1..=self.classes[*class].count).any(|number| {
            let is_taken = (0..numbers.len()).any(|at| servers[at].0 == *class && numbers[at] == number);
            if is_taken {
                return false;
            }
            numbers.push(number);
            let keeps = self.keeps_numbered(servers, numbers);
            numbers.pop();
            keeps
        })
    }

    pub(crate) fn keeps_with(&self, servers: &[(usize, Vec<usize>)], numbers: &[usize]) -> bool {
        let placed = |workload: usize| servers.iter().position(|(_, members)| members.contains(&workload));
        let rule = |workload: usize| &self.workloads[workload].2;
        for (at, (class, members)) in servers.iter().enumerate() {
            let bytes: u64 = members.iter().map(|&member| rule(member).bytes).sum();
            if self.classes[*class].bytes.is_some_and(|most| bytes > most) {
                return false;
            }
            for &member in members {
                let on = rule(member).on.as_ref();
                let is_allowed = |numbers_of: &ServerNumbers| {
                    numbers_of.as_ref().is_none_or(|allowed| allowed.contains(&numbers[at]))
                };
                if !on.is_none_or(|on| on.get(class).is_some_and(is_allowed)) {
                    return false;
                }
            }
        }
        for one in 0..self.workloads.len() {
            for other in 0..one {
                let (Some(here), Some(there)) = (placed(one), placed(other)) else { continue };
                let domains = [here, there].map(|at| self.classes[servers[at].0].domain);
                let is_near = here == there || (domains[0].is_some() && domains[0] == domains[1]);
                let [a, b] = [rule(one), rule(other)];
                if a.apart.is_some() && a.apart == b.apart && is_near {
                    return false;
                }
                if a.together.is_some() && a.together == b.together && here != there {
                    return false;
                }
            }
        }
        // Those that are together have a place together or none.
        (0..self.workloads.len()).all(|one| {
            (0..one).all(|other| {
                let group = rule(one).together;
                group.is_none()
                    || group != rule(other).together
                    || placed(one).is_some() == placed(other).is_some()
            })
        })
    }

    /// The most workloads that any placement has, and the fewest servers with which one has them, by trying all.
    fn most_placed(&self) -> (usize, usize) {
        let classes = self.classes.iter().enumerate();
        let mut servers: Vec<(usize, Vec<usize>)> =
            classes.flat_map(|(class, rule)| vec![(class, Vec::new()); rule.count]).collect();
        let mut best = (0, Reverse(0));
        self.try_from(&mut servers, 0, &mut best);
        (best.0, best.1.0)
    }

    fn try_from(
        &self,
        servers: &mut Vec<(usize, Vec<usize>)>,
        workload: usize,
        best: &mut (usize, Reverse<usize>),
    ) {
        if workload == self.workloads.len() {
            let used: Vec<(usize, Vec<usize>)> =
                servers.iter().filter(|(_, members)| !members.is_empty()).cloned().collect();
            let found = (used.iter().map(|(_, members)| members.len()).sum(), Reverse(used.len()));
            if found > *best && self.keeps(&used) {
                *best = found;
            }
            return;
        }
        self.try_from(servers, workload + 1, best);
        for at in 0..servers.len() {
            servers[at].1.push(workload);
            self.try_from(servers, workload + 1, best);
            servers[at].1.pop();
        }
    }
}

fn any_class() -> impl Strategy<Value = ClassRule> {
    let bytes = prop::option::of(3u64..12);
    (1usize..4, bytes, prop::option::of(0usize..2)).prop_map(|(count, bytes, domain)| ClassRule {
        count,
        bytes,
        domain,
    })
}

fn any_rule(classes: usize) -> impl Strategy<Value = WorkloadRule> {
    let numbers = prop::option::of(prop::collection::btree_set(1usize..4, 1..3));
    let on = prop::option::weighted(0.4, prop::collection::btree_map(0..classes, numbers, 1..3));
    let group = || prop::option::weighted(0.4, 0usize..2);
    (0u64..6, on, group(), group()).prop_map(|(bytes, on, apart, together)| WorkloadRule {
        bytes,
        on,
        apart,
        together,
    })
}

pub(crate) type AnyTraffic = BoxedStrategy<(usize, [ArrivalCurve; 3])>;

pub(crate) fn idle() -> AnyTraffic {
    let traffic: (usize, [ArrivalCurve; 3]) = (3, std::array::from_fn(|_| ArrivalCurve::zero()));
    Just(traffic).boxed()
}

pub(crate) fn any_case(traffic: AnyTraffic, workloads: usize) -> impl Strategy<Value = RuledCase> {
    prop::collection::vec(any_class(), 1..4).prop_flat_map(move |classes| {
        let rule = any_rule(classes.len());
        let workload = (traffic.clone(), rule).prop_map(|((slo, curves), rule)| (slo, curves, rule));
        let clamp = |mut case: RuledCase| {
            // A cluster file names servers that there are.
            for (_, _, rule) in &mut case.workloads {
                for (class, numbers) in rule.on.iter_mut().flatten() {
                    let count = case.classes[*class].count;
                    if let Some(numbers) = numbers {
                        *numbers = numbers.iter().map(|&number| number.min(count)).collect();
                    }
                }
            }
            case
        };
        let classes = Just(classes);
        (classes, prop::collection::vec(workload, 1..=workloads))
            .prop_map(|(classes, workloads)| RuledCase { classes, workloads })
            .prop_map(clamp)
    })
}

fn servers_of(placement: &Placement) -> Vec<(usize, Vec<usize>)> {
    placement.servers.iter().map(|server| (server.class, server.members.clone())).collect()
}

fn best(problem: &PlanningProblem) -> Placement {
    let effort = SearchEffort::Evaluations(300);
    place(problem, LimitMethod::Exact, PlacementOrder::Best, effort, 1, &mut |_| true)
}

fn cheapest(problem: &PlanningProblem) -> Placement {
    let effort = SearchEffort::Evaluations(300);
    place_cheapest(problem, LimitMethod::Exact, PlacementOrder::Best, effort, 0.0, &mut |_| true).placement
}

fn searched(problem: &PlanningProblem) -> Vec<Placement> {
    let given: Vec<usize> = (0..problem.workloads.len()).collect();
    let prices = (0..problem.classes.len()).map(|class| [3.0, 1.0, 2.0][class]).collect();
    vec![
        cheapest(&problem.clone().with_prices(prices)),
        best(problem),
        place_first_fit(problem, LimitMethod::Exact, &given, false),
        place_first_fit(problem, LimitMethod::Knee, &given, false),
        place_first_fit(problem, LimitMethod::Knee, &given, true),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// With traffic that fills servers, too, and in numbers that the servers really get.
    #[test]
    fn no_search_breaks_a_rule(case in any_case(any_workload().boxed(), 8)) {
        let problem = case.problem();
        for placement in searched(&problem) {
            let servers = servers_of(&placement);
            prop_assert!(case.keeps(&servers), "{servers:?}");
            prop_assert!(placement.servers.iter().all(|server| server.verify(&problem).is_ok()));
            let placed: usize = servers.iter().map(|(_, members)| members.len()).sum();
            prop_assert_eq!(placed + placement.refused.len(), case.workloads.len());
            // The numbers given, and any for the others.
            let mut numbers = placement.numbers.clone();
            for at in 0..numbers.len() {
                let class = servers[at].0;
                let is_free = |number: &usize| {
                    (0..numbers.len()).all(|other| servers[other].0 != class || numbers[other] != Some(*number))
                };
                if numbers[at].is_none() {
                    numbers[at] = (1..=case.classes[class].count).find(is_free);
                }
            }
            let numbers: Option<Vec<usize>> = numbers.into_iter().collect();
            prop_assert!(case.keeps_with(&servers, &numbers.expect("there is a number for each")));
        }
        for order in [PlacementOrder::Given, PlacementOrder::Best] {
            let placement = place_whole_curves(&problem, CurvePriorities::BySlo, order);
            prop_assert!(case.keeps(&placement.servers), "{placement:?}");
        }
    }

    /// Servers that are idle leave rules alone to refuse. A refused workload joins no server of the plan by itself.
    #[test]
    fn a_refused_workload_has_no_server_in_its_plan(case in any_case(idle(), 7)) {
        let problem = case.problem();
        for placement in searched(&problem) {
            let servers = servers_of(&placement);
            for refusal in &placement.refused {
                let unit = problem.rules.unit(&refusal.workload);
                let mut places: Vec<Vec<(usize, Vec<usize>)>> = Vec::new();
                for at in 0..servers.len() {
                    let mut with = servers.clone();
                    with[at].1.extend(unit);
                    places.push(with);
                }
                for (class, rule) in case.classes.iter().enumerate() {
                    if servers.iter().filter(|(of, _)| *of == class).count() < rule.count {
                        places.push(servers.iter().cloned().chain([(class, unit.to_vec())]).collect());
                    }
                }
                for with in places {
                    prop_assert!(!case.keeps(&with), "w{} fits: {with:?}", refusal.workload);
                }
            }
        }
    }

    /// Every server is excluded by some rule, and each suggested change admits the workload by itself.
    #[test]
    fn refusals_derive_themselves(case in any_case(idle(), 7)) {
        let problem = case.problem();
        let placement = best(&problem);
        let numbers: Vec<usize> = {
            let mut taken: Vec<(usize, usize)> = Vec::new();
            let asked = placement.servers.iter().zip(&placement.numbers);
            taken.extend(asked.filter_map(|(server, number)| Some((server.class, (*number)?))));
            let mut numbers = Vec::new();
            for (server, number) in placement.servers.iter().zip(&placement.numbers) {
                let free = || (1..).find(|number| !taken.contains(&(server.class, *number))).expect("a number");
                let number = number.unwrap_or_else(free);
                taken.push((server.class, number));
                numbers.push(number);
            }
            numbers
        };
        let count: usize = case.classes.iter().map(|class| class.count).sum();
        for refusal in &placement.refused {
            let excluded = placement.excluded(&problem, &numbers, refusal.workload);
            prop_assert_eq!((excluded.total, excluded.others()), (count, 0), "{:?}", excluded);
            for change in advise(&problem, LimitMethod::Exact, &placement, refusal, &[]) {
                let mut other = case.clone();
                let rule = &mut other.workloads[refusal.workload].2;
                let server;
                match change {
                    SuggestedChange::Size { bytes, server: on } => {
                        rule.bytes = bytes;
                        server = on;
                    }
                    SuggestedChange::Rule { kind, server: on } => {
                        server = on;
                        match kind {
                            RuleKind::Size => rule.bytes = 0,
                            RuleKind::On => rule.on = None,
                            RuleKind::Apart => rule.apart = None,
                            RuleKind::Together => rule.together = None,
                        }
                    }
                    _ => continue,
                }
                let rules = other.rules();
                let mut servers = servers_of(&placement);
                let unit: Vec<usize> = rules
                    .unit(&refusal.workload)
                    .iter()
                    .copied()
                    .filter(|member| !servers.iter().any(|(_, members)| members.contains(member)))
                    .collect();
                let joined = |servers: &[(usize, Vec<usize>)]| other.keeps(servers);
                let admits = match server {
                    Some(at) => {
                        servers[at].1.extend(&unit);
                        joined(&servers)
                    }
                    None => (0..case.classes.len()).any(|class| {
                        let used = servers.iter().filter(|(of, _)| *of == class).count();
                        let more: Vec<(usize, Vec<usize>)> =
                            servers.iter().cloned().chain([(class, unit.clone())]).collect();
                        used < case.classes[class].count && joined(&more)
                    }),
                };
                prop_assert!(admits, "{change:?} does not admit w{}", refusal.workload);
            }
        }
    }
}

/// Brute force over all placements of workloads that only rules keep apart.
#[test]
fn the_search_places_nearly_as_many_as_any_placement() {
    let mut runner = TestRunner::deterministic();
    let strategy = any_case(idle(), 4);
    let mut full = 0;
    let mut missed = 0;
    let mut more = 0;
    for _ in 0..400 {
        let case = strategy.new_tree(&mut runner).unwrap().current();
        if case.classes.iter().map(|class| class.count).sum::<usize>() > 4 {
            continue;
        }
        let (most, fewest) = case.most_placed();
        let problem = case.problem();
        let placement = best(&problem);
        let placed = case.workloads.len() - placement.refused.len();
        assert!(placed <= most, "{placed} of {most}: {case:?}");
        if most == case.workloads.len() {
            let least = lower_bound(&problem, LimitMethod::Exact).servers;
            assert!(least <= fewest, "at least {least}, {fewest} suffice: {case:?}");
            more += u32::from(placed == most && placement.servers.len() > fewest);
        }
        full += 1;
        missed += u32::from(placed < most);
    }
    println!(
        "of {full} placements, {missed} have fewer workloads than the largest, {more} have more servers than needed"
    );
    assert!(full > 200 && missed * 20 <= full && more * 20 <= full, "{missed} and {more} of {full}");
}

/// Servers that keep their numbers exclude workloads that ask for another one.
#[test]
fn kept_numbers_are_kept() {
    let on = |number| Some(BTreeMap::from([(0, Some(BTreeSet::from([number])))]));
    let idle = || std::array::from_fn(|_| ArrivalCurve::zero());
    let workload = |rule| (3, idle(), rule);
    let case = RuledCase {
        classes: vec![ClassRule { count: 2, ..ClassRule::default() }],
        workloads: vec![
            workload(WorkloadRule::default()),
            workload(WorkloadRule { on: on(2), apart: Some(0), ..WorkloadRule::default() }),
            workload(WorkloadRule { on: on(2), apart: Some(0), ..WorkloadRule::default() }),
        ],
    };
    let problem = case.problem();
    let mut fleet = Fleet::new(&problem, LimitMethod::Exact);
    let (number, _) = fleet.open_with(0, &[0]);
    fleet.give_number(number.unwrap(), 1);
    assert_eq!(fleet.arrive(1), Ok(1));
    assert!(fleet.arrive(2).is_err());
    let placement = fleet.into_placement(Vec::new());
    assert_eq!(placement.numbers, [Some(1), Some(2)]);
}
