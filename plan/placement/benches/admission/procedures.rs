//! Deciders: every model and baseline behind an admission controller.

use crate::world::{Arrival, World, slo};
use crate::{LINK, PACKET, SLOS};
use model::{CircularTrace, Job, LatencyModel, PerStage, Slo};
use placement::admission::{
    AdmissionController, AdmissionProcedure, Applicant, ByModel, IdenticalServers, QJump, QJumpLevels, Silo,
    SiloPlus, StageCurves, TrialBandwidth, priority_meister,
};
use predict::{
    Convolution, Probabilistic, PublishedSnc, Replayed, Reshaping, SncByStage, WorstCase, WorstCaseSketch,
};
use std::sync::Arc;

/// Something that decides on a sequence of arrivals.
pub(crate) trait Decider {
    fn name(&self) -> String;
    /// Returns the decision on each arrival.
    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool>;
    /// The largest number of orders that it decides on.
    fn orders(&self) -> usize {
        usize::MAX
    }
}

pub(crate) fn admitted_by<P: AdmissionProcedure>(
    procedure: P,
    sketch: impl Fn(&Arrival) -> Arc<P::Sketch>,
    arrivals: &[Arrival],
) -> Vec<bool> {
    let mut controller = AdmissionController::new(procedure, IdenticalServers::LINK);
    let applicant = |a: &Arrival| Applicant {
        name: format!("w{}", a.copy),
        slo: a.slo,
        base_latency: 0.0,
        group: None,
        sketch: sketch(a),
    };
    arrivals.iter().map(|a| controller.admit(vec![applicant(a)]).is_some()).collect()
}

pub(crate) struct ModelDecider<M: LatencyModel> {
    model: M,
    label: &'static str,
    sketches: Vec<Arc<M::Sketch>>,
    orders: usize,
}

impl<M: LatencyModel> ModelDecider<M> {
    fn new(model: M, label: &'static str, traces: &[CircularTrace<Job>], orders: usize) -> Self {
        let sketches = traces.iter().map(|t| Arc::new(model.sketch(t))).collect();
        Self { model, label, sketches, orders }
    }
}

impl<M: LatencyModel> Decider for ModelDecider<M> {
    fn name(&self) -> String {
        self.label.to_owned()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        admitted_by(ByModel::by_slo(&self.model), |a| Arc::clone(&self.sketches[a.trace]), arrivals)
    }

    fn orders(&self) -> usize {
        self.orders
    }
}

/// PriorityMeister: limiters before every stage, priorities by its search.
pub(crate) struct PriorityMeisterDecider {
    sketches: Vec<Arc<WorstCaseSketch>>,
}

pub(crate) const RESHAPED: WorstCase = WorstCase { reshaping: Reshaping::EveryStage };

impl Decider for PriorityMeisterDecider {
    fn name(&self) -> String {
        "PM, searched".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        let procedure = ByModel::searched(&RESHAPED, &|_, server| {
            priority_meister(server, WorstCaseSketch::curve, &PerStage::default())
        });
        admitted_by(procedure, |a| Arc::clone(&self.sketches[a.trace]), arrivals)
    }
}

/// The worst case in three forms.
pub(crate) fn worst_cases(traces: &[CircularTrace<Job>]) -> Vec<Box<dyn Decider>> {
    let sketches = traces.iter().map(|t| Arc::new(RESHAPED.sketch(t))).collect();
    vec![
        Box::new(PriorityMeisterDecider { sketches }),
        Box::new(ModelDecider::new(RESHAPED, "PM, by SLO", traces, usize::MAX)),
        Box::new(ModelDecider::new(WorstCase::default(), "worst-case", traces, usize::MAX)),
    ]
}

pub(crate) struct CurveDecider<P> {
    procedure: P,
    label: String,
    curves: Vec<Arc<StageCurves>>,
}

impl<P: AdmissionProcedure<Sketch = StageCurves> + Clone> Decider for CurveDecider<P> {
    fn name(&self) -> String {
        self.label.clone()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        admitted_by(self.procedure.clone(), |a| Arc::clone(&self.curves[a.trace]), arrivals)
    }
}

pub(crate) struct SiloDecider {
    silo: Silo,
    /// The bandwidths that users chose, by trace and then SLO.
    trials: Vec<Vec<Arc<TrialBandwidth>>>,
}

impl Decider for SiloDecider {
    fn name(&self) -> String {
        "silo".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        let index = |slo: Slo| SLOS.iter().position(|&s| s == slo.latency.0).expect("drawn from these");
        admitted_by(self.silo, |a| Arc::clone(&self.trials[a.trace][index(a.slo)]), arrivals)
    }
}

pub(crate) struct AdmitAll;

impl Decider for AdmitAll {
    fn name(&self) -> String {
        "no admission control".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        vec![true; arrivals.len()]
    }
}

/// Fewer alignments than the default, so that orders take minutes: 90 % of alignments with 95 % confidence.
pub(crate) fn replayed() -> Replayed {
    Replayed::new(29, 0.9, 0.95, 7).expect("29 alignments are enough")
}

pub(crate) fn link_offices(world: &World, factor: f64) -> Vec<Box<dyn Decider>> {
    let curves: Vec<Arc<StageCurves>> =
        world.first.iter().map(|t| Arc::new(StageCurves::from_trace(t).expect("minutes of work"))).collect();
    let packet = PACKET / (LINK / factor);
    let silo = Silo { burst: packet, buffer: f64::INFINITY };
    let trial = |t: &CircularTrace<Job>, latency: f64| {
        Arc::new(TrialBandwidth::choose(t, slo(99.9, latency), packet))
    };
    let trials =
        world.first.iter().map(|t| SLOS.iter().map(|&latency| trial(t, latency)).collect()).collect();
    let qjump = |label: &str, levels: QJumpLevels| -> Box<dyn Decider> {
        Box::new(CurveDecider {
            procedure: QJump { packet, levels },
            label: label.into(),
            curves: curves.clone(),
        })
    };
    let powers =
        |ratio: f64, count: i32| QJumpLevels::Fixed((1..=count).rev().map(|k| ratio.powi(-k)).collect());
    let silo_plus = SiloPlus { burst: packet, buffer: f64::INFINITY };
    let mut procedures: Vec<Box<dyn Decider>> = vec![
        Box::new(SiloDecider { silo, trials }),
        Box::new(CurveDecider { procedure: silo_plus, label: "silo++".into(), curves: curves.clone() }),
        qjump("qjump", QJumpLevels::Equation),
        qjump("qjump++ (8 of x2)", powers(2.0, 8)),
        qjump("qjump++ (24 of x1.3)", powers(1.3, 24)),
    ];
    procedures.extend(worst_cases(&world.first));
    procedures.extend(models(world, crate::support::number_after("--replays").unwrap_or(3)));
    procedures
}

/// The models that know percentiles, and no admission control at all.
pub(crate) fn models(world: &World, replays: usize) -> Vec<Box<dyn Decider>> {
    let exact = PublishedSnc { convolution: Convolution::Exact, ..PublishedSnc::default() };
    vec![
        Box::new(ModelDecider::new(PublishedSnc::default(), "published-snc", &world.first, usize::MAX)),
        Box::new(ModelDecider::new(exact, "published-snc, exact", &world.first, usize::MAX)),
        Box::new(ModelDecider::new(SncByStage::default(), "snc-by-stage", &world.first, usize::MAX)),
        Box::new(ModelDecider::new(Probabilistic::default(), "probabilistic", &world.first, usize::MAX)),
        Box::new(ModelDecider::new(replayed(), "replayed", &world.first, replays)),
        Box::new(AdmitAll),
    ]
}
