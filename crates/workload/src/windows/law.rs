/// A value and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atom {
    /// Seconds of work.
    pub work: f64,
    /// Positive.
    pub probability: f64,
}

/// A discrete law of an amount of work, rounded outward.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    atoms: Vec<Atom>,
}

impl Law {
    /// In ascending order of work; the probabilities add to 1.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// The largest value, seconds.
    pub fn max(&self) -> f64 {
        self.atoms.last().map_or(0.0, |atom| atom.work)
    }

    /// P(work ≥ `work`).
    pub fn tail(&self, work: f64) -> f64 {
        let from = self.atoms.partition_point(|atom| atom.work < work);
        self.atoms[from..].iter().map(|atom| atom.probability).sum()
    }

    /// A law with at most `count` (≥ 2) atoms that dominates this one: neighbours merge into the larger, in
    /// the order of how little that moves, relative to the value and to the probability of reaching it.
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

/// The index whose atom is best merged into the next.
fn cheapest_merge(atoms: &[Atom]) -> usize {
    let mut tail = atoms[atoms.len() - 1].probability;
    let (mut best, mut least) = (atoms.len() - 2, f64::INFINITY);
    for index in (0..atoms.len() - 1).rev() {
        let (low, high) = (atoms[index], atoms[index + 1]);
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

/// Collects weighted integers into logarithmic bins.
pub(super) struct Bins {
    weight: Vec<u64>,
    largest: Vec<u64>,
}

impl Bins {
    pub(super) fn new() -> Self {
        Self { weight: vec![0; BINS], largest: vec![0; BINS] }
    }

    pub(super) fn add(&mut self, value: u64, weight: u64) {
        let bin = bin(value);
        self.weight[bin] += weight;
        self.largest[bin] = self.largest[bin].max(value);
    }

    /// Values are nanoseconds.
    pub(super) fn law(&self) -> Law {
        let total: u64 = self.weight.iter().sum();
        let atoms = self.weight.iter().zip(&self.largest).filter(|(weight, _)| **weight > 0);
        let atom = |(&weight, &largest): (&u64, &u64)| Atom {
            work: largest as f64 * 1e-9 * (1.0 + 1e-12),
            probability: weight as f64 / total as f64,
        };
        Law { atoms: atoms.map(atom).collect() }
    }
}

/// Exact below 16, then 16 bins per octave.
fn bin(value: u64) -> usize {
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BINS_PER_OCTAVE_LOG2 + 1);
    // Below 32 after the shift.
    #[allow(clippy::cast_possible_truncation)]
    let step = (value >> octave) as usize;
    ((octave as usize) << BINS_PER_OCTAVE_LOG2) + step
}
