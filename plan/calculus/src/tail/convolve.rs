//! Exact convolution on a lattice, rounded up.

use super::atom::StoredAtom;

/// The law of a sum on multiples of `step` below `cells·step`; what is missing to the total lies above.
pub(super) struct Lattice {
    step: f64,
    /// The sum of all probabilities: stored ones are rounded up, so that they add to a little more than 1.
    total: f64,
    /// The probability of each lattice point.
    law: Vec<f64>,
    /// The law that is being computed.
    next: Vec<f64>,
}

impl Lattice {
    /// The law of an empty sum, all of which is at 0.
    pub(super) fn new(cells: usize, step: f64) -> Self {
        let mut law = vec![0.0; cells];
        law[0] = 1.0;
        Self { step, total: 1.0, next: vec![0.0; cells], law }
    }

    /// Adds an independent summand; each value counts as the next lattice point.
    pub(super) fn add(&mut self, atoms: &[StoredAtom]) {
        self.next.fill(0.0);
        let mut at = 0;
        let mut probability = 0.0;
        for atom in atoms {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let point = (f64::from(atom.work) / self.step).ceil() as usize;
            if point != at {
                self.add_shifted(at, probability);
                (at, probability) = (point, 0.0);
            }
            probability += f64::from(atom.probability);
        }
        self.add_shifted(at, probability);
        self.total *= atoms.iter().map(|atom| f64::from(atom.probability)).sum::<f64>();
        std::mem::swap(&mut self.law, &mut self.next);
    }

    /// Adds the law so far, moved up by this many points, with this weight.
    fn add_shifted(&mut self, by: usize, probability: f64) {
        if probability > 0.0 && by < self.law.len() {
            let count = self.law.len() - by;
            self.next[by..].iter_mut().zip(&self.law[..count]).for_each(|(sum, p)| *sum += probability * p);
        }
    }

    /// The tail `P(sum + Y ≥ m·step)` for every m, where `rest` bounds the tail of an independent Y on the lattice.
    pub(super) fn tail_with(&self, rest: Option<&[f64]>, tail: &mut [f64]) {
        let mut below = 0.0f64;
        for (m, tail) in tail.iter_mut().enumerate() {
            let by_both: f64 = rest.map_or(0.0, |rest| {
                self.law[..m].iter().zip(rest[1..=m].iter().rev()).map(|(p, r)| p * r).sum()
            });
            *tail = (self.total - below).max(0.0) + by_both;
            below += self.law.get(m).copied().unwrap_or(0.0);
        }
    }
}
