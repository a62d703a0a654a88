//! A server by bands: the latencies above budgets in one alignment, with as little replayed as possible.

use super::arrived_work::{ArrivedWork, ArrivingStream, BandOrder, BandStart, CellSpan};
use super::late_runs::LateRun;
use super::latency_band::{latency_bands, same_at_all_stages};
use super::latency_target::LatencyTarget;
use super::observer::Observer;
use super::run::{PreemptionMode, Replay, ReplayedStretch};
use super::stream::ReplayStream;
use super::system::ReplaySystem;
use super::trace::ReplayTrace;
use model::{PerStage, Stage};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use units::{Nanos, Percentile};

/// The streams of a preemptive server with their budgets, by band. Streams without a limit that delay nobody else's are
/// left out.
#[derive(Debug)]
pub(super) struct BandedServer<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    /// The band of each stream.
    band_of: Vec<u32>,
    budgets: Vec<Nanos>,
    percentiles: Vec<Percentile>,
    bands: Vec<BandSystem<'a>>,
}

/// What decides whether the streams of a band are in time in any given random alignment.
#[derive(Debug, Clone)]
pub(super) struct BandQuestion {
    pub(super) band: u32,
    /// How long arrivals are observed, nanoseconds.
    horizon: u64,
    /// The streams of the band and those before it.
    streams: Vec<BandStream>,
    /// The budget of each, nanoseconds.
    budgets: Vec<u64>,
}

/// A stream as the latencies of a band depend on it.
#[derive(Debug, Clone)]
struct BandStream {
    /// Kept, so that its address is that of no other trace.
    trace: ReplayTrace,
    /// The group and its longest period, nanoseconds: the shift depends on nothing else.
    group: (usize, u64),
    levels: PerStage<u32>,
    percentile: Percentile,
}

impl BandQuestion {
    /// Whether a band is certainly in time when the one of this question is.
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
            && self.group == other.group
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
    order: Option<BandOrder>,
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
            let threshold = budgets.min().expect("a band has streams");
            if threshold == u64::MAX {
                // Nobody in this band or in a later one is ever late.
                break;
            }
            let members = streams.iter().map(|&stream| system.streams()[stream]).collect();
            let system = ReplaySystem::new(members).expect("a part of a steady system");
            let streams: Vec<(usize, bool)> =
                streams.iter().map(|stream| (*stream, of_band(stream))).collect();
            bands.push(BandSystem { band, threshold, order: band_order(&system, &streams), system, streams });
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

    /// The time for which arrived work is kept to look at this server.
    pub(super) fn span(&self) -> CellSpan {
        // Some time before the window most likely shows an idle instant; an eighth more saves a longer period from beginning again.
        let horizon = self.system.horizon().0;
        CellSpan { before: self.system.longest_period() >> 3, after: horizon + (horizon >> 3) }
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
        self.replay_late_unless(&[], replays, work, shifts, observer);
    }

    /// As [`Self::replay_late`], but nothing is told of the bands among `in_time`, unless everything has to be replayed. Gives
    /// whether the observer ended the replay.
    pub(super) fn replay_late_unless(
        &self,
        in_time: &[u32],
        replays: &mut BandReplays<'_, 'a>,
        work: &mut ArrivedWork,
        shifts: &[Nanos],
        observer: &mut impl Observer,
    ) -> bool {
        let (open, offsets) = self.system.window(shifts);
        let by_band: Vec<Vec<u64>> = self.bands.iter().map(|band| band.of_streams(&offsets)).collect();
        let Some(stretches) = self.late_stretches(in_time, replays, work, shifts, (open, &by_band)) else {
            return replays.all.run(shifts, observer).stopped;
        };
        self.replay_stretches(&stretches, replays, &by_band, observer)
    }

    /// Replays the stretches, those first that may decide alone; what is left of a band is left out once it cannot change
    /// anything. Gives whether the observer ended the replay.
    fn replay_stretches(
        &self,
        stretches: &[LateStretch],
        replays: &mut BandReplays<'_, 'a>,
        offsets: &[Vec<u64>],
        observer: &mut impl Observer,
    ) -> bool {
        // How many requests of each stream may be late in stretches that have not been replayed.
        let mut left = vec![0; self.budgets.len()];
        for late in stretches {
            for (&(stream, _), &count) in self.bands[late.band].streams.iter().zip(&late.counts) {
                left[stream] += count;
            }
        }
        let mut before = vec![None; self.bands.len()];
        for number in self.decisive_first(stretches, observer) {
            let LateStretch { band, stretch, ref counts } = stretches[number];
            let streams = &self.bands[band].streams;
            let mut of_band = BandObserver { inner: observer, streams };
            if of_band.is_indifferent_to_all(&left) {
                continue;
            }
            let stretch = (before[band].replace(stretch), stretch);
            if replays.by_band[band].run_stretch(&offsets[band], stretch, &mut of_band) {
                return true;
            }
            streams.iter().zip(counts).for_each(|(&(stream, _), count)| left[stream] -= count);
        }
        false
    }

    /// The numbers of the stretches, those first in which somebody may have the largest part of the late requests that change
    /// anything; in their order where each late request counts.
    fn decisive_first(&self, stretches: &[LateStretch], observer: &impl Observer) -> Vec<usize> {
        let mut by_share = Vec::with_capacity(stretches.len());
        for (number, late) in stretches.iter().enumerate() {
            let mut share = 0.0f64;
            for (&(stream, _), &count) in self.bands[late.band].streams.iter().zip(&late.counts) {
                let indifferent = observer.indifferent_to(stream);
                if indifferent > 0 {
                    share = share.max(count as f64 / (indifferent as f64 + 1.0));
                }
            }
            by_share.push((share, number));
        }
        by_share.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        by_share.into_iter().map(|(_, number)| number).collect()
    }

