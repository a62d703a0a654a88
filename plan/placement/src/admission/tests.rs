//! The desk on a model that is worked out by hand: token buckets on one link under strict priority.

use super::*;
use calculus::{StageLoad, stage_delay};
use model::{
    CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Slo, Stage, UndefinedLatency,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use units::{Percentile, Seconds};

/// Thesis Eq. 5.1 on one stage; counts how often it is asked.
#[derive(Debug, Default)]
struct Buckets {
    asked: AtomicUsize,
}

/// ⟨rate, burst⟩.
type Bucket = (f64, f64);

impl LatencyModel for Buckets {
    type Sketch = Bucket;

    fn name(&self) -> &'static str {
        "buckets"
    }

    fn sketch(&self, _: &CircularTrace<Job>) -> Bucket {
        unreachable!("tests make their own")
    }

    fn predict(&self, members: &[ServerMember<'_, Bucket>]) -> Vec<Result<Prediction, UndefinedLatency>> {
        self.asked.fetch_add(1, Relaxed);
        let latency = |one: &ServerMember<'_, Bucket>| {
            let priority = |m: &ServerMember<'_, Bucket>| m.priority[Stage::NetworkIn];
            let at_or_above = members.iter().filter(|m| priority(m) <= priority(one));
            let (rate, burst) = at_or_above.fold((0.0, 0.0), |s, m| (s.0 + m.sketch.0, s.1 + m.sketch.1));
            let above = members.iter().filter(|m| priority(m) < priority(one)).map(|m| m.sketch.0).sum();
            if rate > 1.0 {
                return Err(UndefinedLatency::Overload { stage: Stage::NetworkIn, utilisation: rate });
            }
            Ok(Prediction { bound: stage_delay(StageLoad::preemptive(burst, above)), estimate: None })
        };
        members.iter().map(latency).collect()
    }
}

fn slo(latency: f64) -> Slo {
    Slo::new(Percentile::new(99.9).unwrap(), Seconds(latency)).unwrap()
}

fn applicant<S>(name: &str, latency: f64, sketch: S) -> Applicant<S> {
    Applicant {
        name: name.into(),
        slo: slo(latency),
        base_latency: 0.01,
        group: None,
        sketch: Arc::new(sketch),
    }
}

fn host(servers: usize) -> IdenticalServers {
    IdenticalServers { count: servers, slo_factor: 0.999, levels_max: usize::MAX }
}

fn state<P: AdmissionProcedure>(controller: &AdmissionController<P>) -> Vec<(String, usize, Priority)> {
    controller.placements().map(|(name, server, priority)| (name.to_owned(), server, priority)).collect()
}

#[test]
fn a_tighter_slo_is_a_higher_priority_and_equal_ones_share_it() {
    let all = [("a", 0.5), ("b", 0.1), ("c", 0.5), ("d", 0.2)].map(|(n, l)| applicant(n, l, ()));
    let members: Vec<_> = all.iter().collect();
    let server = SharedServer { members: &members, slo_factor: 1.0, levels_max: usize::MAX };
    let levels: Vec<u32> = by_slo(&server).iter().map(|p| p[Stage::Storage]).collect();
    assert_eq!(levels, [2, 0, 2, 1]);
}

#[test]
fn groups_are_those_of_the_applicants_whoever_else_is_there() {
    let groups = [Some(7), None, Some(3), Some(7), None];
    let all: Vec<_> =
        (0..5).map(|i| Applicant { group: groups[i], ..applicant(&i.to_string(), 1.0, ()) }).collect();
    let members: Vec<_> = all.iter().collect();
    let numbers = |members: &[&Applicant<()>]| {
        SharedServer { members, slo_factor: 1.0, levels_max: usize::MAX }.groups()
    };
    let five = numbers(&members);
    let distinct: std::collections::BTreeSet<_> = five.iter().collect();
    assert_eq!((five[0], distinct.len()), (five[3], 4));
    assert_eq!(numbers(&members[2..]), five[2..]);
}

