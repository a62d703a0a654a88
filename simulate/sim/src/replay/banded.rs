//! A server by bands: the latencies above budgets in one alignment, with as little replayed as possible.

use super::alignment::Alignment;
use super::arrived_work::{ArrivedWork, ArrivingStream, BandStart, CellSpan};
use super::latency_band::latency_bands;
use super::latency_target::LatencyTarget;
use super::observer::Observer;
use super::possibly_late::{LateStream, PossiblyLate};
use super::run::{PreemptionMode, Replay, ReplayedStretch};
use super::system::ReplaySystem;
use super::trace::ReplayTrace;
use model::PerStage;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use units::{Nanos, Percentile};

/// Streams of a preemptive server with their budgets, by band. Streams without a limit that delay no stream
/// with one are left out.
#[derive(Debug)]
pub(super) struct BandedServer<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    /// The band of each stream.
    band_of: Vec<u32>,
    budgets: Vec<Nanos>,
    percentiles: Vec<Percentile>,
    bands: Vec<BandSystem<'a>>,
}

/// Inputs that determine if the streams of a band are in time in an alignment.
#[derive(Debug, Clone)]
pub(super) struct BandQuestion {
    pub(super) band: u32,
    /// Time for which arrivals are observed, nanoseconds.
    horizon: u64,
    /// The streams of the band and those before it.
    streams: Vec<BandStream>,
    /// The budget of each, nanoseconds.
    budgets: Vec<u64>,
}

/// A stream as the latencies of a band depend on it.
#[derive(Debug, Clone)]
struct BandStream {
    /// Kept alive, so that no other trace gets its address.
    trace: ReplayTrace,
    shift: Nanos,
    levels: PerStage<u32>,
    percentile: Percentile,
}

impl BandQuestion {
    /// Returns true if a band is certainly in time when the one of this question is.
    pub(super) fn implies(&self, other: &Self) -> bool {
        self.horizon == other.horizon
            && self.streams.len() == other.streams.len()
            && self.streams.iter().zip(&other.streams).all(|(a, b)| a.is_like(b))
            && self.budgets.iter().zip(&other.budgets).all(|(a, b)| a <= b)
            && self.band == other.band
    }
}

impl BandStream {
    fn is_like(&self, other: &Self) -> bool {
        self.trace.address() == other.trace.address()
            && self.shift == other.shift
            && self.levels == other.levels
            && self.percentile == other.percentile
    }
}

/// The streams of a band and of those before it.
#[derive(Debug)]
struct BandSystem<'a> {
    band: u32,
    /// The least budget in the band, nanoseconds.
    threshold: u64,
    system: ReplaySystem<'a>,
    /// Index of each stream among all, and true if it is in the band itself.
    streams: Vec<(usize, bool)>,
}

/// When the streams of a server arrive.
#[derive(Debug)]
pub(super) struct AlignedArrivals {
    /// The trace of stream i begins `shifts[i]` after the window opens.
    pub(super) shifts: Vec<Nanos>,
    /// Requests of each stream that arrive within the window.
    pub(super) counts: Vec<usize>,
}

impl AlignedArrivals {
    pub(super) fn new(system: &ReplaySystem<'_>, alignment: Alignment) -> Self {
        let shifts = alignment.shifts(system);
        let counts = system.counts(&shifts);
        Self { shifts, counts }
    }
}

/// Per-thread state for replays of a banded server: a replay of all streams, and one for each band.
#[derive(Debug)]
pub(super) struct BandReplays<'r, 'a> {
    all: Replay<'r, 'a>,
    by_band: Vec<Replay<'r, 'a>>,
}

impl<'s, 'a> BandedServer<'s, 'a> {
    pub(super) fn new(system: &'s ReplaySystem<'a>, targets: &[LatencyTarget]) -> Self {
        let band_of = latency_bands(system.streams(), targets);
        let mut numbers = band_of.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let mut bands = Vec::with_capacity(numbers.len());
        for band in numbers {
            let of_band = |stream: &usize| band_of[*stream] == band;
            let streams: Vec<usize> = (0..band_of.len()).filter(|&stream| band_of[stream] <= band).collect();
            let budgets = streams.iter().filter(|s| of_band(s)).map(|&stream| targets[stream].budget.0);
            let threshold = budgets.min().expect("a band has streams");
            if threshold == u64::MAX {
                // No request in this band or in a later one is ever late.
                break;
            }
            let members = streams.iter().map(|&stream| system.streams()[stream]).collect();
            bands.push(BandSystem {
                band,
                threshold,
                system: ReplaySystem::new(members).expect("a part of a steady system"),
                streams: streams.iter().map(|stream| (*stream, of_band(stream))).collect(),
            });
        }
        let budgets = targets.iter().map(|target| target.budget).collect();
        let percentiles = targets.iter().map(|target| target.percentile).collect();
        Self { system, band_of, budgets, percentiles, bands }
    }

