//! How long a run takes, and with which guarantees of timing and data.

use units::Nanos;

/// How long to run, and with which priority and checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// How long requests are sent before the first one is observed.
    pub warm_up: Nanos,
    /// How long requests are observed, counted from the end of the warm-up.
    pub duration: Nanos,
    /// How long the run waits for replies after its last request.
    pub drain: Nanos,
    /// The seed of random addresses and contents.
    pub seed: u64,
    /// The SCHED_FIFO priority of the timing thread, 1 to 99. It takes root; without root the run continues with a
    /// warning.
    pub realtime: Option<u32>,
    /// The CPU that the timing thread is pinned to.
    pub cpu: Option<usize>,
    /// Whether writes carry distinguishable contents and reads are compared with the last write.
    pub verify_data: bool,
}

impl Default for LoadOptions {
    /// Ten seconds after one second of warm-up, five seconds to drain, seed 1, no priority, no pinning.
    fn default() -> Self {
        let [warm_up, duration, drain] = [1, 10, 5].map(|s: u64| Nanos(s * 1_000_000_000));
        Self { warm_up, duration, drain, seed: 1, realtime: None, cpu: None, verify_data: false }
    }
}
