//! The traces, and replay as the judge of who was admitted.

use super::{ALONE, LINK, SLOS, WINDOW};
use crate::support::{self, Through};
use model::{CircularTrace, Job, PerStage, Slo};
use sim::{Alignment, Percentiles, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use units::{Nanos, Percentile, Seconds};

/// A workload that arrives.
pub(crate) struct Arrival {
    pub(crate) copy: usize,
    pub(crate) trace: usize,
    pub(crate) slo: Slo,
}

/// Traces and what judges look at.
pub(crate) struct World {
    pub(crate) first: Vec<CircularTrace<Job>>,
    pub(crate) replay_traces: Vec<ReplayTrace>,
    /// Bytes by trace that cross the link in the judged half.
    pub(crate) bytes: Vec<f64>,
}

impl World {
    pub(crate) fn new(through: Through, factor: f64) -> Option<Self> {
        let traces = support::traces(through)?;
        let half = |t: &CircularTrace<Job>, which: usize| {
            support::slower(&t.halves().expect("both halves have requests")[which], factor)
        };
        let second: Vec<CircularTrace<Job>> = traces.iter().map(|t| half(t, 1)).collect();
        let record = |t: &CircularTrace<Job>| ReplayTrace::new(t.clone()).expect("minutes, not years");
        let bytes = |t: &CircularTrace<Job>| {
            let [network_in, _, network_out] = t.utilisation().into_array();
            (network_in + network_out) * t.period().as_secs() * LINK / factor
        };
        Some(Self {
            first: traces.iter().map(|t| half(t, 0)).collect(),
            replay_traces: second.iter().map(record).collect(),
            bytes: second.iter().map(bytes).collect(),
        })
    }

    pub(crate) fn system<'a>(&'a self, admitted: &[&Arrival]) -> Option<ReplaySystem<'a>> {
        let rank = |slo: Slo| admitted.iter().filter(|a| a.slo.latency < slo.latency).count();
        let stream = |a: &&Arrival| ReplayStream {
            trace: &self.replay_traces[a.trace],
            priority: PerStage::from_fn(|_| u32::try_from(rank(a.slo)).expect("few workloads")),
            group: a.copy,
        };
        ReplaySystem::new(admitted.iter().map(stream).collect()).ok()
    }

    /// Returns for each workload if it meets its SLO over the whole half, and in all windows; none does under
    /// overload.
    pub(crate) fn judge(&self, admitted: &[&Arrival], seed: u64) -> [Vec<bool>; 2] {
        let Some(system) = self.system(admitted) else {
            return [vec![false; admitted.len()], vec![false; admitted.len()]];
        };
        let half = system.horizon();
        let shifts = Alignment::Random { seed, index: 0 }.shifts(&system);
        let whole = met(&system, &shifts, admitted);
        let mut in_windows = whole.clone();
        let mut open = Nanos::ZERO;
        while open < half {
            let length = WINDOW.min(half - open);
            let later = |(shift, stream): (&Nanos, &ReplayStream<'_>)| {
                let period = stream.trace.period().0;
                Nanos((shift.0 + period - open.0 % period) % period)
            };
            let shifts: Vec<Nanos> = shifts.iter().zip(system.streams()).map(later).collect();
            let window = met(&system.clone().with_horizon(length), &shifts, admitted);
            in_windows.iter_mut().zip(window).for_each(|(all, met)| *all &= met);
            open = open + length;
        }
        [whole, in_windows]
    }
}

/// Returns for each workload if it meets its SLO in one alignment.
pub(crate) fn met(system: &ReplaySystem<'_>, shifts: &[Nanos], admitted: &[&Arrival]) -> Vec<bool> {
    let mut replay = Replay::new(system, PreemptionMode::Preemptive);
    let mut tails = Percentiles::default();
    tails.reset(&replay.counts(shifts), &admitted.iter().map(|a| a.slo.percentile).collect::<Vec<_>>());
    replay.run(shifts, &mut tails);
    let seen = tails.take().into_iter().zip(admitted);
    // A window without requests is no violation.
    seen.map(|(seen, a)| seen.is_none_or(|seen| seen.as_secs() <= a.slo.latency.0)).collect()
}

pub(crate) fn slo(percent: f64, latency: f64) -> Slo {
    Slo::new(Percentile::new(percent).expect("a percentile"), Seconds(latency)).expect("positive")
}

/// By trace: the SLOs of which it takes at most a part alone, in both halves.
pub(crate) fn feasible(world: &World) -> Vec<Vec<f64>> {
    let first: Vec<ReplayTrace> =
        world.first.iter().map(|t| ReplayTrace::new(t.clone()).expect("minutes, not years")).collect();
    let alone = |trace: &ReplayTrace| {
        let priority = PerStage::from_fn(|_| 0);
        let system = ReplaySystem::new(vec![ReplayStream { trace, priority, group: 0 }]).ok()?;
        let percentile = [Percentile::new(99.9).expect("a percentile")];
        sim::alignment_percentiles(&system, PreemptionMode::Preemptive, &[Alignment::Recorded], &percentile)
            [0]
        .0[0]
    };
    let kept = |trace: usize| {
        let halves = [&first[trace], &world.replay_traces[trace]].map(alone);
        let limit = |slo: f64| slo * ALONE;
        let keeps =
            |slo: &f64| halves.iter().all(|seen| seen.is_some_and(|seen| seen.as_secs() <= limit(*slo)));
        SLOS.into_iter().filter(keeps).collect()
    };
    (0..first.len()).map(kept).collect()
}
