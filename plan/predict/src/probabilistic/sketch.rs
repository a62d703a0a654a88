//! What the probabilistic model keeps of a workload.

use super::burst_laws::{ATOMS, BurstLaws, atoms};
use super::shares::{SHARES, nanos_up};
use crate::{WorstCase, WorstCaseSketch};
use calculus::tail::{LawAtom, TailGrid, WindowLaws};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, Stage};
use units::Nanos;
use workload::windows::CircularWork;

/// What [`Probabilistic`](super::Probabilistic) keeps of a workload.
#[derive(Debug)]
pub struct ProbabilisticSketch {
    /// The laws of its work as other workloads meet it.
    pub(super) laws: StreamLaws,
    /// The law of what its requests find of their own stream, for each share; `None` where the share is too small.
    pub(super) own: Vec<Option<Vec<LawAtom>>>,
    pub(super) utilisation: PerStage<f64>,
    pub(super) with_work: PerStage<RequestsWithWork>,
    pub(super) worst: WorstCaseSketch,
    /// What its bursts do to others by themselves.
    pub(super) bursts: BurstLaws,
}

/// The laws of the work of a stream, or of streams that count as one.
#[derive(Debug, Clone)]
pub(super) struct StreamLaws {
    /// Those of the work in each window.
    pub(super) windows: WindowLaws,
    /// Those of the most work beyond the mean rate in the cell from each window to the next.
    pub(super) cells: WindowLaws,
}

/// Streams with less work per second than this have nearly as much beyond their rate as in all.
const RATE_MIN: f64 = 0.02;

impl StreamLaws {
    fn new(grid: &TailGrid, stream: &CircularWork) -> Self {
        let mut windows = Vec::new();
        for window in grid.windows() {
            let law = stream.work_in_window(nanos_up(window * 1e9));
            windows.push((atoms(&law), atoms(&law.reduced(ATOMS))));
        }
        let mut cells = Vec::new();
        for (index, window) in grid.windows().iter().enumerate() {
            let next = (index + 1).min(windows.len() - 1);
            let longest = nanos_up(grid.windows()[next] * 1e9);
            let beyond = (stream.rate() >= RATE_MIN).then(|| {
                let law = stream.work_beyond_rate(nanos_down(window * 1e9), longest)?;
                Some((atoms(&law), atoms(&law.reduced(ATOMS))))
            });
            // What a longer window has is beyond the rate at most all of it.
            cells.push(beyond.flatten().unwrap_or_else(|| windows[next].clone()));
        }
        let tables = |laws: &[_]| WindowLaws::new(grid, laws, stream.rate(), stream.burst());
        Self { windows: tables(&windows), cells: tables(&cells) }
    }

    /// Streams that may depend on one another in any way, as one stream.
    pub(super) fn dependent(grid: &TailGrid, streams: &[&Self]) -> Self {
        let of = |laws: fn(&Self) -> &WindowLaws| {
            let laws: Vec<&WindowLaws> = streams.iter().map(|stream| laws(stream)).collect();
            WindowLaws::dependent(grid, &laws)
        };
        Self { windows: of(|stream| &stream.windows), cells: of(|stream| &stream.cells) }
    }

    /// A stream that always has the most work that this one can have.
    pub(super) fn at_its_worst(&self, grid: &TailGrid) -> Self {
        Self { windows: self.windows.at_its_worst(grid), cells: self.cells.at_its_worst(grid) }
    }
}

/// Which requests have work at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestsWithWork {
    All,
    None,
    Some,
}

impl ProbabilisticSketch {
    pub(super) fn new(grid: &TailGrid, safety: f64, traffic: &CircularTrace<Job>) -> Self {
        let scaled = with_scaled_work(traffic, safety);
        let stream = CircularWork::new(scaled.items(), traffic.period());
        let own_laws = SHARES.iter().map(|share| {
            let law = stream.backlog_at_arrivals(*share)?;
            Some(atoms(&law.reduced(ATOMS)))
        });
        Self {
            laws: StreamLaws::new(grid, &stream),
            own: own_laws.collect(),
            utilisation: traffic.utilisation().map(|utilisation| utilisation * safety),
            with_work: PerStage::from_fn(|stage| requests_with_work(traffic, stage)),
            worst: WorstCase::default().sketch(&scaled),
            bursts: BurstLaws::new(stream),
        }
    }

    /// The memory that the sketch occupies, bytes.
    pub fn bytes(&self) -> usize {
        let own: usize = self.own.iter().flatten().map(|law| size_of_val(&law[..])).sum();
        size_of::<Self>()
            + self.laws.windows.bytes()
            + self.laws.cells.bytes()
            + own
            + self.bursts.heap_bytes()
            + self.worst.heap_bytes()
    }

    /// The least work of their own stream, seconds, that at most the share `allowed` of its requests exceeds
    /// when the queue is theirs alone: no latency below it fits.
    pub(super) fn own_quantile(&self, allowed: f64) -> f64 {
        let Some(law) = &self.own[0] else { return 0.0 };
        let mut above = 0.0;
        for atom in law.iter().rev() {
            above += atom.probability;
            if above > allowed {
                return atom.work;
            }
        }
        0.0
    }

    /// Whether its requests keep their order at every stage, whatever waits there.
    pub(super) fn keeps_order(&self) -> bool {
        self.with_work.iter().all(|(_, requests)| *requests != RequestsWithWork::Some)
    }
}

fn requests_with_work(traffic: &CircularTrace<Job>, stage: Stage) -> RequestsWithWork {
    match traffic.items().iter().filter(|job| job.work[stage] > Nanos::ZERO).count() {
        0 => RequestsWithWork::None,
        all if all == traffic.items().len() => RequestsWithWork::All,
        _ => RequestsWithWork::Some,
    }
}

/// The trace with all work multiplied by a factor, rounded up.
fn with_scaled_work(traffic: &CircularTrace<Job>, factor: f64) -> CircularTrace<Job> {
    let mut jobs = traffic.items().to_vec();
    for job in &mut jobs {
        job.work = job.work.map(|work| nanos_up(work.0 as f64 * factor));
    }
    CircularTrace::from_first_arrival(jobs, traffic.period()).expect("only work has changed")
}

/// The last whole nanosecond before.
fn nanos_down(ns: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    Nanos(ns as u64)
}
