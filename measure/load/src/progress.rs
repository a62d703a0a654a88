//! Progress of a run, published by the timing thread and read by others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Nanos;

/// The part of a run that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadPhase {
    /// Connections are being set up.
    SettingUp,
    /// Requests are being sent.
    Running,
    /// All requests were sent, and the run waits for the last replies.
    Draining,
}

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgress {
    /// The part of the run that is under way.
    pub phase: LoadPhase,
    /// The time since the clock was started.
    pub elapsed: Nanos,
    /// Warm-up and duration together.
    pub total: Nanos,
    /// Requests that the generator has handled so far.
    pub requests: u64,
    /// Requests of them that were answered.
    pub answered: u64,
    /// Requests of them that failed.
    pub failed: u64,
}

/// Counters that the timing thread writes and the reporting thread reads. They are for display only, so that relaxed
/// ordering is enough.
#[derive(Debug, Default)]
pub(crate) struct ProgressGauges {
    pub(crate) elapsed_ns: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) is_draining: AtomicBool,
}

impl ProgressGauges {
    /// [`LoadPhase::Running`] or [`LoadPhase::Draining`], once connections are set up.
    pub(crate) fn phase(&self) -> LoadPhase {
        if self.is_draining.load(Ordering::Relaxed) { LoadPhase::Draining } else { LoadPhase::Running }
    }

    pub(crate) fn snapshot(&self, phase: LoadPhase, total: Nanos) -> LoadProgress {
        LoadProgress {
            phase,
            elapsed: Nanos(self.elapsed_ns.load(Ordering::Relaxed)),
            total,
            requests: self.requests.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