#[test]
fn an_existing_workload_may_be_the_one_that_breaks() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    // 0.2 s of burst and 10 ms of base latency within 0.999 × 0.5 s.
    assert_eq!(controller.arrive(vec![applicant("slow", 0.5, (0.3, 0.2))]), Ok(0));
    // Served first: (0.2 + 0.05) / (1 − 0.5) = 0.5 s for the slow one.
    let refusal = controller.arrive(vec![applicant("fast", 0.1, (0.5, 0.05))]).unwrap_err();
    let (server, breach) = refusal.closest().unwrap();
    assert_eq!((server, breach.workload.as_str(), breach.newcomer, breach.others), (0, "slow", false, 0));
    let BreachCause::Latency { predicted, allowed } = breach.cause else { panic!("{breach:?}") };
    assert!((predicted - 0.51).abs() < 1e-12 && (allowed - 0.4995).abs() < 1e-12);
    assert_eq!(
        refusal.to_string(),
        "slow (accepted before, 99.9% < 500ms) would have 510.000 ms, 10.500 ms or 2.1% above what it may"
    );
    assert_eq!(controller.len(), 1);
}

#[test]
fn overload_names_the_stage_and_the_newcomer() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    controller.arrive(vec![applicant("a", 1.0, (0.7, 0.01))]).unwrap();
    let refusal = controller.arrive(vec![applicant("b", 1.0, (0.4, 0.01))]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "b (newcomer, 99.9% < 1s) would have no guarantee: network-in is overloaded by the same and higher \
         priorities: 110.0% of its capacity, and another one misses its SLO"
    );
}

#[test]
fn first_fit_fills_servers_in_order_and_refuses_when_none_is_left() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(2));
    let places: Vec<_> =
        (0..5).map(|i| controller.arrive(vec![applicant(&i.to_string(), 0.1, (0.1, 0.04))])).collect();
    // Two bursts of 40 ms and the base latency fit into 99.9 ms, three do not.
    assert_eq!(places[..4], [Ok(0), Ok(0), Ok(1), Ok(1)]);
    let Err(AdmissionRefusal::NoRoom(breaches)) = &places[4] else { panic!("{places:?}") };
    assert_eq!(breaches.len(), 2);
    assert!(
        places[4].as_ref().unwrap_err().to_string().starts_with("none of 2 servers has room; on server 0 ")
    );
    assert!(controller.depart("1").is_some() && controller.depart("1").is_none());
    assert_eq!(controller.arrive(vec![applicant("5", 0.1, (0.1, 0.04))]), Ok(0));
    let mut none = AdmissionController::new(ByModel::by_slo(&model), host(0));
    let refusal = none.arrive(vec![applicant("a", 1.0, (0.1, 0.0))]).unwrap_err();
    assert_eq!((refusal.to_string().as_str(), refusal.closest()), ("there is no server", None));
}

/// Empty servers are alike: one of them answers for all.
#[test]
fn questions_grow_with_servers_in_use_and_not_with_empty_ones() {
    let model = Buckets::default();
    let asked = || model.asked.load(Relaxed);
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(10_000));
    controller.arrive(vec![applicant("a", 0.1, (0.1, 0.04))]).unwrap();
    let before = asked();
    let refusal = controller.arrive(vec![applicant("late", 0.1, (0.1, 0.2))]).unwrap_err();
    assert!(matches!(&refusal, AdmissionRefusal::NoRoom(breaches) if breaches.len() == 10_000));
    assert_eq!(controller.admit(vec![applicant("late", 0.1, (0.1, 0.2))]), None);
    assert_eq!(controller.guarantees().len(), 1);
    assert!(asked() - before < 20, "{}", asked() - before);
}

#[test]
fn a_group_comes_as_a_whole_or_not_at_all() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(2));
    controller.arrive(vec![applicant("a", 0.1, (0.1, 0.04))]).unwrap();
    let before = state(&controller);
    let three = |burst: f64| {
        ["x", "y", "z"].map(|n| Applicant { group: Some(1), ..applicant(n, 0.1, (0.1, burst)) }).to_vec()
    };
    assert!(controller.arrive(three(0.04)).is_err(), "two of them would fit on the second server");
    assert_eq!(state(&controller), before);
    // 90 ms together: only the empty server.
    assert_eq!(controller.arrive(three(0.0296)), Ok(1));
    assert_eq!(controller.len(), 4);
}

#[test]
fn names_are_unique_and_somebody_must_come() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    let named = |name| applicant(name, 1.0, (0.1, 0.01));
    controller.arrive(vec![named("a")]).unwrap();
    assert_eq!(controller.arrive(vec![named("b"), named("a")]), Err(AdmissionRefusal::NameInUse("a".into())));
    assert_eq!(controller.arrive(vec![named("b"), named("b")]), Err(AdmissionRefusal::NameInUse("b".into())));
    assert_eq!(controller.arrive(vec![]), Err(AdmissionRefusal::Nobody));
    assert_eq!(controller.len(), 1);
    assert!(!controller.is_empty());
}

