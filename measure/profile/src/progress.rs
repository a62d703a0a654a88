//! Progress of the preparation or the measurement of a target.

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileProgress {
    /// A created file is being filled, counted in MiB.
    Fill {
        /// MiB written so far.
        done: u64,
        /// MiB of the whole file.
        total: u64,
    },
    /// The target is being measured, counted in repeats of cells, which all take the same time.
    Measure {
        /// Repeats measured so far.
        done: u64,
        /// Repeats of the whole plan.
        total: u64,
    },
}
