//! What a bench plays, and how often.

use crate::mode::ScheduleMode;
use std::path::PathBuf;
use units::Nanos;

/// What is played, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchSettings {
    /// The modes, each once.
    pub modes: Vec<ScheduleMode>,
    /// The limit of requests in service where a mode has one, at least 1; none is no limit.
    pub c: Option<u32>,
    /// How often every mode plays, at least 1.
    pub repetitions: usize,
    /// For how long requests arrive in each play.
    pub duration: Nanos,
    /// Of arrivals, work and the order of modes.
    pub seed: u64,
    /// Of the intervals of ratios, strictly between 0 and 1.
    pub confidence: f64,
    /// On how many CPUs the stations are put together, each CPU a tier, at least 1; none: each station is a tier.
    pub cpus: Option<usize>,
    /// The program whose `schedule tier` is a tier.
    pub program: PathBuf,
}
