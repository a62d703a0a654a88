//! Duration, timing and verification of a run.

use units::Nanos;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Time for which requests are sent before the first one is observed.
    pub warm_up: Nanos,
    /// Time for which requests are observed, from the end of the warm-up.
    pub duration: Nanos,
    /// Maximum wait for replies after the last request.
    pub drain: Nanos,
    /// The seed of random addresses and contents.
    pub seed: u64,
    /// The SCHED_FIFO priority of the timing thread, 1 to 99. It requires root; without root the run
    /// continues with a warning.
    pub realtime: Option<u32>,
    /// The CPU that the timing thread is pinned to.
    pub cpu: Option<usize>,
    /// True if writes carry distinguishable contents, with which reads are compared.
    pub verify_data: bool,
}

impl Default for LoadOptions {
    /// Ten seconds after one second of warm-up, five seconds to drain, seed 1, no priority, no pinning.
    fn default() -> Self {
        let [warm_up, duration, drain] = [1, 10, 5].map(|s: u64| Nanos(s * 1_000_000_000));
        Self { warm_up, duration, drain, seed: 1, realtime: None, cpu: None, verify_data: false }
    }
}
