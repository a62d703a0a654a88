//! Percentiles in many alignments, without replaying everything: a high percentile is one of the longest latencies.
//!
//! A guess is a latency that a stream's percentile most likely exceeds, and only stretches with longer
//! ones are replayed: those with the longest possible latencies first, until the others can no longer
//! change the percentile. The first guess is the percentile of the work of its own requests, which take
//! at least that long; the next ones are a little below the least percentile found so far. A guess that
//! was too high is lowered once, and then everything is replayed. Guesses affect the running time, never
//! the result.

use super::alignment::Alignment;
use super::arrived_work::ArrivedWork;
use super::banded::{AlignedArrivals, BandedServer};
use super::latency_target::LatencyTarget;
use super::percentiles::Percentiles;
use super::run::{PreemptionMode, Replay};
use super::system::ReplaySystem;
use super::trace::ReplayTrace;
use super::work_bucket::work_of_all_stages;
use crate::rank::nearest_rank;
use units::{Nanos, Percentile};

/// The search for the percentiles of the streams of a preemptive server; keeps its memory from one alignment to the next.
pub(super) struct PercentileSearch<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    percentiles: &'s [Percentile],
    /// The guesses before anything has been found.
    floors: &'s [Nanos],
    /// Value that the percentile of each stream most likely exceeds.
    guesses: Vec<Nanos>,
    /// Least percentile of each stream found so far.
    least: Vec<Option<Nanos>>,
    work: ArrivedWork,
    observer: Percentiles,
}

/// Percentiles found in an alignment, and the streams still to be found.
struct FoundPercentiles {
    values: Vec<Option<Nanos>>,
    is_open: Vec<bool>,
}

impl<'s, 'a> PercentileSearch<'s, 'a> {
    /// A search with first guesses `floors`.
    pub(super) fn new(
        system: &'s ReplaySystem<'a>,
        percentiles: &'s [Percentile],
        floors: &'s [Nanos],
    ) -> Self {
        Self {
            system,
            percentiles,
            floors,
            guesses: floors.to_vec(),
            least: vec![None; floors.len()],
            work: ArrivedWork::default(),
            observer: Percentiles::default(),
        }
    }

    /// The percentile of each stream in an alignment; `None` without requests.
    pub(super) fn percentiles(&mut self, alignment: Alignment) -> Vec<Option<Nanos>> {
        let arrivals = AlignedArrivals::new(self.system, alignment);
        let AlignedArrivals { shifts, counts } = &arrivals;
        let is_open = counts.iter().map(|count| *count > 0).collect();
        let mut found = FoundPercentiles { values: vec![None; counts.len()], is_open };
        let mut guesses = self.guesses.clone();
        self.look(&arrivals, &guesses, &mut found);
        if found.is_open.contains(&true) {
            guesses.iter_mut().for_each(|guess| guess.0 /= 4);
            self.look(&arrivals, &guesses, &mut found);
        }
        if found.is_open.contains(&true) {
            self.observer.reset(counts, self.percentiles);
            Replay::new(self.system, PreemptionMode::Preemptive).run(shifts, &mut self.observer);
            found.values = self.observer.take();
        }
        self.learn(&found.values);
        found.values
    }

    /// Looks for the open percentiles above guesses.
    fn look(&mut self, arrivals: &AlignedArrivals, guesses: &[Nanos], found: &mut FoundPercentiles) {
        let mut targets = Vec::with_capacity(guesses.len());
        for ((&guess, &percentile), &is_open) in guesses.iter().zip(self.percentiles).zip(&found.is_open) {
            targets.push(LatencyTarget { percentile, budget: if is_open { guess } else { Nanos(u64::MAX) } });
        }
        let server = BandedServer::new(self.system, &targets);
        if !server.is_within(self.work.span()) {
            self.work.clear(server.span());
        }
        self.observer.reset(&arrivals.counts, self.percentiles);
        server.replay_late(&[], &mut server.replays(), &mut self.work, arrivals, &mut self.observer);
        let above = self.observer.take_above(targets.iter().map(|target| target.budget));
        for (stream, value) in above.into_iter().enumerate().filter(|(_, value)| value.is_some()) {
            found.values[stream] = value;
            found.is_open[stream] = false;
        }
    }

    fn learn(&mut self, values: &[Option<Nanos>]) {
        for (stream, value) in values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let least = self.least[stream].map_or(value, |least| least.min(value));
            self.least[stream] = Some(least);
            // Four fifths: percentiles of most alignments are close to each other.
            self.guesses[stream] = Nanos(least.0 - least.0 / 5).max(self.floors[stream]);
        }
    }
}

/// Returns a lower bound of the percentile of a stream of whole periods of this trace: no request is faster
/// than its work.
pub(super) fn floor_of_percentile(trace: &ReplayTrace, percentile: Percentile) -> Nanos {
    let mut works: Vec<u64> = trace.jobs().iter().map(work_of_all_stages).collect();
    let rank = nearest_rank(percentile, works.len());
    Nanos(works.select_nth_unstable(rank - 1).1.saturating_sub(1))
}
