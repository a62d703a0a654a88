//! What latency each workload on a server will see, under models that assume more or less of the traffic.
//!
//! Each model here implements [`model::LatencyModel`]: it turns the circular trace of a workload into a sketch, once,
//! and predicts the latency of every member of a server from the members' sketches.
//!
//! Not covered: which workloads to put together (the search in `plan`), and the latency of the idle storage stack,
//! which is added by whoever knows the device.

mod probabilistic;
mod published;
mod replayed;
mod worst_case;

pub use probabilistic::{
    Lateness, Probabilistic, ProbabilisticDerivation, ProbabilisticRefusal, ProbabilisticSketch,
    ProbabilisticTerm,
};
pub use published::{PublishedSketch, PublishedSnc, PublishedStage, Split, markov_arrivals};
pub use replayed::{Correlated, Replayed, Verdict};
pub use worst_case::{Leg, Passage, WorstCase, WorstCaseSketch};
