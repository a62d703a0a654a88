//! Each baseline on cases that are worked out by hand, and against its own definition on random ones.

use super::super::{
    AdmissionController, AdmissionProcedure, Applicant, BreachCause, IdenticalServers, SharedServer,
};
use super::*;
use calculus::{ArrivalCurve, CurveVertex};
use model::{CircularTrace, Job, Slo};
use proptest::prelude::*;
use std::sync::Arc;
use units::{Nanos, Percentile, Seconds};

const MS: f64 = 1e-3;

fn slo(percent: f64, latency: f64) -> Slo {
    Slo::new(Percentile::new(percent).unwrap(), Seconds(latency)).unwrap()
}

fn applicant<S>(name: &str, latency: f64, sketch: S) -> Applicant<S> {
    Applicant {
        name: name.into(),
        slo: slo(99.9, latency),
        base_latency: 0.0,
        group: None,
        sketch: Arc::new(sketch),
    }
}

fn curve(points: &[(f64, f64)], sustained: f64) -> ArrivalCurve {
    let vertices = points.iter().map(|&(duration, work)| CurveVertex { duration, work }).collect();
    ArrivalCurve::new(vertices, sustained).unwrap()
}

/// A burst into the server only: `burst` seconds at once, `rate` for ever.
fn inbound(burst: f64, rate: f64) -> StageCurves {
    StageCurves {
        curves: PerStage::from_fn(|stage| match stage {
            Stage::NetworkIn => curve(&[(0.0, burst)], rate),
            _ => ArrivalCurve::zero(),
        }),
    }
}

fn storing() -> StageCurves {
    let busy =
        |stage| if stage == Stage::Storage { curve(&[(0.0, 0.01)], 0.0) } else { ArrivalCurve::zero() };
    StageCurves { curves: PerStage::from_fn(busy) }
}

/// No base latency, the whole SLO.
const LINK: IdenticalServers = IdenticalServers { count: 1, slo_factor: 1.0, levels_max: usize::MAX };

/// Jobs of 1 ms into the server at these times (ms), once in 10 s.
fn traffic(times: &[u64]) -> CircularTrace<Job> {
    let work = |s| Nanos(if s == Stage::NetworkIn { 1_000_000 } else { 0 });
    let job = |&ms: &u64| Job { arrival: Nanos(ms * 1_000_000), work: PerStage::from_fn(work) };
    CircularTrace::from_first_arrival(times.iter().map(job).collect(), Nanos(10_000_000_000)).unwrap()
}

#[test]
fn a_user_of_silo_finds_the_least_multiple_by_trial() {
    // Ten requests of 1 ms at once, mean rate 1e-3: at k times the mean, the last of them is let go
    // (10 − 0.5) ms / (k × 1e-3) after its arrival, the seventh (7 − 0.5) ms / (k × 1e-3).
    let burst = traffic(&[0; 10]);
    let last = TrialBandwidth::choose(&burst, slo(99.9, 1.0), 0.5 * MS);
    let k = 1.1 * 1.25f64.powi(11); // 12.8: the first of the series above 9.5 / 0.8 = 11.9
    assert!((last.bandwidth[Stage::NetworkIn] - k * 1e-3).abs() < 1e-9, "{last:?}");
    assert!((last.shaping - 9.5 / k).abs() < 1e-9);
    let seventh = TrialBandwidth::choose(&burst, slo(70.0, 1.0), 0.5 * MS);
    assert!((seventh.shaping - 6.5 / (1.1 * 1.25f64.powi(9))).abs() < 1e-9, "{seventh:?}");
    assert_eq!(last.bandwidth[Stage::NetworkOut], 0.0);
}

