//! Discrete distributions of amounts of work.

/// One value of a [`WorkDistribution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkAtom {
    /// The amount of work in seconds.
    pub work: f64,
    /// The probability of this amount, above zero.
    pub probability: f64,
}

/// A discrete distribution of an amount of work, rounded outward.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkDistribution {
    atoms: Vec<WorkAtom>,
}

impl WorkDistribution {
    /// The values in ascending order; their probabilities add up to 1.
    pub fn atoms(&self) -> &[WorkAtom] {
        &self.atoms
    }

    /// The largest amount of work in seconds.
    pub fn max(&self) -> f64 {
        self.atoms.last().map_or(0.0, |atom| atom.work)
    }

    /// The probability that the amount is at least `work`.
    pub fn tail(&self, work: f64) -> f64 {
        let from = self.atoms.partition_point(|atom| atom.work < work);
        self.atoms[from..].iter().map(|atom| atom.probability).sum()
    }

    /// A distribution with at most `count` (at least 2) values that dominates this one: neighbours merge into the larger
    /// value, first where that changes least relative to the value and to the probability of reaching it.
    #[must_use]
    pub fn reduced(&self, count: usize) -> Self {
        let mut atoms = self.atoms.clone();
        while atoms.len() > count.max(2) {
            let cheapest = cheapest_merge(&atoms);
            atoms[cheapest + 1].probability += atoms[cheapest].probability;
            atoms.remove(cheapest);
        }
        Self { atoms }
    }
}

/// The index of the value whose merger into the next one changes least.
fn cheapest_merge(atoms: &[WorkAtom]) -> usize {
    let mut tail = atoms[atoms.len() - 1].probability;
    let mut best = atoms.len() - 2;
    let mut least = f64::INFINITY;
    for index in (0..atoms.len() - 1).rev() {
        let low = atoms[index];
        let high = atoms[index + 1];
        tail += low.probability;
        let cost = low.probability / tail * ((high.work - low.work) / high.work);
        if cost < least {
            (best, least) = (index, cost);
        }
    }
    best
}

const BINS_PER_OCTAVE_LOG2: u32 = 4;
const BINS: usize = 64 << BINS_PER_OCTAVE_LOG2;

/// Counts weighted integers in logarithmic bins.
pub(super) struct DistributionBins {
    /// The sum of weights in each bin.
    weight: Vec<u64>,
    /// The largest value in each bin.
    largest: Vec<u64>,
}

impl DistributionBins {
    pub(super) fn new() -> Self {
        Self { weight: vec![0; BINS], largest: vec![0; BINS] }
    }

    pub(super) fn add(&mut self, value: u64, weight: u64) {
        let bin = bin_of(value);
        self.weight[bin] += weight;
        self.largest[bin] = self.largest[bin].max(value);
    }

    /// The distribution of the values, which are nanoseconds.
    pub(super) fn distribution(&self) -> WorkDistribution {
        self.distribution_with(|bin| self.largest[bin])
    }

    /// The distribution of the values, which are nanoseconds, when each counts as the largest value that its bin may have.
    pub(super) fn distribution_at_ceilings(&self) -> WorkDistribution {
        self.distribution_with(bin_ceiling)
    }

    fn distribution_with(&self, value: impl Fn(usize) -> u64) -> WorkDistribution {
        let total: u64 = self.weight.iter().sum();
        let mut atoms = Vec::new();
        for (bin, &weight) in self.weight.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            atoms.push(WorkAtom {
                work: value(bin) as f64 * 1e-9 * (1.0 + 1e-12),
                probability: weight as f64 / total as f64,
            });
        }
        WorkDistribution { atoms }
    }
}

/// The largest value in the bin with this index.
fn bin_ceiling(bin: usize) -> u64 {
    let octave = (bin >> BINS_PER_OCTAVE_LOG2).saturating_sub(1);
    let step = (bin - (octave << BINS_PER_OCTAVE_LOG2)) as u64;
    // The last bin ends where 64 bits do.
    u64::try_from(((u128::from(step) + 1) << octave) - 1).unwrap_or(u64::MAX)
}

/// The least value in the bin of a value.
pub(super) fn bin_floor(value: u64) -> u64 {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BINS_PER_OCTAVE_LOG2 + 1);
    (value >> octave) << octave
}

/// The bin of a value: values below 16 have bins of their own, larger ones share 16 bins per octave.
pub(super) fn bin_of(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BINS_PER_OCTAVE_LOG2 + 1);
    #[allow(clippy::cast_possible_truncation, reason = "below 32 after the shift")]
    let step = (value >> octave) as usize;
    ((octave as usize) << BINS_PER_OCTAVE_LOG2) + step
}
