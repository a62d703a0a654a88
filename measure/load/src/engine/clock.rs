//! The time of a run.

use units::Nanos;

/// A monotonic clock that counts from the start of the run, warm-up included.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunClock {
    /// The start of the run on the monotonic clock of the machine, in nanoseconds.
    start_ns: u64,
}

impl RunClock {
    pub(super) fn start_now() -> Self {
        Self { start_ns: machine::clock::now() }
    }

    /// The time since the start of the run.
    pub(super) fn now(self) -> Nanos {
        Nanos(machine::clock::now() - self.start_ns)
    }

    /// An instant of the run on the monotonic clock of the machine, in nanoseconds.
    pub(super) fn to_monotonic(self, instant: Nanos) -> u64 {
        self.start_ns + instant.0
    }
}
