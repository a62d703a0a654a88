//! Settings of a bench.

use crate::mode::ScheduleMode;
use std::path::PathBuf;
use units::Nanos;

/// Settings of a bench.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchSettings {
    /// Modes, each once.
    pub modes: Vec<ScheduleMode>,
    /// Limit of requests in service in modes that have one, at least 1; `None` is no limit.
    pub c: Option<u32>,
    /// Number of plays of every mode, at least 1.
    pub repetitions: usize,
    /// Time during which requests arrive in each play.
    pub duration: Nanos,
    /// Seed of arrivals, work and the order of modes.
    pub seed: u64,
    /// Confidence of the intervals of ratios, strictly between 0 and 1.
    pub confidence: f64,
    /// Number of CPUs on which stations are grouped, each CPU a tier, at least 1; `None`: each station is
    /// a tier.
    pub cpus: Option<usize>,
    /// Program whose command `schedule tier` runs a tier.
    pub program: PathBuf,
}