    /// The replays that [`Self::replay_late`] needs.
    pub(super) fn replays(&self) -> BandReplays<'_, 'a> {
        let replay = |system| Replay::new(system, PreemptionMode::Preemptive);
        BandReplays {
            all: replay(self.system),
            by_band: self.bands.iter().map(|band| replay(&band.system)).collect(),
        }
    }

    /// Returns the span of time for which arrived work is kept to examine this server.
    pub(super) fn span(&self) -> CellSpan {
        // Some time before the window most likely shows an idle instant; an eighth more saves a longer period from beginning again.
        let horizon = self.system.horizon().0;
        CellSpan { before: self.system.longest_period() >> 3, after: horizon + (horizon >> 3) }
    }

    /// Returns true if arrived work that covers this span can be used for this server.
    pub(super) fn is_within(&self, span: CellSpan) -> bool {
        let horizon = self.system.horizon().0;
        (horizon..=2 * horizon).contains(&span.after) && span.before <= self.system.longest_period()
    }

    /// Reports requests within the window whose latency exceeds the budget of their stream to the observer,
    /// and some others. If there are more of them than a stream's percentile allows, all its requests are
    /// reported. `work` holds the arrivals of this alignment, possibly of other streams. Bands in `in_time`
    /// are not reported, unless everything has to be replayed. Returns true if the observer ended the replay.
    pub(super) fn replay_late(
        &self,
        in_time: &[u32],
        replays: &mut BandReplays<'_, 'a>,
        work: &mut ArrivedWork,
        arrivals: &AlignedArrivals,
        observer: &mut impl Observer,
    ) -> bool {
        let shifts = &arrivals.shifts;
        let (open, offsets) = self.system.window(shifts);
        let by_band: Vec<Vec<u64>> = self.bands.iter().map(|band| band.of_streams(&offsets)).collect();
        let Some(stretches) = self.late_stretches(in_time, replays, work, shifts, (open, &by_band)) else {
            return replays.all.run(shifts, observer).stopped;
        };
        let mut of_bands = self.bands.iter().zip(&by_band).zip(stretches).zip(&mut replays.by_band);
        of_bands.any(|(((band, offsets), stretches), replay)| {
            self.replay_band(band, stretches, replay, (offsets, &arrivals.counts), observer)
        })
    }

    /// Replays the stretches of a band on which a percentile depends, those with the longest latencies
    /// first. Returns true if the observer ended the replay.
    fn replay_band(
        &self,
        band: &BandSystem<'a>,
        mut stretches: Vec<ReplayedStretch>,
        replay: &mut Replay<'_, 'a>,
        (offsets, counts): (&[u64], &[usize]),
        observer: &mut impl Observer,
    ) -> bool {
        stretches.sort_by_key(|stretch| Reverse(stretch.longest));
        let mut late = self.possibly_late(band, &stretches, offsets, counts);
        for (number, stretch) in stretches.into_iter().enumerate() {
            let longest = Nanos(stretch.longest);
            let depends = |stream: usize| observer.depends_on(band.streams[stream].0, longest);
            if !late.matters(number, depends) {
                continue;
            }
            let mut of_band = BandObserver { inner: observer, band, budgets: &self.budgets, late: &mut late };
            if replay.run_stretch(offsets, stretch, &mut of_band) {
                return true;
            }
        }
        false
    }

    /// Returns the requests of a band that may be late in the stretches.
    fn possibly_late(
        &self,
        band: &BandSystem<'a>,
        stretches: &[ReplayedStretch],
        offsets: &[u64],
        counts: &[usize],
    ) -> PossiblyLate {
        let streams = band.streams.iter().zip(offsets).map(|(&(stream, is_own), &offset)| {
            let target = LatencyTarget { percentile: self.percentiles[stream], budget: self.budgets[stream] };
            let trace = self.system.streams()[stream].trace;
            let budget = target.budget.0;
            let allowed = target.allowed_above(counts[stream]);
            (is_own && budget < u64::MAX).then_some(LateStream { trace, offset, budget, allowed })
        });
        PossiblyLate::new(streams, stretches)
    }

