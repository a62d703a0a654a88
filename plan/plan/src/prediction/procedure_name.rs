//! Latency models and admission procedures by the names in options and files: [`PROCEDURES`] has a row for each.

use crate::prediction::enforced_models::worst_case;
use crate::prediction::model_name::{ModelName, ModelVisitor};
use crate::prediction::problem::{PredictionProblem, TracedWorkload};
use crate::prediction::slo_calibration::{filling_model, slo_calibration};
use model::LatencyModel;
use operation::ProgressObserver;
use placement::admission::{
    AdmissionProcedure, ByModel, QJump, QJumpLevels, Silo, SiloPlus, StageCurves, TrialBandwidth,
    priority_meister,
};
use predict::{BegunWork, EnforcedModel, EnforcedSketch, Reshaping, WorstCase};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Bytes of a packet, and of the burst that Silo allows (thesis §4.3.1).
const PACKET: f64 = 1500.0;
/// Bytes that a port of a shallow switch buffers.
const BUFFER: f64 = 312_500.0;
/// Throughputs of the classes of QJump++, fraction of a link.
const QJUMP_LEVELS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// A rule by which workloads are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcedureName {
    /// A workload is admitted if the model predicts that all SLOs are kept.
    ByModel(ModelName),
    /// The worst case with priorities searched per stage.
    PriorityMeister,
    /// Fixed small bursts, rates chosen by trial.
    Silo,
    /// Effective bandwidth decides.
    SiloPlus,
    /// One class per workload by its throughput.
    QJump,
    /// QJump with fixed throughputs.
    QJumpPlus,
}

/// A row of [`PROCEDURES`].
#[derive(Debug)]
pub struct ProcedureRow {
    /// The procedure that the row describes.
    pub procedure: ProcedureName,
    /// Name in options, documents and policy files.
    pub name: &'static str,
    /// Description for help texts.
    pub words: &'static str,
    /// Assumption of a promise, completing "NAME: …".
    pub assumption: &'static str,
    /// The promise is about a percentile, so some requests may take longer.
    pub is_percentile: bool,
    /// Traces are replayed, so that a search with few alignments needs a second judgement.
    pub replays: bool,
    /// The procedure is defined for network links only.
    pub is_for_links: bool,
    /// Promises are about servers with enforcers. The others, for comparison, are about preemptive servers.
    pub counts_enforcement: bool,
}

/// Every procedure; the models come first, from the one that assumes least.
pub static PROCEDURES: [ProcedureRow; 11] = [
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::WorstCase),
        name: "worst-case",
        words: "Nothing is assumed but that every workload stays within its burst curves, however they meet",
        assumption: "holds for every request as long as every workload stays within its limits, however the bursts meet",
        is_percentile: false,
        replays: false,
        is_for_links: false,
        counts_enforcement: true,
    },
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::Probabilistic),
        name: "probabilistic",
        words: "Independent workloads (or groups) that behave as their traces, at any shift; a bound",
        assumption: "a bound on the percentile over all requests at all shifts, if workloads are independent and behave \
                     as in their traces",
        is_percentile: true,
        replays: false,
        is_for_links: false,
        counts_enforcement: true,
    },
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::Replayed),
        name: "replayed",
        words: "Independent workloads (or groups) that repeat their traces at random shifts; an estimate with confidence",
        assumption: "the traces replayed at 59 random alignments (relative shifts of the traces): with 95% confidence, the \
                     percentile is at most the predicted latency in at least 95% of all alignments, if workloads are \
                     independent and behave as in their traces",
        is_percentile: true,
        replays: true,
        is_for_links: false,
        counts_enforcement: true,
    },
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::Calibrated),
        name: "calibrated",
        words: "Replayed, with margins for the next window of traffic, from held-out windows; see --coverage",
        assumption: "holds in the next window of traffic with the coverage that is asked for, if windows of a trace are exchangeable and \
                     traces are independent; without enough windows the worst case, which holds as long as the window stays within the \
                     burst curves of its trace",
        is_percentile: true,
        replays: true,
        is_for_links: false,
        counts_enforcement: true,
    },
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::PublishedSnc),
        name: "published-snc",
        words: "SNC-Meister: one stochastic bound over the whole path, to compare with; not safe on bursty traces",
        assumption: "the published stochastic bound, to compare with; bursty traffic exceeds it",
        is_percentile: true,
        replays: false,
        is_for_links: false,
        counts_enforcement: false,
    },
    ProcedureRow {
        procedure: ProcedureName::ByModel(ModelName::SncByStage),
        name: "snc-by-stage",
        words: "As published-snc with a bound for each stage, added; to compare with, not safe on bursty traces",
        assumption: "a stochastic bound for each stage, to compare with; bursty traffic exceeds it, and arrivals at later stages \
                     are taken as they were at the first",
        is_percentile: true,
        replays: false,
        is_for_links: false,
        counts_enforcement: false,
    },
    ProcedureRow {
        procedure: ProcedureName::PriorityMeister,
        name: "priority-meister",
        words: "The worst case with priorities that are searched by stage, to compare with",
        assumption: "holds for every request as long as limiters before every stage hold each workload to the burst curves \
                     of its trace",
        is_percentile: false,
        replays: false,
        is_for_links: false,
        counts_enforcement: true,
    },
    ProcedureRow {
        procedure: ProcedureName::Silo,
        name: "silo",
        words: "Fixed small bursts, rates chosen by trial; links only",
        assumption: PUBLISHED_SYSTEM,
        is_percentile: false,
        replays: false,
        is_for_links: true,
        counts_enforcement: false,
    },
    ProcedureRow {
        procedure: ProcedureName::SiloPlus,
        name: "silo++",
        words: "Effective bandwidth; links only",
        assumption: PUBLISHED_SYSTEM,
        is_percentile: false,
        replays: false,
        is_for_links: true,
        counts_enforcement: false,
    },
    ProcedureRow {
        procedure: ProcedureName::QJump,
        name: "qjump",
        words: "One class per workload by its throughput; links only",
        assumption: PUBLISHED_SYSTEM,
        is_percentile: false,
        replays: false,
        is_for_links: true,
        counts_enforcement: false,
    },
    ProcedureRow {
        procedure: ProcedureName::QJumpPlus,
        name: "qjump++",
        words: "QJump with fixed throughputs; links only",
        assumption: PUBLISHED_SYSTEM,
        is_percentile: false,
        replays: false,
        is_for_links: true,
        counts_enforcement: false,
    },
];

