//! Admission procedures by the names in options, with the parameters of the published ones.

use crate::prediction::enforced_models::{probabilistic, published_snc, replaying, worst_case};
use crate::prediction::problem::{PredictionProblem, TracedWorkload};
use crate::prediction::slo_calibration::{filling_model, slo_calibration};
use model::LatencyModel;
use operation::ProgressObserver;
use placement::admission::{
    AdmissionProcedure, ByModel, QJump, QJumpLevels, Silo, SiloPlus, StageCurves, TrialBandwidth,
    priority_meister,
};
use predict::{BegunWork, EnforcedModel, EnforcedSketch, Replayed, Reshaping, WorstCase};

/// Bytes of a packet, and of the burst that Silo allows (thesis §4.3.1).
const PACKET: f64 = 1500.0;
/// Bytes that a port of a shallow switch buffers.
const BUFFER: f64 = 312_500.0;
/// Throughputs of the classes of QJump++, fraction of a link.
const QJUMP_LEVELS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// A rule by which workloads are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcedureName {
    /// Every workload stays within its burst curves.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces; a bound.
    Probabilistic,
    /// The traces are replayed at random shifts; an estimate with confidence.
    Replayed,
    /// As `Replayed`, with margins for the next window of traffic.
    Calibrated,
    /// The published procedure of SNC-Meister, to compare with.
    PublishedSnc,
    /// The worst case with priorities searched per stage.
    PriorityMeister,
    /// Fixed small bursts, rates chosen by trial; links only.
    Silo,
    /// Effective bandwidth decides; links only.
    SiloPlus,
    /// One class per workload by its throughput; links only.
    QJump,
    /// QJump with fixed throughputs; links only.
    QJumpPlus,
}

/// An operation on a procedure of any type.
pub(crate) trait ProcedureVisitor {
    type Output;
    /// Applies the operation; `sketch` computes the procedure's data about a workload.
    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&TracedWorkload) -> P::Sketch + Sync,
    ) -> Self::Output;
}

impl ProcedureName {
    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorstCase => "worst-case",
            Self::Probabilistic => "probabilistic",
            Self::Replayed => "replayed",
            Self::Calibrated => "calibrated",
            Self::PublishedSnc => "published-snc",
            Self::PriorityMeister => "priority-meister",
            Self::Silo => "silo",
            Self::SiloPlus => "silo++",
            Self::QJump => "qjump",
            Self::QJumpPlus => "qjump++",
        }
    }

    /// Returns true if the rule is defined for network links only.
    pub fn is_for_links(self) -> bool {
        matches!(self, Self::Silo | Self::SiloPlus | Self::QJump | Self::QJumpPlus)
    }

    /// Returns the assumption of a promise, completing "NAME: …".
    pub fn assumption(self) -> &'static str {
        match self {
            Self::PriorityMeister => {
                "holds for every request as long as limiters before every stage hold each workload to the burst curves \
                 of its trace"
            }
            Self::WorstCase => {
                "holds for every request as long as every workload stays within its limits, however the bursts meet"
            }
            Self::Probabilistic => {
                "a bound on the percentile over all requests at all shifts, if workloads are independent and behave \
                 as in their traces"
            }
            Self::Replayed => {
                "the traces replayed at 59 random alignments (relative shifts of the traces): with 95% confidence, the \
                 percentile is at most the predicted latency in at least 95% of all alignments, if workloads are \
                 independent and behave as in their traces"
            }
            Self::Calibrated => {
                "holds in the next window of traffic with the coverage that is asked for, if windows of a trace are exchangeable and \
                 traces are independent; without enough windows the worst case, which holds as long as the window stays within the \
                 burst curves of its trace"
            }
            Self::PublishedSnc => {
                "the published stochastic bound, to compare with; bursty traffic exceeds it"
            }
            Self::Silo | Self::SiloPlus | Self::QJump | Self::QJumpPlus => {
                "a published system, to compare with; a worst case under its own rate limits"
            }
        }
    }

    /// Returns true if promises are about servers with enforcers. The others, for comparison, are about
    /// preemptive servers.
    pub fn counts_enforcement(self) -> bool {
        matches!(
            self,
            Self::WorstCase | Self::Probabilistic | Self::Replayed | Self::Calibrated | Self::PriorityMeister
        )
    }

    /// Applies the visitor to the procedure of this name, for the servers and workloads of this problem.
    pub(crate) fn visit<V: ProcedureVisitor>(
        self,
        problem: &PredictionProblem,
        observer: &dyn ProgressObserver,
        visitor: V,
    ) -> V::Output {
        let bandwidth = problem.network;
        let enforced = problem.enforced;
        let packet = PACKET / bandwidth.bytes_per_sec();
        let buffer = BUFFER / bandwidth.bytes_per_sec();
        match self {
            Self::WorstCase => by_slo(&worst_case(enforced), visitor),
            Self::Probabilistic => by_slo(&probabilistic(enforced), visitor),
            Self::Replayed => by_slo(&replaying(Replayed::default(), enforced), visitor),
            Self::Calibrated => match slo_calibration(problem, observer).load {
                Some(load) => by_slo(&filling_model(problem, load), visitor),
                None => by_slo(&worst_case(enforced), visitor),
            },
            Self::PublishedSnc => by_slo(&published_snc(), visitor),
            Self::PriorityMeister => {
                let model = WorstCase { reshaping: Reshaping::EveryStage };
                let model = EnforcedModel::new(model, BegunWork::WorstCase, enforced);
                let procedure = ByModel::searched(&model, &|model, server| {
                    let begun = model.begun_by_stage(server.members.iter().map(|member| &*member.sketch));
                    priority_meister(server, EnforcedSketch::curve, &begun)
                });
                visitor.visit(procedure, |workload| model.sketch(&workload.traffic))
            }
            Self::Silo => visitor.visit(Silo { burst: packet, buffer }, |workload| {
                TrialBandwidth::choose(&workload.traffic, workload.spec.slo, packet)
            }),
            Self::SiloPlus => visitor.visit(SiloPlus { burst: packet, buffer }, countable_curves),
            Self::QJump => visitor.visit(QJump { packet, levels: QJumpLevels::Equation }, countable_curves),
            Self::QJumpPlus => {
                let levels = QJumpLevels::Fixed(QJUMP_LEVELS.to_vec());
                visitor.visit(QJump { packet, levels }, countable_curves)
            }
        }
    }
}

/// Returns the arrival curves that the rules for links use. Callers have checked that the workload has such
/// curves.
fn countable_curves(workload: &TracedWorkload) -> StageCurves {
    StageCurves::from_trace(&workload.traffic).expect("countable traffic")
}

fn by_slo<M: LatencyModel, V: ProcedureVisitor>(model: &M, visitor: V) -> V::Output {
    visitor.visit(ByModel::by_slo(model), |workload| model.sketch(&workload.traffic))
}