#[test]
fn silo_counts_bandwidth_bursts_and_buffers() {
    let silo = Silo { burst: MS, buffer: 2.5 * MS };
    let mut controller = AdmissionController::new(silo, LINK);
    let trial = |bandwidth: f64| TrialBandwidth {
        bandwidth: PerStage::from_fn(|_| bandwidth),
        shaping: 10.0 * MS,
        uses_storage: false,
    };
    // One burst of 1 ms on each of two links: 12 ms.
    controller.arrive(vec![applicant("a", 14.0 * MS, trial(0.4))]).unwrap();
    assert!((controller.guarantees()[0].latency.unwrap() - 12.0 * MS).abs() < 1e-12);
    let overload = controller.arrive(vec![applicant("b", 1.0, trial(0.7))]).unwrap_err();
    let breach = overload.closest().unwrap().1;
    assert_eq!(breach.workload, "b");
    let BreachCause::Undefined(UndefinedLatency::Overload { stage: Stage::NetworkIn, utilisation }) =
        breach.cause
    else {
        panic!("{breach:?}")
    };
    assert!((utilisation - 1.1).abs() < 1e-12);
    controller.arrive(vec![applicant("c", 1.0, trial(0.1))]).unwrap();
    // Three bursts of 1 ms are more than the buffer, and more than "a" can wait for.
    let full = controller.arrive(vec![applicant("d", 1.0, trial(0.1))]).unwrap_err();
    assert_eq!(full.closest().unwrap().1.cause, BreachCause::Undefined(UndefinedLatency::NoBound));
    let mut larger = AdmissionController::new(Silo { burst: MS, buffer: 1.0 }, LINK);
    larger.arrive(vec![applicant("a", 14.0 * MS, trial(0.4))]).unwrap();
    larger.arrive(vec![applicant("c", 1.0, trial(0.1))]).unwrap();
    let late = larger.arrive(vec![applicant("d", 1.0, trial(0.1))]).unwrap_err();
    assert!((late.closest().unwrap().1.severity() - 16.0 / 14.0).abs() < 1e-9);
}

#[test]
fn silo_plus_reserves_the_effective_bandwidth() {
    let silo = SiloPlus { burst: MS, buffer: 1.0 };
    // 11 ms at once, 1 ms of it in the bucket, budget 22 ms − 2 ms for one's own packet on two links.
    let rates = silo.rates(&inbound(11.0 * MS, 0.1), 20.0 * MS).unwrap();
    assert!((rates[Stage::NetworkIn] - 0.5).abs() < 1e-6, "{rates:?}");
    assert_eq!(rates[Stage::NetworkOut], 0.0);
    // One alone needs 10/20, two need 10/18 each: too much.
    let mut controller = AdmissionController::new(silo, LINK);
    controller.arrive(vec![applicant("a", 22.0 * MS, inbound(11.0 * MS, 0.1))]).unwrap();
    assert!((controller.guarantees()[0].latency.unwrap() - 22.0 * MS).abs() < 1e-6);
    let refusal = controller.arrive(vec![applicant("b", 22.0 * MS, inbound(11.0 * MS, 0.1))]).unwrap_err();
    let breach = refusal.closest().unwrap().1;
    let BreachCause::Undefined(UndefinedLatency::Overload { utilisation, .. }) = breach.cause else {
        panic!("{breach:?}")
    };
    assert!((utilisation - 20.0 / 18.0).abs() < 1e-6);
    // An SLO below the packet guarantee is broken for the workload that has it.
    let hasty = controller.arrive(vec![applicant("c", 3.0 * MS, inbound(0.0, 0.1))]).unwrap_err();
    assert_eq!(hasty.closest().unwrap().1.workload, "c");
}

#[test]
fn silo_plus_divides_the_budget_where_it_costs_least() {
    // Equal bursts both ways: half the budget each, 9 / 10 twice.
    let both = PerStage::from_fn(|s| {
        if s == Stage::Storage { ArrivalCurve::zero() } else { curve(&[(0.0, 10.0 * MS)], 0.0) }
    });
    let rates = SiloPlus { burst: MS, buffer: 1.0 }.rates(&StageCurves { curves: both }, 20.0 * MS).unwrap();
    assert!(
        rates.iter().filter(|(s, _)| *s != Stage::Storage).all(|(_, r)| (r - 0.9).abs() < 1e-6),
        "{rates:?}"
    );
    assert_eq!(SiloPlus { burst: MS, buffer: 1.0 }.rates(&inbound(0.0, 0.1), 0.0), None);
    assert_eq!(SiloPlus { burst: MS, buffer: 1.0 }.rates(&inbound(0.0, 0.1), f64::NAN), None);
}