    /// What decides whether a band is in time, for each band.
    pub(super) fn questions(&self) -> Vec<BandQuestion> {
        let horizon = self.system.horizon().0;
        let periods = self.system.group_periods();
        let question = |band: &BandSystem<'a>| BandQuestion {
            band: band.band,
            horizon,
            streams: band.described(&periods, &self.percentiles),
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
    ) -> Option<Vec<LateStretch>> {
        let origin = open - work.span().before;
        let mut starts = Vec::with_capacity(self.bands.len());
        for (band, offsets) in self.bands.iter().zip(offsets) {
            let level = band.system.idle().level(band.system.streams(), offsets, origin)?;
            let threshold = (!in_time.contains(&band.band)).then_some(band.threshold);
            starts.push(BandStart { band: band.band, threshold, level, order: band.order });
        }
        work.follow(self.arriving(shifts));
        let close = open + self.system.horizon().0;
        let mut stretches = Vec::new();
        for (band, runs) in work.late_runs(&starts, close - origin).into_iter().enumerate() {
            let offsets = &offsets[band];
            for LateRun { from, level, first, end } in runs {
                let (first, end) = ((origin + first).max(open), origin + end);
                if first >= end {
                    continue;
                }
                let counts = self.bands[band].arrivals(offsets, first, end);
                if counts.iter().all(|count| *count == 0) {
                    continue;
                }
                // The first run of a band may begin before an idle instant is known.
                let (from, level) = match level {
                    Some(level) => (origin + from, level),
                    None => {
                        let farthest = self.system.longest_period();
                        (replays.by_band[band].idle_before(open, offsets, farthest)?, 0)
                    }
                };
                let stretch = ReplayedStretch { from, level, first, end };
                stretches.push(LateStretch { band, stretch, counts });
            }
        }
        Some(stretches)
    }

    /// The streams that are looked at, and where their traces begin.
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
    /// What belongs to the streams of the band and those before it, of values for all streams.
    fn of_streams(&self, values: &[u64]) -> Vec<u64> {
        self.streams.iter().map(|&(stream, _)| values[stream]).collect()
    }

    /// How many requests of each stream of the band arrive from `first` to before `end`; none of the streams before it.
    fn arrivals(&self, offsets: &[u64], first: u64, end: u64) -> Vec<usize> {
        let mut counts = Vec::with_capacity(offsets.len());
        for ((stream, &offset), &(_, is_own)) in self.system.streams().iter().zip(offsets).zip(&self.streams)
        {
            let until = |time: u64| stream.trace.position(time - offset);
            let count = if is_own { until(end) - until(first) } else { 0 };
            counts.push(usize::try_from(count).expect("fits the address space"));
        }
        counts
    }

    fn described(&self, periods: &BTreeMap<usize, u64>, percentiles: &[Percentile]) -> Vec<BandStream> {
        let mut described = Vec::with_capacity(self.streams.len());
        for (number, &(stream, _)) in self.streams.iter().enumerate() {
            let ReplayStream { trace, group, .. } = self.system.streams()[number];
            described.push(BandStream {
                trace: trace.clone(),
                group: (group, periods[&group]),
                levels: PerStage::from_fn(|stage| self.system.levels(stage)[number]),
                percentile: percentiles[stream],
            });
        }
        described
    }
}

/// Arrivals of a band among which there may be late ones.
struct LateStretch {
    /// The index of the band.
    band: usize,
    stretch: ReplayedStretch,
    /// How many of them each stream of the band sends.
    counts: Vec<usize>,
}

/// Who waits for whom in the last band of a system; `None` where priorities differ from stage to stage, or jobs in the stages at
/// which they have work.
fn band_order(system: &ReplaySystem<'_>, streams: &[(usize, bool)]) -> Option<BandOrder> {
    let worked = system.streams().first()?.trace.worked_stages()?;
    if !same_at_all_stages(system.streams())
        || system.streams().iter().any(|stream| stream.trace.worked_stages() != Some(worked))
    {
        return None;
    }
    let levels = system.levels(Stage::NetworkIn);
    let mut lesser: BTreeMap<u32, u64> = BTreeMap::new();
    let mut own = BTreeSet::new();
    for ((stream, &level), &(_, is_own)) in system.streams().iter().zip(levels).zip(streams) {
        let most = lesser.entry(level).or_default();
        *most = (*most).max(stream.trace.lesser_work_max());
        if is_own {
            own.insert(level);
        }
    }
    Some(BandOrder { counted_twice: 2 * lesser.values().sum::<u64>(), is_one_level: own.len() == 1 })
}

/// Tells an observer of the streams of one band, by their numbers among all.
struct BandObserver<'r, O> {
    inner: &'r mut O,
    streams: &'r [(usize, bool)],
}

impl<O: Observer> BandObserver<'_, O> {
    /// Whether so many more latencies of each stream, by their numbers among all, change nothing.
    fn is_indifferent_to_all(&self, left: &[usize]) -> bool {
        self.streams
            .iter()
            .all(|&(stream, is_own)| !is_own || left[stream] <= self.inner.indifferent_to(stream))
    }
}

impl<O: Observer> Observer for BandObserver<'_, O> {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        match self.streams[stream] {
            (number, true) => self.inner.latency(number, latency),
            (_, false) => ControlFlow::Continue(()),
        }
    }
    fn indifferent_to(&self, stream: usize) -> usize {
        match self.streams[stream] {
            (number, true) => self.inner.indifferent_to(number),
            (_, false) => usize::MAX,
        }
    }
}
