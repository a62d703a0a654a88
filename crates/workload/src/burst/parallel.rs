//! Long traces on several cores: chunks at the same time, then merged, which is exact.

use super::{Arrival, BurstCurve, BurstError};
use std::num::NonZeroUsize;

/// Below this many arrivals a thread costs more than it saves.
const MIN_CHUNK: usize = 16 * 1024;

impl BurstCurve {
    /// As [`Self::of`], in up to `threads` chunks that are computed at the same time and then merged.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_parallel(arrivals: &[Arrival], threads: NonZeroUsize) -> Result<Self, BurstError> {
        let size = arrivals.len().div_ceil(threads.get()).max(MIN_CHUNK);
        let chunks: Vec<&[Arrival]> = arrivals.chunks(size).collect();
        let mut parts = machine::parallel::map(&chunks, |chunk| Self::of(chunk)).into_iter();
        let mut whole = parts.next().ok_or(BurstError::Empty)??;
        for part in parts {
            let part = part.map_err(|error| shifted(error, whole.count()))?;
            whole = whole.merge(&part).map_err(|error| match error {
                BurstError::Overlap { .. } => BurstError::Unsorted { index: whole.count() },
                other => other,
            })?;
        }
        Ok(whole)
    }
}

/// Positions in a part are positions in the whole, less what came before.
fn shifted(error: BurstError, before: u64) -> BurstError {
    match error {
        BurstError::Unsorted { index } => BurstError::Unsorted { index: index + before },
        other => other,
    }
}