#[test]
fn qjump_raises_levels_until_slos_are_met() {
    let qjump = QJump { packet: MS, levels: QJumpLevels::Fixed(vec![0.1, 0.5]) };
    let mut controller = AdmissionController::new(qjump, LINK);
    // "a" fits level 0: one packet on two links, (3 − 1) ms / 0.1 in its limiter. 22 ms.
    controller.arrive(vec![applicant("a", 25.0 * MS, inbound(3.0 * MS, 0.1))]).unwrap();
    assert!((controller.guarantees()[0].latency.unwrap() - 22.0 * MS).abs() < 1e-9);
    // "b" sends more than level 0 does. Level 1: two packets at 0.9 on two links, (6 − 1) / 0.5.
    controller.arrive(vec![applicant("b", 15.0 * MS, inbound(6.0 * MS, 0.4))]).unwrap();
    let guarantees = controller.guarantees();
    assert_eq!(guarantees.iter().map(|g| g.priority[Stage::NetworkIn]).collect::<Vec<_>>(), [0, 1]);
    assert!((guarantees[0].latency.unwrap() - 22.0 * MS).abs() < 1e-9);
    assert!((guarantees[1].latency.unwrap() - (4.0 / 0.9 + 10.0) * MS).abs() < 1e-9);
    // Another "b" is too much for the link at level 1.
    let refusal = controller.arrive(vec![applicant("c", 15.0 * MS, inbound(6.0 * MS, 0.4))]).unwrap_err();
    assert!(matches!(
        refusal.closest().unwrap().1.cause,
        BreachCause::Undefined(UndefinedLatency::Overload { .. })
    ));
    // A sustained rate above the last level's has no bound at any level.
    let steady = controller.arrive(vec![applicant("d", 1e6, inbound(0.0, 0.6))]).unwrap_err();
    assert_eq!(steady.closest().unwrap().1.workload, "d");
    assert!(controller.depart("a").is_some());
    assert_eq!(controller.guarantees()[0].priority[Stage::NetworkIn], 1);
}

#[test]
fn qjump_by_its_equation_shares_half_the_link() {
    let qjump = QJump { packet: MS, levels: QJumpLevels::Equation };
    assert_eq!(qjump.throughputs(1), [0.5]);
    assert_eq!(qjump.throughputs(4), [0.125, 0.25, 0.5]);
    assert_eq!(qjump.throughputs(5), [0.1, 0.2, 0.4]);
    let mut controller = AdmissionController::new(qjump, LINK);
    // (6 − 1) ms / 0.5 and two links; each newcomer halves the level's throughput, but not the last one's.
    controller.arrive(vec![applicant("a", 12.1 * MS, inbound(6.0 * MS, 0.1))]).unwrap();
    assert!(controller.arrive(vec![applicant("b", 12.1 * MS, inbound(6.0 * MS, 0.1))]).is_err());
    assert_eq!((controller.procedure().name(), controller.len()), ("qjump", 1));
    let none = QJump { packet: MS, levels: QJumpLevels::Fixed(vec![]) };
    assert!(
        AdmissionController::new(none, LINK).arrive(vec![applicant("a", 1.0, inbound(0.0, 0.1))]).is_err()
    );
}

#[test]
fn storage_is_not_covered_and_so_refused() {
    let refused = |controller: Result<usize, super::super::AdmissionRefusal>| {
        assert_eq!(
            controller.unwrap_err().closest().unwrap().1.cause,
            BreachCause::Undefined(UndefinedLatency::NoBound)
        );
    };
    refused(AdmissionController::new(SiloPlus { burst: MS, buffer: 1.0 }, LINK).arrive(vec![applicant(
        "a",
        1e6,
        storing(),
    )]));
    let levels = QJumpLevels::Fixed(vec![0.5]);
    refused(AdmissionController::new(QJump { packet: MS, levels }, LINK).arrive(vec![applicant(
        "a",
        1e6,
        storing(),
    )]));
    let trial = TrialBandwidth { bandwidth: PerStage::from_fn(|_| 0.1), shaping: 0.0, uses_storage: true };
    refused(
        AdmissionController::new(Silo { burst: MS, buffer: 1.0 }, LINK)
            .arrive(vec![applicant("a", 1e6, trial)]),
    );
}

