//! Names of models and admission procedures as users write them, with what `--help` says of each.

use clap::ValueEnum;
use plan::prediction::{ModelName, ProcedureName};

/// Assumption about the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelChoice {
    /// Nothing but that every workload stays within its burst curves, however they meet.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces, at any shift; a bound.
    Probabilistic,
    /// The published procedure of SNC-Meister, to compare with; not safe on bursty traces.
    PublishedSnc,
    /// Independent workloads (or groups) that repeat their traces at random shifts; an estimate with confidence.
    Replayed,
    /// Replayed, with margins for the next window of traffic, from held-out windows; see --coverage.
    Calibrated,
}

impl From<ModelChoice> for ModelName {
    fn from(choice: ModelChoice) -> Self {
        match choice {
            ModelChoice::WorstCase => Self::WorstCase,
            ModelChoice::Probabilistic => Self::Probabilistic,
            ModelChoice::PublishedSnc => Self::PublishedSnc,
            ModelChoice::Replayed => Self::Replayed,
            ModelChoice::Calibrated => Self::Calibrated,
        }
    }
}

/// A rule by which workloads are admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProcedureChoice {
    /// Nothing is assumed but that every workload stays within its burst curves.
    WorstCase,
    /// Independent workloads (or groups) that behave as their traces; a bound.
    Probabilistic,
    /// The traces replayed at random shifts; an estimate with confidence.
    Replayed,
    /// Replayed, with margins for the next window of traffic; see --coverage.
    Calibrated,
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
    /// QJump with fixed throughputs; links only.
    #[value(name = "qjump++")]
    QJumpPlus,
}

impl From<ProcedureChoice> for ProcedureName {
    fn from(choice: ProcedureChoice) -> Self {
        match choice {
            ProcedureChoice::WorstCase => Self::WorstCase,
            ProcedureChoice::Probabilistic => Self::Probabilistic,
            ProcedureChoice::Replayed => Self::Replayed,
            ProcedureChoice::Calibrated => Self::Calibrated,
            ProcedureChoice::PublishedSnc => Self::PublishedSnc,
            ProcedureChoice::PriorityMeister => Self::PriorityMeister,
            ProcedureChoice::Silo => Self::Silo,
            ProcedureChoice::SiloPlus => Self::SiloPlus,
            ProcedureChoice::QJump => Self::QJump,
            ProcedureChoice::QJumpPlus => Self::QJumpPlus,
        }
    }
}