/// Answers with whatever is in the sketch.
struct Oracle {
    quick_no: bool,
}

impl LatencyModel for Oracle {
    type Sketch = Result<f64, UndefinedLatency>;

    fn name(&self) -> &'static str {
        "oracle"
    }

    fn sketch(&self, _: &CircularTrace<Job>) -> Self::Sketch {
        unreachable!("tests make their own")
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, Self::Sketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        members.iter().map(|m| m.sketch.map(|bound| Prediction { bound, estimate: None })).collect()
    }

    fn all_within(&self, members: &[ServerMember<'_, Self::Sketch>], limits: &[f64]) -> bool {
        let within =
            |(m, &limit): (&ServerMember<'_, Self::Sketch>, _)| m.sketch.is_ok_and(|bound| bound <= limit);
        !self.quick_no && members.iter().zip(limits).all(within)
    }
}

#[test]
fn what_is_not_a_latency_is_never_feasible() {
    let model = Oracle { quick_no: true };
    let overload = UndefinedLatency::Overload { stage: Stage::Storage, utilisation: f64::NAN };
    for bad in [Ok(f64::NAN), Ok(f64::INFINITY), Ok(-1.0), Err(UndefinedLatency::NoBound), Err(overload)] {
        let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
        let refusal = controller.arrive(vec![applicant("a", 1e9, bad)]).unwrap_err();
        assert!(
            matches!(refusal.closest().unwrap().1.cause, BreachCause::Undefined(_)),
            "{bad:?}: {refusal:?}"
        );
        assert!(controller.is_empty());
    }
}

#[test]
fn the_full_prediction_counts_where_the_quick_one_is_more_careful() {
    let model = Oracle { quick_no: true };
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    assert_eq!(controller.arrive(vec![applicant("a", 1.0, Ok(0.5))]), Ok(0));
    assert!(
        controller.arrive(vec![applicant("b", 1.0, Ok(0.995))]).is_err(),
        "above 0.999 with the base latency"
    );
}

#[test]
fn guarantees_say_who_is_where_with_what_latency() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    controller.arrive(vec![applicant("slow", 0.9, (0.3, 0.2))]).unwrap();
    controller.arrive(vec![applicant("fast", 0.1, (0.5, 0.05))]).unwrap();
    let expected = [("slow", 1, 0.51), ("fast", 0, 0.06)];
    for (given, (name, priority, latency)) in controller.guarantees().iter().zip(expected) {
        assert_eq!((given.name.as_str(), given.server, given.procedure), (name, 0, "buckets"));
        assert_eq!(given.priority, PerStage::from_fn(|_| priority));
        assert!((given.latency.unwrap() - latency).abs() < 1e-12, "{given:?}");
    }
}

#[test]
fn priorities_that_were_found_stay_when_the_search_fails_after_a_departure() {
    let model = Buckets::default();
    // Finds the order of arrival for two, and the reverse, which does not hold, for one less.
    let search = |_: &Buckets, server: &SharedServer<'_, Bucket>| -> Vec<Priority> {
        let n = u32::try_from(server.members.len()).unwrap();
        let level = |i: u32| if n == 3 { i } else { n - 1 - i };
        (0..n).map(|i| PerStage::from_fn(|_| level(i))).collect()
    };
    let mut controller = AdmissionController::new(ByModel::searched(&model, &search), host(1));
    let all = [("a", 0.1, 0.05), ("b", 0.2, 0.05), ("c", 0.4, 0.05)];
    controller
        .arrive(all.map(|(name, latency, burst)| applicant(name, latency, (0.2, burst))).to_vec())
        .unwrap();
    controller.depart("c").unwrap();
    // The reverse order gives a (0.05 + 0.05) / 0.8 = 125 ms.
    let levels: Vec<u32> = controller.placements().map(|(_, _, p)| p[Stage::Storage]).collect();
    assert_eq!(levels, [0, 1]);
    assert!(controller.guarantees().iter().all(|g| g.latency.unwrap() <= g.slo.latency.0));
}

#[test]
fn a_decision_asks_the_model_once_if_yes_and_twice_if_no() {
    let model = Buckets::default();
    let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(1));
    let count = 1000;
    for i in 0..count {
        controller.arrive(vec![applicant(&i.to_string(), 1.0, (0.0005, 0.0005))]).unwrap();
    }
    assert_eq!(model.asked.load(Relaxed), count);
    controller.arrive(vec![applicant("too much", 1.0, (0.6, 0.0))]).unwrap_err();
    assert_eq!(model.asked.load(Relaxed), count + 2);
    controller.depart("17").unwrap();
    assert_eq!(model.asked.load(Relaxed), count + 2, "a priority that stays needs no check");
}