const PUBLISHED_SYSTEM: &str = "a published system, to compare with; a worst case under its own rate limits";

impl ModelName {
    /// Name in options and files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the model's row among the procedures.
    pub fn row(self) -> &'static ProcedureRow {
        ProcedureName::ByModel(self).row()
    }
}

impl Serialize for ModelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for ModelName {
    fn schema_name() -> Cow<'static, str> {
        "ModelName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let models = PROCEDURES.iter().filter(|row| matches!(row.procedure, ProcedureName::ByModel(_)));
        let names =
            models.map(|row| json_schema!({ "const": row.name, "description": row.words, "type": "string" }));
        json_schema!({ "description": "Assumption about the traffic.", "oneOf": names.collect::<Vec<_>>() })
    }
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

/// Visits the procedure that admits by a model.
struct VisitByModel<V>(V);

impl<V: ProcedureVisitor> ModelVisitor for VisitByModel<V> {
    type Output = V::Output;

    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> V::Output {
        self.0.visit(ByModel::by_slo(model), |workload| model.sketch(&workload.traffic))
    }
}

impl From<ModelName> for ProcedureName {
    fn from(model: ModelName) -> Self {
        Self::ByModel(model)
    }
}

impl ProcedureName {
    /// Returns the procedure's row.
    ///
    /// # Panics
    /// When [`PROCEDURES`] lacks it.
    pub fn row(self) -> &'static ProcedureRow {
        PROCEDURES.iter().find(|row| row.procedure == self).expect("every procedure has a row")
    }

    /// Name in options and files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Applies the visitor to the procedure of this name, for the servers and workloads of this problem.
    pub(crate) fn visit<V: ProcedureVisitor>(
        self,
        problem: &PredictionProblem,
        observer: &dyn ProgressObserver,
        visitor: V,
    ) -> V::Output {
        let bandwidth = problem.server().network;
        let enforced = problem.enforced;
        let packet = PACKET / bandwidth.bytes_per_sec();
        let buffer = BUFFER / bandwidth.bytes_per_sec();
        match self {
            // A decision needs a margin on load, which is found once for all SLOs; a prediction needs one on
            // each latency.
            Self::ByModel(ModelName::Calibrated) => match slo_calibration(problem, observer).load {
                Some(load) => VisitByModel(visitor).visit(&filling_model(problem, load)),
                None => VisitByModel(visitor).visit(&worst_case(enforced)),
            },
            Self::ByModel(model) => model.visit(problem, None, observer, VisitByModel(visitor)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Policy, PolicyServer, ServerEnforcement};
    use std::collections::BTreeSet;

    #[test]
    fn every_procedure_has_one_row() {
        for row in &PROCEDURES {
            assert_eq!(row.procedure.row().name, row.name);
        }
        let names: BTreeSet<&str> = PROCEDURES.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), PROCEDURES.len());
    }

    /// A policy knows only the name of the model that promised its bounds.
    #[test]
    fn policies_know_which_models_promise_a_percentile() {
        let enforcement = ServerEnforcement {
            channels: 1,
            outstanding: 1,
            beside: 1,
            reserve: 0,
            best_effort_request_s: 0.0,
            packet_bytes: 1500.0,
            link_burst_s: None,
            proxy_s: 0.0,
        };
        let server = PolicyServer {
            name: "server".to_owned(),
            class: "ssd".to_owned(),
            network_bytes_per_s: 1e9,
            storage_profile: "ssd".to_owned(),
            storage_profile_hash: None,
            enforcement: Some(enforcement),
        };
        for row in &PROCEDURES {
            let policy = Policy::new(row.name, vec![server.clone()], Vec::new()).expect("a sound policy");
            assert_eq!(policy.covers_every_request("server"), !row.is_percentile, "{}", row.name);
        }
    }
}
