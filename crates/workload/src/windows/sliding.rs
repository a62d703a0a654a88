//! One sweep of a window over the circular trace.

use super::Stream;
use super::law::{Bins, Law};
use std::collections::VecDeque;

/// The jobs in the window (start, start + length], as indices into the unrolled trace.
struct Sweep<'a> {
    stream: &'a Stream,
    length: u64,
    /// The first job inside and the first beyond.
    inside: usize,
    beyond: usize,
    work: u64,
    peaks: [Peak; 3],
}

impl<'a> Sweep<'a> {
    /// The window that starts at 0.
    fn new(stream: &'a Stream, length: u64) -> Self {
        let inside = stream.items.partition_point(|item| item.at == 0);
        let peaks = [Peak::default(), Peak::default(), Peak::default()];
        let mut sweep = Self { stream, length, inside, beyond: inside, work: 0, peaks };
        while sweep.at(sweep.beyond) <= length {
            sweep.enter();
        }
        sweep
    }

    fn at(&self, index: usize) -> u64 {
        let count = self.stream.items.len();
        // Two rounds at most: a window shorter than the period starts within the first.
        let (index, origin) = if index < count { (index, 0) } else { (index - count, self.stream.period) };
        let (index, origin) =
            if index < count { (index, origin) } else { (index - count, origin + self.stream.period) };
        self.stream.items[index].at + origin
    }

    fn enter(&mut self) {
        let item = self.stream.items[self.beyond % self.stream.items.len()];
        self.work += item.work;
        if self.stream.allowance > 0 {
            let values = [item.straddle[0], item.straddle[1], item.straddle_both];
            self.peaks.iter_mut().zip(values).for_each(|(peak, value)| peak.enter(self.beyond, value));
        }
        self.beyond += 1;
    }

    fn leave(&mut self) {
        self.work -= self.stream.items[self.inside % self.stream.items.len()].work;
        self.inside += 1;
        self.peaks.iter_mut().for_each(|peak| peak.leave(self.inside));
    }

    fn demand(&self) -> u64 {
        let [first, second, both] = &self.peaks;
        self.work + both.value().max(first.value() + second.value())
    }

    /// Adds the time that the start spends between the events up to one period.
    fn collect(mut self, bins: &mut Bins, whole_rounds: u64) {
        let mut start = 0;
        while start < self.stream.period {
            let (leaves, enters) = (self.at(self.inside), self.at(self.beyond) - self.length);
            let next = leaves.min(enters).min(self.stream.period);
            if next > start {
                bins.add(self.total_demand(whole_rounds), next - start);
                start = next;
            }
            // First in, so that no job leaves before it came.
            if enters <= next {
                self.enter();
            }
            if leaves <= next {
                self.leave();
            }
        }
    }

    fn total_demand(&self, whole_rounds: u64) -> u64 {
        match whole_rounds {
            0 => self.demand(),
            rounds => self.work + rounds * self.stream.total + self.stream.allowance,
        }
    }
}

/// The maximum of the values inside, by the usual queue of those that may still become it.
#[derive(Default)]
struct Peak {
    candidates: VecDeque<(usize, u64)>,
}

impl Peak {
    fn enter(&mut self, index: usize, value: u64) {
        while self.candidates.back().is_some_and(|&(_, last)| last <= value) {
            self.candidates.pop_back();
        }
        self.candidates.push_back((index, value));
    }

    fn leave(&mut self, inside: usize) {
        while self.candidates.front().is_some_and(|&(index, _)| index < inside) {
            self.candidates.pop_front();
        }
    }

    fn value(&self) -> u64 {
        self.candidates.front().map_or(0, |&(_, value)| value)
    }
}

/// The law of the work in a closed window of `window` ns. Clocks count whole nanoseconds, so a closed window
/// holds one more instant than its length; for a continuous shift that is a nanosecond too long.
pub(super) fn law(stream: &Stream, window: u64) -> Law {
    let length = window.saturating_add(1);
    let (rounds, rest) = (length / stream.period, length % stream.period);
    let mut bins = Bins::new();
    Sweep::new(stream, rest).collect(&mut bins, rounds);
    bins.law()
}
