//! The combinations of operation, size and parallelism to measure, their repeats and their order.

use model::{Op, OperationError};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use units::{Bytes, Percentile, Seconds, in_base_units};

/// The largest request size that is measured if the user chooses no sizes, in bytes.
const DEFAULT_SIZE_MAX: u64 = 1 << 20;
/// The largest parallelism. Each outstanding request has a thread of its own, so that a larger one is a typing error.
const PARALLELISM_MAX: usize = 1024;

/// Parameters of a measurement, as set by the user.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurementSettings {
    /// Request sizes; an empty list stands for every power of two from the target's block size to 1 MiB.
    pub sizes: Vec<Bytes>,
    /// Numbers of outstanding requests; 1 is always measured, because the base latency needs it.
    pub parallelism: Vec<usize>,
    /// The time to measure one cell, all repeats together.
    pub per_cell: Seconds,
    /// Number of repeats of each cell. Six give a 95 % interval of the median.
    pub repeats: usize,
    /// The percentile that the base latency is measured at.
    pub percentile: Percentile,
    /// Share of the best throughput of a size with which a parallelism counts as saturating.
    pub saturation: f64,
    /// The seed of offsets, contents and the order of cells.
    pub seed: u64,
}

impl Default for MeasurementSettings {
    fn default() -> Self {
        Self {
            sizes: Vec::new(),
            parallelism: vec![1, 2, 4, 8, 16, 32],
            per_cell: Seconds(1.0),
            repeats: 6,
            percentile: Percentile::new(99.9).expect("99.9 is a percentile"),
            saturation: 0.95,
            seed: 1,
        }
    }
}

/// One combination that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct MeasurementCell {
    /// The operation of all requests.
    pub op: Op,
    /// The size of each request.
    #[serde(rename = "request_bytes", serialize_with = "in_base_units")]
    #[schemars(with = "u64")]
    pub size: Bytes,
    /// The number of outstanding requests.
    pub parallelism: usize,
}

/// A plan for one target, made of [`MeasurementSettings`] that fit it.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurementPlan {
    cells: Vec<MeasurementCell>,
    per_repeat: Duration,
    repeats: usize,
    percentile: Percentile,
    saturation: f64,
    seed: u64,
}

impl MeasurementPlan {
    /// A plan with cells for every operation in `ops`, on a target that takes multiples of `block`.
    ///
    /// # Errors
    /// When a size is zero or not a multiple of `block`, when the parallelism is zero or absurdly large, and when there is
    /// no time or no repeat.
    pub fn new(settings: &MeasurementSettings, ops: &[Op], block: Bytes) -> Result<Self, OperationError> {
        let sizes = checked_sizes(&settings.sizes, block)?;
        let parallelism = checked_parallelism(&settings.parallelism)?;
        if settings.repeats == 0 {
            return Err(OperationError::input("0 repeats, expected at least 1"));
        }
        let per_cell = Duration::try_from_secs_f64(settings.per_cell.0).unwrap_or_default();
        let per_repeat = per_cell / u32::try_from(settings.repeats).unwrap_or(u32::MAX);
        if per_repeat.is_zero() {
            let message = format!(
                "{} per cell leaves no time for {}",
                settings.per_cell,
                units::plural(settings.repeats, "repeat")
            );
            return Err(OperationError::input(message).hint("try 1s per cell"));
        }
        let mut cells = Vec::new();
        for &op in ops {
            for &size in &sizes {
                cells.extend(parallelism.iter().map(|&parallelism| MeasurementCell {
                    op,
                    size,
                    parallelism,
                }));
            }
        }
        Ok(Self {
            cells,
            per_repeat,
            repeats: settings.repeats,
            percentile: settings.percentile,
            saturation: settings.saturation,
            seed: settings.seed,
        })
    }

    /// All cells, ordered by operation, size and parallelism.
    pub fn cells(&self) -> &[MeasurementCell] {
        &self.cells
    }

    /// The largest request size.
    pub fn size_max(&self) -> Bytes {
        self.cells.iter().map(|cell| cell.size).max().unwrap_or_default()
    }

    /// Returns the duration of one repeat of one cell.
    pub fn per_repeat(&self) -> Duration {
        self.per_repeat
    }

    /// Returns the number of repeats of each cell.
    pub fn repeats(&self) -> usize {
        self.repeats
    }

    /// The percentile that the base latency is measured at.
    pub fn percentile(&self) -> Percentile {
        self.percentile
    }

    /// Share of the best throughput of a size with which a parallelism counts as saturating.
    pub fn saturation(&self) -> f64 {
        self.saturation
    }

