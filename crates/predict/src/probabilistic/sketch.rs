use crate::{WorstCase, WorstCaseSketch};
use calculus::tail::{Atom, Grid, Source};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, Stage};
use units::Nanos;
use workload::windows::{CircularWork, WorkDistribution};

/// Shares of the queue that a request's own stream may be given.
pub(super) const SHARES: [f64; 10] = [1.0, 0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.06, 0.02, 0.005];
/// The share that is most often the best one in large queues.
pub(super) const FIRST_SHARE: usize = 5;
/// Atoms that are kept of a law.
const ATOMS: usize = 32;

/// What [`Probabilistic`](super::Probabilistic) keeps of a workload.
#[derive(Debug)]
pub struct Sketch {
    /// What others meet of it.
    pub(super) source: Source,
    /// For each share, what its requests find of their own stream; `None` where the share is too small.
    pub(super) own: Vec<Option<Vec<Atom>>>,
    pub(super) utilisation: PerStage<f64>,
    pub(super) passes: PerStage<Passes>,
    pub(super) worst: WorstCaseSketch,
}

/// Which requests have work at a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passes {
    All,
    None,
    Some,
}

impl Sketch {
    pub(super) fn new(grid: &Grid, safety: f64, traffic: &CircularTrace<Job>) -> Self {
        let scaled = CircularTrace::from_first_arrival(scaled(traffic, safety), traffic.period())
            .expect("only work has changed");
        let stream = CircularWork::new(scaled.items(), traffic.period());
        let law = |window: &f64| {
            let law = stream.work_in_window(nanos_up(window * 1e9));
            (atoms(&law), atoms(&law.reduced(ATOMS)))
        };
        let laws: Vec<_> = grid.windows().iter().map(law).collect();
        let own = |share| stream.backlog_at_arrivals(share).map(|law| atoms(&law.reduced(ATOMS)));
        Self {
            source: Source::new(grid, &laws, stream.rate(), stream.burst()),
            own: SHARES.iter().map(|share| own(*share)).collect(),
            utilisation: traffic.utilisation().map(|utilisation| utilisation * safety),
            passes: PerStage::from_fn(|stage| passes(traffic, stage)),
            worst: WorstCase::default().sketch(&scaled),
        }
    }

    /// Memory that it occupies.
    pub fn bytes(&self) -> usize {
        let own: usize = self.own.iter().flatten().map(|law| size_of_val(&law[..])).sum();
        size_of::<Self>() + self.source.bytes() + own + self.worst.heap_bytes()
    }

    /// The least work of their own stream, seconds, that at most the share `allowed` of its requests exceeds
    /// when the queue is theirs alone: no latency below it fits.
    pub(super) fn own_quantile(&self, allowed: f64) -> f64 {
        let Some(law) = &self.own[0] else { return 0.0 };
        let mut above = 0.0;
        let late = law.iter().rev().find(|atom| {
            above += atom.probability;
            above > allowed
        });
        late.map_or(0.0, |atom| atom.work)
    }

    /// Whether its requests keep their order at every stage, whatever waits there.
    pub(super) fn keeps_order(&self) -> bool {
        self.passes.iter().all(|(_, passes)| *passes != Passes::Some)
    }
}

fn passes(traffic: &CircularTrace<Job>, stage: Stage) -> Passes {
    match traffic.items().iter().filter(|job| job.work[stage] > Nanos::ZERO).count() {
        0 => Passes::None,
        all if all == traffic.items().len() => Passes::All,
        _ => Passes::Some,
    }
}

fn scaled(traffic: &CircularTrace<Job>, factor: f64) -> Vec<Job> {
    let scale = |work: &Nanos| nanos_up(work.0 as f64 * factor);
    traffic.items().iter().map(|job| Job { work: job.work.map(scale), ..*job }).collect()
}

fn atoms(law: &WorkDistribution) -> Vec<Atom> {
    law.atoms().iter().map(|atom| Atom { work: atom.work, probability: atom.probability }).collect()
}

/// The next whole nanosecond; saturates.
fn nanos_up(ns: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos(ns.ceil() as u64)
}
