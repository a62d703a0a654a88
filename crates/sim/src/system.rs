//! A server and the streams that share it.

use crate::ReplayTrace;
use crate::start::Idle;
use model::{PerStage, Stage};
use std::fmt;
use std::sync::OnceLock;
use units::Nanos;

/// A trace with its place on a server.
#[derive(Debug, Clone, Copy)]
pub struct ReplayStream<'a> {
    /// Its jobs.
    pub trace: &'a ReplayTrace,
    /// By stage; 0 is served first, equals are served first come first served.
    pub priority: PerStage<u32>,
    /// Streams of a group keep their recorded alignment to each other.
    pub group: usize,
}

/// Streams that have no steady state together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnsteadyError {
    /// There are no streams.
    Empty,
    /// More work than the stage can do, so that queues grow for ever.
    Overload {
        /// The stage.
        stage: Stage,
        /// Work per second, seconds; at least 1.
        utilisation: f64,
    },
}

impl fmt::Display for UnsteadyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no streams: expected at least one"),
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
    pub(crate) streams: Vec<ReplayStream<'a>>,
    /// By stage: the level of each stream, dense from 0.
    pub(crate) levels: PerStage<Vec<u32>>,
    pub(crate) horizon: u64,
    utilisation: PerStage<f64>,
    idle: OnceLock<Idle>,
}

impl<'a> ReplaySystem<'a> {
    /// A server whose every stage can do the work of all streams; observed for the longest period.
    pub fn new(streams: Vec<ReplayStream<'a>>) -> Result<Self, UnsteadyError> {
        let horizon = streams.iter().map(|s| s.trace.period().0).max().ok_or(UnsteadyError::Empty)?;
        let each: Vec<_> = streams.iter().map(|s| s.trace.utilisation()).collect();
        let utilisation = PerStage::from_fn(|stage| each.iter().map(|u| u[stage]).sum::<f64>());
        for (stage, &utilisation) in utilisation.iter() {
            if utilisation >= 1.0 {
                return Err(UnsteadyError::Overload { stage, utilisation });
            }
        }
        let levels = PerStage::from_fn(|stage| dense(streams.iter().map(|s| s.priority[stage])));
        Ok(Self { streams, levels, horizon, utilisation, idle: OnceLock::new() })
    }

    /// Observed for `horizon` instead.
    #[must_use]
    pub fn with_horizon(mut self, horizon: Nanos) -> Self {
        self.horizon = horizon.0;
        self
    }

    /// In the order given.
    pub fn streams(&self) -> &[ReplayStream<'a>] {
        &self.streams
    }

    /// How long a replay observes arrivals.
    pub fn horizon(&self) -> Nanos {
        Nanos(self.horizon)
    }

    /// Work per second of each stage, seconds; below 1.
    pub fn utilisation(&self) -> PerStage<f64> {
        self.utilisation
    }

    /// Where it is certainly idle.
    pub(crate) fn idle(&self) -> &Idle {
        self.idle.get_or_init(|| Idle::new(&self.streams))
    }

    /// Longest period of a stream.
    pub(crate) fn longest_period(&self) -> u64 {
        self.streams.iter().map(|s| s.trace.period().0).max().expect("streams are not empty")
    }

    /// Jobs of a stream that arrive within the window at this shift.
    pub fn observed(&self, stream: usize, shift: Nanos) -> usize {
        let trace = self.streams[stream].trace;
        let period = trace.period().0;
        // A round later than needed: the window may not begin before the sequence does.
        let open = 2 * period - shift.0 % period;
        let count = trace.position(open + self.horizon) - trace.position(open);
        usize::try_from(count).expect("fits the address space")
    }
}

/// Ranks of the distinct values, from 0.
fn dense(priorities: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let mut distinct: Vec<u32> = priorities.clone().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let rank = |p| u32::try_from(distinct.partition_point(|d| *d < p)).expect("no more ranks than values");
    priorities.map(rank).collect()
}

/// Levels that a stage needs.
pub(crate) fn depth(levels: &[u32]) -> usize {
    levels.iter().max().map_or(0, |top| *top as usize + 1)
}
