//! What latency each workload on a server will see, under models that assume more or less of the traffic.
//!
//! A [`Model`] turns the [`Traffic`] of a workload into a sketch, once, and predicts the latency of every
//! [`Member`] of a server from the sketches. All models answer the same question about the same server: a
//! path of stages, each serving in preemptive strict priority, first come first served within a priority.
//! They differ in what they assume, and so in what they promise.
//!
//! Not covered: which workloads to put together (search), and the latency of the idle storage stack, which
//! is added by whoever knows the device.

mod model;
mod probabilistic;
mod published;
mod replayed;
mod traffic;
mod worst_case;

pub use self::model::{Estimate, Member, Model, Prediction, Undefined};
pub use probabilistic::{
    Lateness, Probabilistic, ProbabilisticDerivation, ProbabilisticRefusal, ProbabilisticSketch,
    ProbabilisticTerm,
};
pub use published::{PublishedSketch, PublishedSnc, PublishedStage, Split, markov_arrivals};
pub use replayed::{Correlated, Replayed, Verdict};
pub use traffic::{Path, Traffic, TrafficBuilder, TrafficError};
pub use worst_case::{Leg, Passage, WorstCase, WorstCaseSketch};
