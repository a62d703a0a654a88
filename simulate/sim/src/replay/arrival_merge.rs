//! The arrivals of all streams in order of time, by a knock-out tournament between the streams' next arrivals.
//!
//! Simultaneous arrivals come in order of the streams; the jobs of a stream keep their order.

use super::trace::ReplayTrace;
use super::transit::{JobInTransit, TransitSource};
use model::Job;

/// The position of a stream in its trace.
#[derive(Debug, Clone, Copy)]
struct StreamCursor<'a> {
    jobs: &'a [Job],
    index: usize,
    /// When the current period began.
    base: u64,
    period: u64,
}

impl<'a> StreamCursor<'a> {
    fn new(trace: &'a ReplayTrace) -> Self {
        Self { jobs: trace.jobs(), index: 0, base: 0, period: trace.period().0 }
    }

    fn time(&self) -> u64 {
        self.base + self.jobs[self.index].arrival.0
    }

    /// Goes on to the next job and returns its arrival.
    #[inline]
    fn advance(&mut self) -> u64 {
        self.index += 1;
        if self.index == self.jobs.len() {
            self.index = 0;
            self.base += self.period;
        }
        self.time()
    }
}

/// The jobs of several streams, merged in order of arrival.
#[derive(Debug, Clone)]
pub(super) struct ArrivalMerge<'a> {
    cursors: Vec<StreamCursor<'a>>,
    /// The winner of each match of the tournament: the streams are the leaves in the upper half, the overall winner is
    /// at 1, and node i has the earlier of nodes 2i and 2i + 1. Leaves without a stream never win.
    nodes: Vec<TournamentNode>,
    /// Index of the first leaf; a power of two.
    leaves: usize,
}

#[derive(Debug, Clone, Copy)]
struct TournamentNode {
    time: u64,
    stream: u32,
}

impl<'a> ArrivalMerge<'a> {
    /// A merge of these streams; [`seek`](Self::seek) has to be called before use.
    pub(super) fn new(traces: impl Iterator<Item = &'a ReplayTrace>) -> Self {
        let cursors: Vec<_> = traces.map(StreamCursor::new).collect();
        let leaves = cursors.len().next_power_of_two();
        Self { cursors, nodes: vec![TournamentNode { time: u64::MAX, stream: u32::MAX }; 2 * leaves], leaves }
    }

    /// Goes to the first arrivals at or after `time`, where the first period of stream i begins at `offsets[i]`,
    /// which is at most `time`.
    pub(super) fn seek(&mut self, traces: impl Iterator<Item = &'a ReplayTrace>, offsets: &[u64], time: u64) {
        for (stream, (trace, &offset)) in traces.zip(offsets).enumerate() {
            let cursor = &mut self.cursors[stream];
            let position = trace.position(time - offset);
            let count = cursor.jobs.len() as u64;
            cursor.index = usize::try_from(position % count).expect("an index");
            cursor.base = offset + position / count * cursor.period;
            let number = u32::try_from(stream).expect("few streams");
            self.nodes[self.leaves + stream] = TournamentNode { time: cursor.time(), stream: number };
        }
        self.play_all();
    }

    /// Plays all matches of the tournament.
    fn play_all(&mut self) {
        for index in (1..self.leaves).rev() {
            let [left, right] = [self.nodes[2 * index], self.nodes[2 * index + 1]];
            self.nodes[index] = if left.time <= right.time { left } else { right };
        }
    }

    /// When the next job arrives.
    pub(super) fn next_arrival(&self) -> u64 {
        self.nodes[1].time
    }
}

impl<'a> TransitSource<'a> for ArrivalMerge<'a> {
    #[inline]
    fn next(&mut self) -> JobInTransit<'a> {
        let TournamentNode { time, stream } = self.nodes[1];
        let cursor = &mut self.cursors[stream as usize];
        let job = &cursor.jobs[cursor.index];
        let mut winner = TournamentNode { time: cursor.advance(), stream };
        let mut node = self.leaves + stream as usize;
        self.nodes[node] = winner;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            // The left one wins a tie, because its streams have lower numbers.
            let loses = other.time < winner.time || (node & 1 == 1 && other.time == winner.time);
            winner = if loses { other } else { winner };
            node >>= 1;
            self.nodes[node] = winner;
        }
        JobInTransit { at: time, entered: time, job, stream }
    }
}
