//! Computes the curve of a long trace on several cores, in chunks that are then merged, which is exact.

use super::{BurstCurve, BurstError, StageArrival};
use std::num::NonZeroUsize;

/// The least number of arrivals in a chunk: for fewer, a thread costs more than it saves.
const MIN_CHUNK: usize = 16 * 1024;

impl BurstCurve {
    /// Like [`Self::from_arrivals`], in up to `threads` chunks that are computed at the same time and then merged.
    ///
    /// # Errors
    /// See [`Self::from_arrivals`].
    pub fn from_arrivals_parallel(
        arrivals: &[StageArrival],
        threads: NonZeroUsize,
    ) -> Result<Self, BurstError> {
        let size = arrivals.len().div_ceil(threads.get()).max(MIN_CHUNK);
        let chunks: Vec<&[StageArrival]> = arrivals.chunks(size).collect();
        let mut parts = machine::parallel::map(&chunks, |chunk| Self::from_arrivals(chunk)).into_iter();
        let mut whole = parts.next().ok_or(BurstError::Empty)??;
        for part in parts {
            let part = part.map_err(|error| shift_index(error, whole.count()))?;
            whole = whole.merge(&part).map_err(|error| match error {
                BurstError::Overlap { .. } => BurstError::Unsorted { index: whole.count() },
                other => other,
            })?;
        }
        Ok(whole)
    }
}

/// Converts the position of an arrival in a chunk to its position in the whole trace.
fn shift_index(error: BurstError, before: u64) -> BurstError {
    match error {
        BurstError::Unsorted { index } => BurstError::Unsorted { index: index + before },
        other => other,
    }
}
