//! Shared parts of the experiments: the published traces as traffic, their halves, copies; statistics.
#![allow(dead_code, reason = "each experiment uses a part")]

use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::{Nanos, Percentile};

#[path = "../../../predict/tests/support/mod.rs"]
mod published;

pub(crate) use published::Through;

/// The 41 published traces in their order; `None`, loudly, where they are absent.
pub(crate) fn traces(through: Through) -> Option<Vec<CircularTrace<Job>>> {
    let all = published::published(through)?;
    Some(all.into_iter().map(|real| real.traffic).collect())
}

/// Returns the same jobs on stages that are `factor` times slower.
pub(crate) fn slower(traffic: &CircularTrace<Job>, factor: f64) -> CircularTrace<Job> {
    // Far below 2^64.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let slow = |work: &Nanos| Nanos((work.0 as f64 * factor).ceil() as u64);
    let jobs = traffic.items().iter().map(|job| Job { work: job.work.map(slow), ..*job });
    CircularTrace::from_first_arrival(jobs.collect(), traffic.period()).expect("arrivals are unchanged")
}

/// The circular trace begun at its first job at or after a part (0 to 1) of the period.
pub(crate) fn rotated(traffic: &CircularTrace<Job>, part: f64) -> CircularTrace<Job> {
    let jobs = traffic.items();
    let period = traffic.period().0;
    // Within the period.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let from = Nanos((part * period as f64) as u64);
    let cut = jobs.partition_point(|job| job.arrival < from);
    let later = jobs[..cut].iter().map(|job| Job { arrival: Nanos(job.arrival.0 + period), ..*job });
    let turned = jobs[cut..].iter().copied().chain(later).collect();
    CircularTrace::from_first_arrival(turned, traffic.period()).expect("one period in order")
}

/// The highest utilisation of a stage by all of these.
pub(crate) fn busiest<'a>(all: &(impl Iterator<Item = &'a CircularTrace<Job>> + Clone)) -> f64 {
    let at = |stage: Stage| all.clone().map(|t| t.utilisation()[stage]).sum::<f64>();
    Stage::ALL.into_iter().map(at).fold(0.0, f64::max)
}

/// A workload of a mix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Position among the sketches.
    pub(crate) source: usize,
    /// 0 is served first at every stage.
    pub(crate) level: u32,
    /// Members of a group are dependent.
    pub(crate) group: usize,
    /// Asked for.
    pub(crate) percentile: Percentile,
}

/// Any model over a fixed set of sources.
pub(crate) trait Predictor {
    fn name(&self) -> &'static str;
    fn predict(&self, mix: &[Part]) -> Vec<Result<Prediction, UndefinedLatency>>;
}

/// A model and its sketches.
pub(crate) struct Sketched<M: LatencyModel> {
    model: M,
    sketches: Vec<M::Sketch>,
}

impl<M: LatencyModel + 'static> Sketched<M> {
    /// Boxed.
    pub(crate) fn over(model: M, sources: &[CircularTrace<Job>]) -> Box<dyn Predictor> {
        let sketches = sources.iter().map(|t| model.sketch(t)).collect();
        Box::new(Self { model, sketches })
    }
}

impl<M: LatencyModel> Predictor for Sketched<M> {
    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn predict(&self, mix: &[Part]) -> Vec<Result<Prediction, UndefinedLatency>> {
        let member = |part: &Part| ServerMember {
            sketch: &self.sketches[part.source],
            priority: PerStage::from_fn(|_| part.level),
            group: part.group,
            percentile: part.percentile,
        };
        self.model.predict(&mix.iter().map(member).collect::<Vec<_>>())
    }
}

/// The value below which the part (0 to 1) of the ascending values lies; NaN without values.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let position = (part * sorted.len() as f64).ceil().clamp(1.0, sorted.len() as f64) as usize - 1;
    sorted[position.min(last)]
}

/// Ascending.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns true if a word is among the program's arguments.
pub(crate) fn asked(word: &str) -> bool {
    std::env::args().any(|arg| arg == word)
}

/// The number after a word among the program's arguments.
pub(crate) fn number_after(word: &str) -> Option<usize> {
    let mut args = std::env::args().skip_while(|arg| arg != word);
    args.nth(1)?.parse().ok()
}
