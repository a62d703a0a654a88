//! Models and admission procedures by the names that users give them.

use crate::input::Tenant;
use ::plan::admission::{
    AdmissionProcedure, ByModel, QJump, QJumpLevels, Silo, SiloPlus, StageCurves, TrialBandwidth,
    priority_meister,
};
use clap::ValueEnum;
use model::LatencyModel;
use predict::{Probabilistic, PublishedSnc, Replayed, Reshaping, WorstCase, WorstCaseSketch};
use serde::Serialize;
use units::ByteRate;

/// Bytes of a packet, and of the burst that Silo allows (thesis §4.3.1).
const PACKET: f64 = 1500.0;
/// Bytes that a port of a shallow switch holds.
const BUFFER: f64 = 312_500.0;
/// Throughputs of the classes of QJump++, fraction of a link.
const QJUMP_LEVELS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// What is assumed of the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModelName {
    /// Nothing but that every workload stays within its burst curves, however they meet.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces, at any shift; a bound.
    Probabilistic,
    /// The published procedure of SNC-Meister, to compare with; not safe on bursty traces.
    PublishedSnc,
    /// Independent workloads (or groups) that repeat their traces at random shifts; an estimate with confidence.
    Replayed,
}

/// Something to be done with a model of any type.
pub(crate) trait ModelVisitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<M: LatencyModel>(self, model: &M) -> Self::Output;
}

impl ModelName {
    /// The three that are shown side by side.
    pub(crate) const SIDE_BY_SIDE: [Self; 3] = [Self::WorstCase, Self::Probabilistic, Self::Replayed];

    /// The name that users write.
    pub(crate) fn name(self) -> &'static str {
        self.as_procedure().name()
    }

    /// What a promise of this model rests on.
    pub(crate) fn assumption(self) -> &'static str {
        self.as_procedure().assumption()
    }

    /// Admission by this model.
    pub(crate) fn as_procedure(self) -> ProcedureName {
        match self {
            Self::WorstCase => ProcedureName::WorstCase,
            Self::Probabilistic => ProcedureName::Probabilistic,
            Self::PublishedSnc => ProcedureName::PublishedSnc,
            Self::Replayed => ProcedureName::Replayed,
        }
    }

    /// Hands the model to the visitor.
    pub(crate) fn run<V: ModelVisitor>(self, visitor: V) -> V::Output {
        match self {
            Self::WorstCase => visitor.visit(&WorstCase::default()),
            Self::Probabilistic => visitor.visit(&Probabilistic::default()),
            Self::PublishedSnc => visitor.visit(&PublishedSnc::default()),
            Self::Replayed => visitor.visit(&Replayed::default()),
        }
    }
}

/// A rule by which workloads are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcedureName {
    /// Nothing is assumed but that every workload stays within its burst curves.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces; a bound.
    Probabilistic,
    /// The traces replayed at random shifts; an estimate with confidence.
    Replayed,
    /// The published procedure of SNC-Meister.
    PublishedSnc,
    /// The worst case with priorities that are searched by stage.
    PriorityMeister,
    /// Fixed small bursts, rates chosen by trial; links only.
    Silo,
    /// Effective bandwidth; links only.
    #[value(name = "silo++")]
    SiloPlus,
    /// One class per workload by its throughput; links only.
    #[value(name = "qjump")]
    QJump,
    /// The same with fixed throughputs; links only.
    #[value(name = "qjump++")]
    QJumpPlus,
}

/// Something to be done with a procedure of any type.
pub(crate) trait ProcedureVisitor {
    /// What comes of it.
    type Output;
    /// Does it; `sketch` is what the procedure keeps of a workload.
    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&Tenant) -> P::Sketch + Sync,
    ) -> Self::Output;
}

impl ProcedureName {
    /// The name that users write.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WorstCase => "worst-case",
            Self::Probabilistic => "probabilistic",
            Self::Replayed => "replayed",
            Self::PublishedSnc => "published-snc",
            Self::PriorityMeister => "priority-meister",
            Self::Silo => "silo",
            Self::SiloPlus => "silo++",
            Self::QJump => "qjump",
            Self::QJumpPlus => "qjump++",
        }
    }

    /// Whether it is defined for network links alone.
    pub(crate) fn is_for_links(self) -> bool {
        matches!(self, Self::Silo | Self::SiloPlus | Self::QJump | Self::QJumpPlus)
    }

    /// What a promise rests on, completing "NAME: …".
    pub(crate) fn assumption(self) -> &'static str {
        match self {
            Self::PriorityMeister => {
                "holds for every request as long as limiters before every stage hold each workload to the burst curves \
                 of its trace"
            }
            Self::WorstCase => {
                "holds for every request as long as every workload stays within the burst curves of its trace, \
                 however the bursts meet"
            }
            Self::Probabilistic => {
                "a bound on the percentile over all requests at all shifts, if workloads are independent and behave \
                 as in their traces"
            }
            Self::Replayed => {
                "the traces replayed at 59 random alignments: with 95% confidence, at least 95% of all alignments \
                 have their percentile within, if workloads are independent and behave as in their traces"
            }
            Self::PublishedSnc => {
                "the published stochastic bound, to compare with; bursty traffic exceeds it"
            }
            Self::Silo | Self::SiloPlus | Self::QJump | Self::QJumpPlus => {
                "a published system, to compare with; a worst case under its own rate limits"
            }
        }
    }

    /// Hands the procedure for links of this bandwidth to the visitor.
    pub(crate) fn run<V: ProcedureVisitor>(self, bandwidth: ByteRate, visitor: V) -> V::Output {
        let (packet, buffer) = (PACKET / bandwidth.bytes_per_sec(), BUFFER / bandwidth.bytes_per_sec());
        // The verb has checked that it can be counted.
        let demand = |tenant: &Tenant| StageCurves::from_trace(&tenant.traffic).expect("countable traffic");
        let qjump = |levels| QJump { packet, levels };
        match self {
            Self::WorstCase => by_slo(&WorstCase::default(), visitor),
            Self::Probabilistic => by_slo(&Probabilistic::default(), visitor),
            Self::Replayed => by_slo(&Replayed::default(), visitor),
            Self::PublishedSnc => by_slo(&PublishedSnc::default(), visitor),
            Self::PriorityMeister => {
                let model = WorstCase { reshaping: Reshaping::EveryStage };
                let sketch = |tenant: &Tenant| model.sketch(&tenant.traffic);
                visitor.visit(
                    ByModel::searched(&model, &|_, server| priority_meister(server, WorstCaseSketch::curve)),
                    sketch,
                )
            }
            Self::Silo => {
                let trial = |t: &Tenant| TrialBandwidth::choose(&t.traffic, t.spec.slo, packet);
                visitor.visit(Silo { burst: packet, buffer }, trial)
            }
            Self::SiloPlus => visitor.visit(SiloPlus { burst: packet, buffer }, demand),
            Self::QJump => visitor.visit(qjump(QJumpLevels::Equation), demand),
            Self::QJumpPlus => visitor.visit(qjump(QJumpLevels::Fixed(QJUMP_LEVELS.to_vec())), demand),
        }
    }
}

fn by_slo<M: LatencyModel, V: ProcedureVisitor>(model: &M, visitor: V) -> V::Output {
    visitor.visit(ByModel::by_slo(model), |tenant| model.sketch(&tenant.traffic))
}