    /// Returns, for each band, the inputs that determine if it is in time.
    pub(super) fn questions(&self, shifts: &[Nanos]) -> Vec<BandQuestion> {
        let horizon = self.system.horizon().0;
        let question = |band: &BandSystem<'a>| BandQuestion {
            band: band.band,
            horizon,
            streams: band.described(shifts, &self.percentiles),
            budgets: band.streams.iter().map(|&(stream, _)| self.budgets[stream].0).collect(),
        };
        self.bands.iter().map(question).collect()
    }

    /// The stretches in which requests of each band may be late; `None` where it is not known when a band is idle. The window
    /// opens at `open`, and the first periods of the streams of each band begin at `offsets`.
    fn late_stretches(
        &self,
        in_time: &[u32],
        replays: &mut BandReplays<'_, 'a>,
        work: &mut ArrivedWork,
        shifts: &[Nanos],
        (open, offsets): (u64, &[Vec<u64>]),
    ) -> Option<Vec<Vec<ReplayedStretch>>> {
        let origin = open - work.span().before;
        let mut starts = Vec::with_capacity(self.bands.len());
        for (band, offsets) in self.bands.iter().zip(offsets) {
            let level = band.system.idle().level(band.system.streams(), offsets, origin)?;
            let threshold = (!in_time.contains(&band.band)).then_some(band.threshold);
            starts.push(BandStart { band: band.band, threshold, level, is_in_order: band.is_in_order() });
        }
        work.follow(self.arriving(shifts));
        let close = open + self.system.horizon().0;
        let runs = work.busy_runs(&starts, close - origin);
        let mut all_stretches = Vec::with_capacity(runs.len());
        for ((runs, replay), offsets) in runs.into_iter().zip(&mut replays.by_band).zip(offsets) {
            let mut stretches = Vec::with_capacity(runs.len());
            for run in runs.into_iter().filter(|run| origin + run.end > open) {
                // The first run of a band may begin before an idle instant is known.
                let (from, level) = match run.level {
                    Some(level) => (origin + run.from, level),
                    None => (replay.idle_before(open, offsets, self.system.longest_period())?, 0),
                };
                let first = (origin + run.first).max(open);
                let end = origin + run.end;
                let longest = run.longest;
                stretches.push(ReplayedStretch { from, level, first, end, longest });
            }
            all_stretches.push(stretches);
        }
        Some(all_stretches)
    }

    /// Returns the streams under examination, with the beginnings of their traces.
    fn arriving(&self, shifts: &[Nanos]) -> Vec<ArrivingStream> {
        let Some(last) = self.bands.last() else { return Vec::new() };
        let mut arriving = Vec::with_capacity(last.streams.len());
        for &(stream, _) in &last.streams {
            let trace = self.system.streams()[stream].trace.clone();
            arriving.push(ArrivingStream { trace, shift: shifts[stream].0, band: self.band_of[stream] });
        }
        arriving
    }
}

impl BandSystem<'_> {
    /// Returns true if no request of the band is ever overtaken by a later one of the band: they are first
    /// come, first served at every stage, and all pass the same stages.
    fn is_in_order(&self) -> bool {
        let mut own = (0..self.streams.len()).filter(|&number| self.streams[number].1).map(|number| {
            let levels = PerStage::from_fn(|stage| self.system.levels(stage)[number]);
            (levels, self.system.streams()[number].trace.passes())
        });
        let first = own.next().expect("a band has streams");
        first.1.is_some() && own.all(|other| other == first)
    }

    /// Selects the values of the band's streams and those before it.
    fn of_streams(&self, values: &[u64]) -> Vec<u64> {
        self.streams.iter().map(|&(stream, _)| values[stream]).collect()
    }

    fn described(&self, shifts: &[Nanos], percentiles: &[Percentile]) -> Vec<BandStream> {
        let mut described = Vec::with_capacity(self.streams.len());
        for (number, &(stream, _)) in self.streams.iter().enumerate() {
            described.push(BandStream {
                trace: self.system.streams()[number].trace.clone(),
                shift: shifts[stream],
                levels: PerStage::from_fn(|stage| self.system.levels(stage)[number]),
                percentile: percentiles[stream],
            });
        }
        described
    }
}

/// Forwards the latencies of one band to an observer, with stream numbers among all streams, and counts late
/// requests.
struct BandObserver<'r, 'a, O> {
    inner: &'r mut O,
    band: &'r BandSystem<'a>,
    budgets: &'r [Nanos],
    late: &'r mut PossiblyLate,
}

impl<O: Observer> Observer for BandObserver<'_, '_, O> {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        let (number, true) = self.band.streams[stream] else { return ControlFlow::Continue(()) };
        if latency > self.budgets[number] {
            self.late.add_late(stream);
        }
        self.inner.latency(number, latency)
    }
}
