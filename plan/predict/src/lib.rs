//! What latency each workload on a server will see, under models that assume more or less of the traffic.
//!
//! Each model here implements [`model::LatencyModel`]: it turns the circular trace of a workload into a sketch, once,
//! and predicts the latency of every member of a server from the members' sketches.
//!
//! - [`WorstCase`] assumes nothing of how bursts meet (deterministic network calculus); a bound.
//! - [`Probabilistic`] assumes independent workloads that behave as their traces; a bound.
//! - [`Replayed`] assumes the same and replays the traces at random shifts; an estimate with confidence.
//! - [`Calibrated`] multiplies that by how far windows of the traces were from what the rest predicted, so that the
//!   promise is about the next window.
//! - [`LoadedReplays`] replays more work than the traces have, or takes the worst case: to fill servers whose SLOs are kept in
//!   the next window. [`slo_coverage`] says how often held-out windows kept them.
//! - [`PublishedSnc`] is the published procedure of SNC-Meister, [`SncByStage`] the same with one bound per stage; to compare
//!   with, not safe on real traffic.
//!
//! [`EnforcedModel`] makes of any of them one about servers as their enforcers use them, which interrupt nothing.
//!
//! Not covered: which workloads to put together (the search in `plan`), and the latency of the idle storage stack,
//! which the caller adds: it knows the device.

mod calibrated;
mod cap;
mod enforced;
mod loaded;
mod probabilistic;
mod published;
mod replayed;
mod worst_case;

pub use calibrated::{
    Calibrated, CalibratedSketch, CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember,
    KeptShares, LatencyMargin, MarginAnswer, MarginBasis, SloCalibration, SloCoverage, SloTrial,
    TooFewWindows, TrialCompany, slo_coverage,
};
pub use enforced::{
    BegunWork, EnforcedLatency, EnforcedModel, EnforcedPath, EnforcedSketch, bunching_allowance,
};
pub use loaded::{LoadedReplays, LoadedSketch, RememberedLoadedReplays};
pub use probabilistic::{
    LatenessSum, OneBurstSum, OneBurstTerms, Probabilistic, ProbabilisticDerivation, ProbabilisticRefusal,
    ProbabilisticSketch, ProbabilisticTerm,
};
pub use published::{
    Convolution, EpsilonSplit, PathLatency, PathSketch, PublishedSnc, SncByStage, SncStage, StageSketch,
    markov_arrivals,
};
pub use replayed::{BudgetCheck, CorrelatedLatency, RememberedReplays, Replayed};
pub use worst_case::{Reshaping, WorstCase, WorstCaseSketch, WorstCaseTerm};