fn any_demand() -> impl Strategy<Value = StageCurves> {
    let one = || (0.0..5.0f64, 1.0..20.0f64, 0.0..1.0f64, 0.0..0.5f64);
    (one(), one()).prop_map(|(a, b)| {
        let link = |(start, length, slope, rate): (f64, f64, f64, f64)| {
            curve(&[(0.0, start * MS), (length * MS, (start + length * slope) * MS)], rate * slope)
        };
        StageCurves {
            curves: PerStage::from_fn(|stage| match stage {
                Stage::NetworkIn => link(a),
                Stage::Storage => ArrivalCurve::zero(),
                Stage::NetworkOut => link(b),
            }),
        }
    })
}

proptest! {
    #[test]
    fn no_division_of_the_budget_needs_less(demand in any_demand(), budget in 1.0..100.0f64, part in 0.001..0.999f64) {
        let silo = SiloPlus { burst: MS, buffer: 1.0 };
        let budget = budget * MS;
        let rates = silo.rates(&demand, budget).unwrap();
        let used: f64 = LINKS
            .iter()
            .filter(|&&s| rates[s] > 0.0)
            .map(|&s| calculus::shaping_delay(&demand.curves[s], rates[s], MS))
            .sum();
        prop_assert!(used <= budget * (1.0 + 1e-9), "{used} of {budget}");
        // Any other rates that keep the budget: at least as much together.
        let rate = |s: Stage, delay: f64| {
            let needed = |v: &CurveVertex| ((v.work - MS) / (v.duration + delay)).max(0.0);
            demand.curves[s].vertices().iter().map(needed).fold(demand.curves[s].sustained_rate(), f64::max)
        };
        let other = rate(LINKS[0], part * budget) + rate(LINKS[1], (1.0 - part) * budget);
        prop_assert!(rates.iter().map(|(_, r)| r).sum::<f64>() <= other * (1.0 + 1e-4));
    }

    #[test]
    fn qjump_stops_when_all_are_content_or_somebody_is_at_the_end(
        demands in prop::collection::vec((any_demand(), 5.0..200.0f64), 1..8),
    ) {
        let qjump = QJump { packet: 0.1 * MS, levels: QJumpLevels::Fixed(vec![0.01, 0.03, 0.1, 0.3]) };
        let all: Vec<_> = demands.iter().map(|(d, l)| applicant("", l * MS, d.clone())).collect();
        let keeps = |members: &[&Applicant<StageCurves>], priorities: &[Priority], i: usize| {
            let server = SharedServer { members, slo_factor: 1.0, levels_max: usize::MAX };
            qjump.latencies(&server, priorities)[i].is_ok_and(|l| server.keeps(i, l))
        };
        let levels = |members: &[&Applicant<StageCurves>]| {
            qjump.priorities(&SharedServer { members, slo_factor: 1.0, levels_max: usize::MAX })
        };
        let members: Vec<_> = all.iter().collect();
        let found = levels(&members);
        let content = |i: &usize| keeps(&members, &found, *i);
        let (happy, rest): (Vec<_>, Vec<_>) = (0..all.len()).partition(content);
        prop_assert!(happy.len() == all.len() || rest.iter().any(|&i| found[i][Stage::NetworkIn] == 3));
        // Alone: the first level that does.
        for one in &members {
            let first = (0..4).find(|&l| keeps(&[one], &[PerStage::from_fn(|_| l)], 0)).unwrap_or(3);
            prop_assert_eq!(levels(&[one])[0], PerStage::from_fn(|_| first));
        }
    }
}
