//! The desk with every model on real traffic: 75 s each of some of the published traces on a link.

// The name that the shared support knows the crate by.
extern crate predict as predict;

#[path = "../benches/support/mod.rs"]
mod support;

use model::{CircularTrace, Job, LatencyModel, PerStage, Slo};
use placement::admission::{
    AdmissionController, AdmissionProcedure, Applicant, ByModel, IdenticalServers, priority_meister,
};
use predict::{Probabilistic, PublishedSnc, Replayed, Reshaping, WorstCase, WorstCaseSketch};
use sim::{Alignment, PreemptionMode, ReplayStream, ReplaySystem, ReplayTrace};
use std::sync::Arc;
use support::Through;
use units::{Percentile, Seconds};

const SLOS: [f64; 3] = [0.05, 0.1, 0.2];

/// An eighth of each of ten traces, on a link of 31 MB/s.
fn traffic() -> Option<Vec<CircularTrace<Job>>> {
    let all = support::traces(Through::Link)?;
    let part = |t: &CircularTrace<Job>| {
        let first = |t: CircularTrace<Job>| t.halves().map(|[first, _]| first);
        Some(support::slower(&first(first(first(t.clone())?)?)?, 4.0))
    };
    Some(all.iter().filter_map(part).filter(|t| t.items().len() < 3000).take(10).collect())
}

fn slo(i: usize) -> Slo {
    let percent = [99.9, 99.0, 90.0][i / 3 % 3];
    Slo::new(Percentile::new(percent).unwrap(), Seconds(SLOS[i % 3])).unwrap()
}

fn applicants<M: LatencyModel>(model: &M, traffic: &[CircularTrace<Job>]) -> Vec<Applicant<M::Sketch>> {
    let applicant = |(i, t): (usize, &CircularTrace<Job>)| Applicant {
        name: format!("w{i}"),
        slo: slo(i),
        base_latency: 0.0,
        // The last three are dependent.
        group: (i >= 7).then_some(1),
        sketch: Arc::new(model.sketch(t)),
    };
    traffic.iter().enumerate().map(applicant).collect()
}

type Places = Vec<(String, usize, PerStage<u32>)>;

fn places<P: AdmissionProcedure>(controller: &AdmissionController<P>) -> Places {
    controller.placements().map(|(name, server, priority)| (name.to_owned(), server, priority)).collect()
}

/// All workloads arrive at two servers, one by one, and each that was admitted leaves again before the next;
/// then all stay.
fn laws<P: AdmissionProcedure + Clone>(procedure: &P, applicants: &[Applicant<P::Sketch>]) -> Places {
    let host = IdenticalServers { count: 2, ..IdenticalServers::LINK };
    let mut controller = AdmissionController::new(procedure.clone(), host);
    for one in applicants {
        let before = places(&controller);
        let quick = controller.clone().admit(vec![one.clone()]);
        let place = controller.arrive(vec![one.clone()]);
        assert_eq!(
            place.as_ref().ok(),
            quick.as_ref(),
            "{}: the reason is extra: {place:?}",
            procedure.name()
        );
        let Ok(_) = place else { continue };
        controller.depart(&one.name).expect("it came");
        assert_eq!(places(&controller), before, "{}", procedure.name());
        assert_eq!(controller.arrive(vec![one.clone()]), place);
    }
    for given in controller.guarantees() {
        let latency = given.latency.expect("it was admitted");
        assert!(latency > 0.0 && latency <= given.slo.latency.0, "{given:?}");
    }
    places(&controller)
}

fn by_slo<M: LatencyModel>(model: &M, traffic: &[CircularTrace<Job>]) -> Places {
    laws(&ByModel::by_slo(model), &applicants(model, traffic))
}

#[test]
fn every_model_decides_by_the_same_laws() {
    let Some(traffic) = traffic() else { return };
    let worst = by_slo(&WorstCase::default(), &traffic);
    let probable = by_slo(&Probabilistic::default(), &traffic);
    let replayed = by_slo(&Replayed::new(22, 0.9, 0.9, 1).unwrap(), &traffic);
    by_slo(&PublishedSnc::default(), &traffic);
    // Percentiles admit more than the worst case here, replay more than bounds.
    assert!(worst.len() <= probable.len() && probable.len() <= replayed.len());
    assert!(!worst.is_empty() && worst.len() < traffic.len(), "{worst:?}");
}

#[test]
fn who_was_admitted_by_the_worst_case_is_never_late() {
    let Some(traffic) = traffic() else { return };
    let reshaped = WorstCase { reshaping: Reshaping::EveryStage };
    laws(
        &ByModel::searched(&reshaped, &|_, server| {
            priority_meister(server, WorstCaseSketch::curve, &PerStage::default())
        }),
        &applicants(&reshaped, &traffic),
    );
    let places = by_slo(&WorstCase::default(), &traffic);
    let record = |t: &CircularTrace<Job>| ReplayTrace::new(t.clone()).unwrap();
    let traces: Vec<ReplayTrace> = traffic.iter().map(record).collect();
    for server in 0..2 {
        let index = |name: &str| name[1..].parse::<usize>().unwrap();
        let here: Vec<(usize, PerStage<u32>)> =
            places.iter().filter(|p| p.1 == server).map(|p| (index(&p.0), p.2)).collect();
        let stream = |&(i, priority): &(usize, _)| ReplayStream { trace: &traces[i], priority, group: i };
        let Ok(system) = ReplaySystem::new(here.iter().map(stream).collect()) else { continue };
        let longest = vec![Percentile::new(100.0).unwrap(); here.len()];
        let alignments: Vec<Alignment> =
            Alignment::random(3, 20).chain([Alignment::Recorded, Alignment::BurstsTogether]).collect();
        for (seen, _) in
            sim::alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &longest)
        {
            for (seen, (i, _)) in seen.into_iter().zip(&here) {
                assert!(seen.unwrap().as_secs() <= SLOS[i % 3], "w{i}");
            }
        }
    }
}
