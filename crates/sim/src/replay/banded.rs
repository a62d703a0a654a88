//! A server by bands: the latencies above budgets in one alignment, with as little replayed as possible.

use super::arrived_work::{ArrivedWork, ArrivingStream, BusyRun, CellSpan};
use super::latency_band::latency_bands;
use super::latency_target::LatencyTarget;
use super::observer::Observer;
use super::run::{PreemptionMode, Replay, ReplayedStretch};
use super::system::ReplaySystem;
use std::ops::ControlFlow;
use units::Nanos;

/// The streams of a preemptive server with their budgets, by band.
#[derive(Debug)]
pub(super) struct BandedServer<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    /// The band of each stream.
    band_of: Vec<u32>,
    bands: Vec<BandSystem<'a>>,
}

/// The streams of a band and of those before it.
#[derive(Debug)]
struct BandSystem<'a> {
    band: u32,
    /// The least budget in the band, nanoseconds.
    threshold: u64,
    system: ReplaySystem<'a>,
    /// The number of each stream among all, and whether it is in the band itself.
    streams: Vec<(usize, bool)>,
}

/// What a thread needs to replay a banded server: a replay of all streams, and one for each band.
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
            let members = streams.iter().map(|&stream| system.streams()[stream]).collect();
            bands.push(BandSystem {
                band,
                threshold: budgets.min().expect("a band has streams"),
                system: ReplaySystem::new(members).expect("a part of a steady system"),
                streams: streams.iter().map(|stream| (*stream, of_band(stream))).collect(),
            });
        }
        Self { system, band_of, bands }
    }

    /// The replays that [`Self::replay_late`] needs.
    pub(super) fn replays(&self) -> BandReplays<'_, 'a> {
        let replay = |system| Replay::new(system, PreemptionMode::Preemptive);
        BandReplays {
            all: replay(self.system),
            by_band: self.bands.iter().map(|band| replay(&band.system)).collect(),
        }
    }

    /// The time for which arrived work is kept to look at this server.
    pub(super) fn span(&self) -> CellSpan {
        // Some time before the window shows an idle instant; an eighth more saves a longer period from beginning again.
        let horizon = self.system.horizon().0;
        CellSpan { before: self.system.longest_period() >> 5, after: horizon + (horizon >> 3) }
    }

    /// Whether arrived work that is kept for this time serves this server.
    pub(super) fn is_within(&self, span: CellSpan) -> bool {
        let horizon = self.system.horizon().0;
        (horizon..=2 * horizon).contains(&span.after) && span.before <= self.system.longest_period()
    }

    /// Tells the observer of every request within the window whose latency exceeds the budget of its stream, and of some
    /// others. `work` holds what arrives in this alignment, or in one of other streams before it. The trace of stream i
    /// begins `shifts[i]` after the window opens.
    pub(super) fn replay_late(
        &self,
        replays: &mut BandReplays<'_, 'a>,
        work: &mut ArrivedWork,
        shifts: &[Nanos],
        observer: &mut impl Observer,
    ) {
        let streams = self.system.streams();
        let (open, offsets) = self.system.window(shifts);
        let origin = open - work.span().before;
        let Some(level) = self.system.idle().level(streams, &offsets, origin) else {
            replays.all.run(shifts, observer);
            return;
        };
        work.follow(self.arriving(shifts));
        let thresholds: Vec<_> = self.bands.iter().map(|band| (band.band, band.threshold)).collect();
        let close = open + self.system.horizon().0;
        let mut runs = work.busy_runs(&thresholds, close - origin, level);
        runs.iter_mut().for_each(|runs| runs.retain(|run| origin + run.end > open));
        // The first runs of bands may begin before an idle instant is known.
        let mut idle = None;
        if runs.iter().flatten().any(|run| run.level.is_none()) {
            idle = replays.all.idle_before_window(shifts);
            if idle.is_none() {
                replays.all.run(shifts, observer);
                return;
            }
        }
        let stretch = |run: &BusyRun| {
            let first = origin + run.first;
            let (from, level) = match run.level {
                Some(level) => (first, level),
                None => (idle.expect("found above"), 0),
            };
            ReplayedStretch { from, level, first: first.max(open), end: origin + run.end }
        };
        for ((band, replay), runs) in self.bands.iter().zip(&mut replays.by_band).zip(&runs) {
            let mut of_band = BandObserver { inner: observer, streams: &band.streams };
            let offsets: Vec<u64> = band.streams.iter().map(|&(stream, _)| offsets[stream]).collect();
            if replay.run_stretches(&offsets, runs.iter().map(stretch), &mut of_band) {
                return;
            }
        }
    }

    fn arriving(&self, shifts: &[Nanos]) -> Vec<ArrivingStream> {
        let mut arriving = Vec::with_capacity(shifts.len());
        for ((stream, shift), &band) in self.system.streams().iter().zip(shifts).zip(&self.band_of) {
            arriving.push(ArrivingStream { trace: stream.trace.clone(), shift: shift.0, band });
        }
        arriving
    }
}

/// Tells an observer of the streams of one band, by their numbers among all.
struct BandObserver<'r, O> {
    inner: &'r mut O,
    streams: &'r [(usize, bool)],
}

impl<O: Observer> Observer for BandObserver<'_, O> {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        match self.streams[stream] {
            (number, true) => self.inner.latency(number, latency),
            (_, false) => ControlFlow::Continue(()),
        }
    }
}
