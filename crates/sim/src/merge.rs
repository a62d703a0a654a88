//! The arrivals of all streams in order of time: a tournament between the streams' next arrivals.
//!
//! Simultaneous arrivals come in order of the streams; the jobs of a stream keep their order.

use crate::ReplayTrace;
use model::Job;

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    /// When it reaches the next stage.
    pub(crate) at: u64,
    /// When it arrived at the server.
    pub(crate) entered: u64,
    pub(crate) job: &'a Job,
    pub(crate) stream: u32,
}

/// Endless packets in order of `at`.
pub(crate) trait Source<'a> {
    fn next(&mut self) -> Packet<'a>;
}

/// A stream's next job.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    jobs: &'a [Job],
    index: usize,
    /// When the current round began.
    base: u64,
    period: u64,
}

impl Cursor<'_> {
    fn time(&self) -> u64 {
        self.base + self.jobs[self.index].arrival.0
    }

    /// To the next job; gives its time.
    #[inline]
    fn step(&mut self) -> u64 {
        self.index += 1;
        if self.index == self.jobs.len() {
            self.index = 0;
            self.base += self.period;
        }
        self.time()
    }
}

/// Merges streams that each are in order.
#[derive(Debug, Clone)]
pub(crate) struct Merge<'a> {
    cursors: Vec<Cursor<'a>>,
    /// Winner of each match; leaves in the upper half, the champion at 1. Empty seats never win.
    nodes: Vec<Node>,
    /// Leaves begin here; a power of two.
    leaves: usize,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    time: u64,
    stream: u32,
}

impl<'a> Merge<'a> {
    /// Call [`seek`](Self::seek) before use.
    pub(crate) fn new(traces: impl Iterator<Item = &'a ReplayTrace>) -> Self {
        let cursors: Vec<_> =
            traces.map(|r| Cursor { jobs: r.jobs(), index: 0, base: 0, period: r.period().0 }).collect();
        let leaves = cursors.len().next_power_of_two();
        Self { cursors, nodes: vec![Node { time: u64::MAX, stream: u32::MAX }; 2 * leaves], leaves }
    }

    /// Goes to the first arrivals at or after `time`, where stream i began its first round at `offsets[i]`,
    /// at most `time`.
    pub(crate) fn seek(&mut self, traces: impl Iterator<Item = &'a ReplayTrace>, offsets: &[u64], time: u64) {
        for (stream, (trace, &offset)) in traces.zip(offsets).enumerate() {
            let cursor = &mut self.cursors[stream];
            let position = trace.position(time - offset);
            let count = cursor.jobs.len() as u64;
            cursor.index = usize::try_from(position % count).expect("an index");
            cursor.base = offset + position / count * cursor.period;
            let node = Node { time: cursor.time(), stream: u32::try_from(stream).expect("few streams") };
            self.nodes[self.leaves + stream] = node;
        }
        for index in (1..self.leaves).rev() {
            let [left, right] = [self.nodes[2 * index], self.nodes[2 * index + 1]];
            self.nodes[index] = if left.time <= right.time { left } else { right };
        }
    }

    /// When the next packet arrives.
    pub(crate) fn peek(&self) -> u64 {
        self.nodes[1].time
    }
}

impl<'a> Source<'a> for Merge<'a> {
    #[inline]
    fn next(&mut self) -> Packet<'a> {
        let Node { time, stream } = self.nodes[1];
        let cursor = &mut self.cursors[stream as usize];
        let job = &cursor.jobs[cursor.index];
        let mut winner = Node { time: cursor.step(), stream };
        let mut at = self.leaves + stream as usize;
        self.nodes[at] = winner;
        while at > 1 {
            let other = self.nodes[at ^ 1];
            // The left one wins a tie: it stands for streams with lower numbers.
            let loses = other.time < winner.time || (at & 1 == 1 && other.time == winner.time);
            winner = if loses { other } else { winner };
            at >>= 1;
            self.nodes[at] = winner;
        }
        Packet { at: time, entered: time, job, stream }
    }
}
