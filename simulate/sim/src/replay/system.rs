//! A server and the streams that share it.

use super::idle::IdleInstants;
use super::stream::ReplayStream;
use model::{PerStage, Stage};
use std::fmt;
use std::sync::OnceLock;
use units::Nanos;

/// Streams that have no steady state together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnsteadyError {
    /// There are no streams.
    Empty,
    /// There is more work than a stage can do, so that its queue grows for ever.
    Overload {
        /// The stage that has too much work.
        stage: Stage,
        /// Work per second, seconds; at least 1.
        utilisation: f64,
    },
}

impl fmt::Display for UnsteadyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no streams: expected at least one"),
            Self::Overload { stage, utilisation } if utilisation.is_infinite() => {
                write!(f, "{stage} is overloaded: all its work comes at once")
            }
            Self::Overload { stage, utilisation } => {
                write!(f, "{stage} is overloaded: {:.1}% of its capacity", utilisation * 100.0)
            }
        }
    }
}

impl std::error::Error for UnsteadyError {}

/// Streams on a path of stages: network in, storage, network out. A request without work at a stage passes it
/// at once.
#[derive(Debug, Clone)]
pub struct ReplaySystem<'a> {
    streams: Vec<ReplayStream<'a>>,
    /// The priority level of each stream at each stage, dense from 0.
    levels: PerStage<Vec<u32>>,
    horizon: Nanos,
    utilisation: PerStage<f64>,
    idle: OnceLock<IdleInstants>,
}

impl<'a> ReplaySystem<'a> {
    /// Creates a server with enough capacity at every stage for all streams; observed for the longest
    /// period.
    ///
    /// # Errors
    /// When there are no streams, or they overload a stage.
    pub fn new(streams: Vec<ReplayStream<'a>>) -> Result<Self, UnsteadyError> {
        let horizon = streams.iter().map(|stream| stream.trace.period()).max().ok_or(UnsteadyError::Empty)?;
        let by_stream: Vec<_> = streams.iter().map(|stream| stream.trace.utilisation()).collect();
        let utilisation = PerStage::from_fn(|stage| by_stream.iter().map(|u| u[stage]).sum::<f64>());
        for (stage, &utilisation) in utilisation.iter() {
            if utilisation >= 1.0 {
                return Err(UnsteadyError::Overload { stage, utilisation });
            }
        }
        let levels =
            PerStage::from_fn(|stage| dense_ranks(streams.iter().map(|stream| stream.priority[stage])));
        Ok(Self { streams, levels, horizon, utilisation, idle: OnceLock::new() })
    }

    /// The same server observed for `horizon` instead.
    #[must_use]
    pub fn with_horizon(mut self, horizon: Nanos) -> Self {
        self.horizon = horizon;
        self
    }

    /// The streams in the order in which they were given.
    pub fn streams(&self) -> &[ReplayStream<'a>] {
        &self.streams
    }

    /// Returns the time for which a replay observes arrivals.
    pub fn horizon(&self) -> Nanos {
        self.horizon
    }

    /// Work per second of each stage, seconds; below 1.
    pub fn utilisation(&self) -> PerStage<f64> {
        self.utilisation
    }

    /// The priority level of each stream at a stage: the rank of its priority among those there, from 0.
    pub(super) fn levels(&self, stage: Stage) -> &[u32] {
        &self.levels[stage]
    }

    /// The search for instants at which the server is idle, prepared when it is needed first.
    pub(super) fn idle(&self) -> &IdleInstants {
        self.idle.get_or_init(|| IdleInstants::new(&self.streams))
    }

    /// The longest period of a stream, nanoseconds.
    pub(super) fn longest_period(&self) -> u64 {
        self.streams.iter().map(|stream| stream.trace.period().0).max().expect("streams are not empty")
    }

    /// When the window opens, and when the first period of each stream begins: with `shifts[i]` from the opening to the
    /// beginning of a period of stream i. Nanoseconds.
    pub(super) fn window(&self, shifts: &[Nanos]) -> (u64, Vec<u64>) {
        assert_eq!(shifts.len(), self.streams.len(), "one shift per stream");
        // Room for the longest look back and for an incomplete first period.
        let open = 2 * self.longest_period();
        let periods = self.streams.iter().map(|stream| stream.trace.period().0);
        let offsets = shifts.iter().zip(periods).map(|(shift, period)| (open + shift.0 % period) % period);
        (open, offsets.collect())
    }

    /// Requests of each stream that arrive within the window.
    pub fn counts(&self, shifts: &[Nanos]) -> Vec<usize> {
        shifts.iter().enumerate().map(|(stream, shift)| self.observed(stream, *shift)).collect()
    }

    /// Returns the number of jobs of a stream that arrive within the window at this shift.
    pub fn observed(&self, stream: usize, shift: Nanos) -> usize {
        let trace = self.streams[stream].trace;
        let period = trace.period().0;
        // A period later than needed: the window may not begin before the sequence does.
        let open = 2 * period - shift.0 % period;
        let count = trace.position(open + self.horizon.0) - trace.position(open);
        usize::try_from(count).expect("fits the address space")
    }
}

/// The rank of each value among the distinct values, from 0.
fn dense_ranks(values: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let mut distinct: Vec<u32> = values.clone().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |value| {
        let below = distinct.partition_point(|other| *other < value);
        u32::try_from(below).expect("no more ranks than values")
    };
    values.map(rank).collect()
}
