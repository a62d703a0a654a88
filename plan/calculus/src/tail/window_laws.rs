//! The laws of one stream, tabulated.

use super::atom::{LawAtom, StoredAtom, f32_up};
use super::chernoff::log_mgf;
use super::grid::TailGrid;

/// The laws of the work of one stream over the windows of a [`TailGrid`].
#[derive(Debug, Clone)]
pub struct WindowLaws {
    /// The atoms of each window's reduced law; empty when only the bound by moments may be used.
    atoms: Vec<StoredAtom>,
    /// The index in `atoms` where each window's atoms end.
    ends: Vec<u32>,
    /// The logarithm of the moment generating function, Λ, window by window, exponent by exponent.
    log_mgf: Vec<f32>,
    /// The most work of each window.
    max: Vec<f32>,
    rate: f64,
    burst: f64,
}

impl WindowLaws {
    /// The tables of a stream from the law of each window of the grid, in ascending order of work, with a dominating law
    /// of fewer atoms beside it, for convolutions. No window of any length τ holds more than `burst + rate·τ`.
    ///
    /// # Panics
    /// When there is not one law for each window.
    pub fn new(grid: &TailGrid, laws: &[(Vec<LawAtom>, Vec<LawAtom>)], rate: f64, burst: f64) -> Self {
        assert_eq!(laws.len(), grid.windows().len(), "one law for each window");
        let mut stream = Self::empty(rate, burst);
        for (law, reduced) in laws {
            stream.atoms.extend(reduced.iter().map(StoredAtom::new));
            stream.end_window(grid, law);
        }
        stream
    }

    fn empty(rate: f64, burst: f64) -> Self {
        Self { atoms: Vec::new(), ends: Vec::new(), log_mgf: Vec::new(), max: Vec::new(), rate, burst }
    }

    /// Completes the tables of a window whose atoms have been added.
    fn end_window(&mut self, grid: &TailGrid, law: &[LawAtom]) {
        self.ends.push(u32::try_from(self.atoms.len()).expect("a few atoms per window"));
        self.log_mgf.extend(log_mgf(law, grid.thetas()).into_iter().map(f32_up));
        self.max.push(law.last().map_or(0.0, |atom| f32_up(atom.work)));
    }

    /// The tables of a stream that always has the most work that this one can have.
    #[must_use]
    pub fn at_its_worst(&self, grid: &TailGrid) -> Self {
        let mut worst = Self::empty(self.rate, self.burst);
        for &max in &self.max {
            let atom = LawAtom { work: max.into(), probability: 1.0 };
            worst.atoms.push(StoredAtom::new(&atom));
            worst.end_window(grid, &[atom]);
        }
        worst
    }

    /// Streams that may depend on one another in any way, as one stream; see the module header.
    pub fn dependent(grid: &TailGrid, streams: &[&Self]) -> Self {
        if let [only] = streams {
            return (*only).clone();
        }
        let rate = streams.iter().map(|stream| stream.rate).sum();
        let burst = streams.iter().map(|stream| stream.burst).sum();
        let mut sum = Self::empty(rate, burst);
        for window in 0..grid.windows().len() {
            let laws: Vec<&[StoredAtom]> = streams.iter().map(|stream| stream.atoms(window)).collect();
            sum.end_window(grid, &comonotone(&laws));
        }
        sum
    }

    /// Returns true if the stream's law is known, not only a bound on its moments, so that it may be
    /// convolved.
    pub(super) fn has_law(&self) -> bool {
        !self.atoms.is_empty()
    }

    /// The atoms of a window's reduced law.
    pub(super) fn atoms(&self, window: usize) -> &[StoredAtom] {
        let start = window.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.atoms[start as usize..self.ends[window] as usize]
    }

    /// The most work of a window, seconds.
    pub(super) fn max(&self, window: usize) -> f32 {
        self.max[window]
    }

    /// The values of Λ of a window, by exponent.
    pub(super) fn log_mgf(&self, window: usize, exponents: usize) -> &[f32] {
        &self.log_mgf[window * exponents..(window + 1) * exponents]
    }

    /// The values of Λ of all windows, window by window.
    pub(super) fn log_mgfs(&self) -> &[f32] {
        &self.log_mgf
    }

    /// The most work of each window, seconds.
    pub(super) fn maxima(&self) -> &[f32] {
        &self.max
    }

    /// The rate of the bucket that bounds all windows.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The burst of the bucket that bounds all windows, seconds.
    pub(super) fn burst(&self) -> f64 {
        self.burst
    }

    /// The memory that the tables occupy, bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&self.atoms[..])
            + size_of_val(&self.ends[..])
            + size_of_val(&self.log_mgf[..])
            + size_of_val(&self.max[..])
    }
}

/// The law of the sum when all summands are at the same quantile.
fn comonotone(laws: &[&[StoredAtom]]) -> Vec<LawAtom> {
    let mut next = vec![0usize; laws.len()];
    // Remaining probability of each law's current atom.
    let mut left: Vec<f64> = laws.iter().map(|law| law[0].probability.into()).collect();
    let mut atoms = Vec::new();
    loop {
        let probability = left.iter().copied().fold(f64::INFINITY, f64::min);
        if probability == f64::INFINITY {
            return atoms;
        }
        let work = laws.iter().zip(&next).map(|(law, at)| f64::from(law[*at].work)).sum();
        atoms.push(LawAtom { work, probability });
        for (law, (next, left)) in laws.iter().zip(next.iter_mut().zip(&mut left)) {
            *left -= probability;
            while *left <= 0.0 && *next + 1 < law.len() {
                *next += 1;
                *left += f64::from(law[*next].probability);
            }
            if *left <= 0.0 {
                // Stored probabilities add to a little more than 1: a law that is at its end waits for the others.
                *left = f64::INFINITY;
            }
        }
    }
}