/// An arrival of `Ok((SLO, rate, burst))`s, or the departure of one of those present.
fn any_event() -> impl Strategy<Value = Result<Vec<(usize, f64, f64)>, usize>> {
    let arrival = prop::collection::vec((0..4usize, 0.0..0.3f64, 0.0..0.1f64), 1..4);
    prop_oneof![3 => arrival.prop_map(Ok), 1 => (0..50usize).prop_map(Err)]
}

const SLOS: [f64; 4] = [0.1, 0.2, 0.3, 0.5];

fn newcomers(event: &[(usize, f64, f64)], number: usize) -> Vec<Applicant<Bucket>> {
    let one = |(i, &(level, rate, burst)): (usize, &(usize, f64, f64))| {
        applicant(&format!("{number}.{i}"), SLOS[level], (rate, burst))
    };
    event.iter().enumerate().map(one).collect()
}

/// Checks every SLO by the formula alone.
fn all_keep(members: &[Applicant<Bucket>]) -> bool {
    members.iter().all(|one| {
        let upto: Vec<_> = members.iter().filter(|m| m.slo.latency.0 <= one.slo.latency.0).collect();
        let above =
            upto.iter().filter(|m| m.slo.latency.0 < one.slo.latency.0).map(|m| m.sketch.0).sum::<f64>();
        let burst: f64 = upto.iter().map(|m| m.sketch.1).sum();
        let rate: f64 = upto.iter().map(|m| m.sketch.0).sum();
        rate <= 1.0 && burst / (1.0 - above) + 0.01 <= one.slo.latency.0 * 0.999
    })
}

proptest! {
    /// The judge keeps plain lists and tries every server from scratch. Decisions within rounding of the
    /// limit do not occur in numbers drawn at random.
    #[test]
    fn decisions_are_those_of_first_fit_from_scratch(events in prop::collection::vec(any_event(), 1..40)) {
        let model = Buckets::default();
        let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(3));
        let mut judge: Vec<Vec<Applicant<Bucket>>> = vec![Vec::new(); 3];
        for (number, event) in events.iter().enumerate() {
            match event {
                Ok(arrival) => {
                    let new = newcomers(arrival, number);
                    let fits = |servers: &Vec<Applicant<Bucket>>| all_keep(&[&servers[..], &new[..]].concat());
                    let expected = judge.iter().position(fits);
                    prop_assert_eq!(controller.arrive(new.clone()).ok(), expected);
                    if let Some(server) = expected {
                        judge[server].extend(new);
                    }
                }
                Err(index) => {
                    let all: Vec<String> = judge.iter().flatten().map(|m| m.name.clone()).collect();
                    let Some(name) = all.get(index % all.len().max(1)) else { continue };
                    prop_assert_eq!(&controller.depart(name).unwrap().name, name);
                    judge.iter_mut().for_each(|server| server.retain(|m| &m.name != name));
                }
            }
            let names: Vec<_> = controller.placements().map(|(name, server, _)| (name.to_owned(), server)).collect();
            let expected: Vec<_> = judge
                .iter()
                .enumerate()
                .flat_map(|(server, members)| members.iter().map(move |m| (m.name.clone(), server)))
                .collect();
            prop_assert_eq!(names, expected);
            prop_assert!(controller.guarantees().iter().all(|g| g.latency.unwrap() <= g.slo.latency.0));
        }
    }

    #[test]
    fn an_arrival_and_its_departure_leave_no_trace(
        events in prop::collection::vec(any_event(), 1..20),
        visit in prop::collection::vec((0..4usize, 0.0..0.3f64, 0.0..0.1f64), 1..4),
    ) {
        let model = Buckets::default();
        let mut controller = AdmissionController::new(ByModel::by_slo(&model), host(2));
        for (number, event) in events.iter().enumerate() {
            if let Ok(arrival) = event {
                let _ = controller.arrive(newcomers(arrival, number));
            }
        }
        let before = (state(&controller), controller.guarantees());
        let visitors = newcomers(&visit, events.len());
        if controller.arrive(visitors.clone()).is_ok() {
            prop_assert_eq!(controller.len(), before.0.len() + visitors.len());
            for visitor in &visitors {
                controller.depart(&visitor.name).unwrap();
            }
        }
        prop_assert_eq!((state(&controller), controller.guarantees()), before);
    }
}
