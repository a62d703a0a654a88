//! The interface by which a replay reports latencies, and the observer that keeps all of them.

use std::ops::ControlFlow;
use units::Nanos;

/// Receives the latency of every request that arrives within the window of a replay.
pub trait Observer {
    /// Receives the latency of a request of this stream. `Break` ends the replay.
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()>;

    /// Returns true if more latencies of this stream, none longer than `longest`, may change the result.
    fn depends_on(&mut self, _stream: usize, _longest: Nanos) -> bool {
        true
    }
}

/// All latencies of every stream, in order of departure: for distributions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The latencies of each stream.
    pub streams: Vec<Vec<Nanos>>,
}

impl Latencies {
    /// Creates an observer of `streams` streams without latencies.
    pub fn new(streams: usize) -> Self {
        Self { streams: vec![Vec::new(); streams] }
    }

    /// Returns the latencies of each stream in ascending order: the share 1 − i/n of n latencies exceeds
    /// the `i`-th (from 1).
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.streams.iter_mut().for_each(|stream| stream.sort_unstable());
        self
    }
}

impl Observer for Latencies {
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.streams[stream].push(latency);
        ControlFlow::Continue(())
    }
}