    /// The seed of offsets, contents and the order of cells.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the duration of all measurements, without the preparation of the target.
    pub fn duration(&self) -> Duration {
        self.per_repeat * u32::try_from(self.cells.len() * self.repeats).unwrap_or(u32::MAX)
    }

    /// The indices of cells in the order of measurement: every round measures all cells, each in a random order of its
    /// own.
    pub fn schedule(&self) -> Vec<usize> {
        let mut rng = StdRng::seed_from_u64(self.seed);
        let mut order = Vec::with_capacity(self.cells.len() * self.repeats);
        for _ in 0..self.repeats {
            let mut round: Vec<usize> = (0..self.cells.len()).collect();
            round.shuffle(&mut rng);
            order.extend(round);
        }
        order
    }
}

fn checked_sizes(chosen: &[Bytes], block: Bytes) -> Result<Vec<Bytes>, OperationError> {
    if chosen.is_empty() {
        let powers = std::iter::successors(Some(block.0.max(1)), |size| Some(size * 2));
        return Ok(powers.take_while(|&size| size <= DEFAULT_SIZE_MAX.max(block.0)).map(Bytes).collect());
    }
    if let Some(bad) = chosen.iter().find(|size| size.0 == 0 || !size.0.is_multiple_of(block.0)) {
        let message = format!("request size {bad}: this target takes multiples of {block}");
        return Err(OperationError::input(message).hint(format!("choose sizes such as {block} or 64KiB")));
    }
    Ok(sorted_distinct(chosen))
}

fn checked_parallelism(chosen: &[usize]) -> Result<Vec<usize>, OperationError> {
    match chosen.iter().find(|&&threads| threads == 0 || threads > PARALLELISM_MAX) {
        Some(bad) => {
            Err(OperationError::input(format!("parallelism {bad}, expected 1 to {PARALLELISM_MAX}")))
        }
        None => Ok(sorted_distinct(&[chosen, &[1]].concat())),
    }
}

fn sorted_distinct<T: Ord + Clone>(values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    values.sort();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Bytes = Bytes(512);

    #[test]
    fn default_sizes_are_powers_of_two_from_the_block() {
        let plan = MeasurementPlan::new(&MeasurementSettings::default(), &[Op::Read], BLOCK).unwrap();
        assert_eq!(plan.cells().len(), 12 * 6);
        assert_eq!((plan.cells()[0].size, plan.size_max()), (BLOCK, Bytes(1 << 20)));
        assert_eq!(plan.duration().as_secs_f64().round(), 72.0);
    }

    #[test]
    fn chosen_values_are_sorted_and_one_outstanding_is_always_there() {
        let settings = MeasurementSettings {
            sizes: vec![Bytes(8192), Bytes(4096), Bytes(8192)],
            parallelism: vec![4],
            ..MeasurementSettings::default()
        };
        let plan = MeasurementPlan::new(&settings, &[Op::Read, Op::Write], BLOCK).unwrap();
        let read: Vec<_> = plan.cells().iter().filter(|cell| cell.op == Op::Read).collect();
        let shape: Vec<_> = read.iter().map(|cell| (cell.size.0, cell.parallelism)).collect();
        assert_eq!(shape, [(4096, 1), (4096, 4), (8192, 1), (8192, 4)]);
        assert_eq!(plan.cells().len(), 8);
    }

    #[test]
    fn every_round_measures_every_cell_once() {
        let plan = MeasurementPlan::new(&MeasurementSettings::default(), &[Op::Read], BLOCK).unwrap();
        let schedule = plan.schedule();
        assert_eq!(schedule, plan.schedule(), "seeded");
        for round in schedule.chunks(plan.cells().len()) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert!(round.into_iter().eq(0..plan.cells().len()));
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        type Change = fn(&mut MeasurementSettings);
        let broken: [(Change, &str); 6] = [
            (|s| s.sizes = vec![Bytes(1000)], "multiples of 512B"),
            (|s| s.sizes = vec![Bytes(0)], "multiples of 512B"),
            (|s| s.parallelism = vec![0], "parallelism 0"),
            (|s| s.parallelism = vec![100_000], "1 to 1024"),
            (|s| s.per_cell = Seconds(0.0), "no time"),
            (|s| s.repeats = 0, "0 repeats"),
        ];
        for (change, part) in broken {
            let mut settings = MeasurementSettings::default();
            change(&mut settings);
            let message = MeasurementPlan::new(&settings, &[Op::Read], BLOCK).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
