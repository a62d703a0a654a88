use super::chernoff::log_mgf;

/// The windows and exponents for which sources are tabulated; sources that meet share one.
#[derive(Debug, Clone, PartialEq)]
pub struct TailGrid {
    windows: Vec<f64>,
    thetas: Vec<f64>,
}

impl TailGrid {
    /// Both ascending and positive: windows in seconds, exponents per second.
    ///
    /// # Panics
    /// If they are not, or there are none.
    pub fn new(windows: Vec<f64>, thetas: Vec<f64>) -> Self {
        for axis in [&windows, &thetas] {
            assert!(axis.first().is_some_and(|first| *first > 0.0), "a positive first point");
            assert!(axis.is_sorted_by(|a, b| a < b) && axis[axis.len() - 1].is_finite(), "ascending");
        }
        Self { windows, thetas }
    }

    /// Seconds.
    pub fn windows(&self) -> &[f64] {
        &self.windows
    }

    /// Per second.
    pub fn thetas(&self) -> &[f64] {
        &self.thetas
    }

    /// The first window of at least `length`; `None` beyond the last.
    pub(super) fn window_from(&self, length: f64) -> Option<usize> {
        let index = self.windows.partition_point(|window| *window < length);
        (index < self.windows.len()).then_some(index)
    }
}

/// A value and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorkAtom {
    /// Seconds of work.
    pub work: f64,
    /// Of exactly this work.
    pub probability: f64,
}

/// An atom as it is kept, rounded up.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredAtom {
    pub(super) work: f32,
    pub(super) probability: f32,
}

/// The laws of the work of one stream over the windows of a [`TailGrid`].
#[derive(Debug, Clone)]
pub struct WindowLaws {
    /// Window by window; empty when only the bound by moments may be used.
    atoms: Vec<StoredAtom>,
    /// Where each window's atoms end.
    ends: Vec<u32>,
    /// Λ, window by window, exponent by exponent.
    log_mgf: Vec<f32>,
    /// The largest value of each window.
    max: Vec<f32>,
    rate: f64,
    burst: f64,
}

impl WindowLaws {
    /// From the law of each window of the grid, in ascending order of work; `reduced` are dominating laws with
    /// fewer atoms, for convolutions. No window of any length τ holds more than `burst + rate·τ`.
    ///
    /// # Panics
    /// If there is not one law for each window.
    pub fn new(grid: &TailGrid, laws: &[(Vec<WorkAtom>, Vec<WorkAtom>)], rate: f64, burst: f64) -> Self {
        assert_eq!(laws.len(), grid.windows.len(), "one law for each window");
        let mut source = Self::empty(rate, burst);
        for (law, reduced) in laws {
            source.atoms.extend(reduced.iter().map(keep));
            source.end_window(grid, law);
        }
        source
    }

    fn empty(rate: f64, burst: f64) -> Self {
        Self { atoms: Vec::new(), ends: Vec::new(), log_mgf: Vec::new(), max: Vec::new(), rate, burst }
    }

    fn end_window(&mut self, grid: &TailGrid, law: &[WorkAtom]) {
        self.ends.push(u32::try_from(self.atoms.len()).expect("a few atoms per window"));
        self.log_mgf.extend(log_mgf(law, &grid.thetas).into_iter().map(up));
        self.max.push(law.last().map_or(0.0, |atom| up(atom.work)));
    }

    /// A source that always has the largest work that this one can have.
    #[must_use]
    pub fn at_its_worst(&self, grid: &TailGrid) -> Self {
        let mut worst = Self::empty(self.rate, self.burst);
        for &max in &self.max {
            let atom = WorkAtom { work: max.into(), probability: 1.0 };
            worst.atoms.push(keep(&atom));
            worst.end_window(grid, &[atom]);
        }
        worst
    }

    /// Sources that may depend on one another in any way, as one; see the module header.
    pub fn dependent(grid: &TailGrid, sources: &[&Self]) -> Self {
        if let [only] = sources {
            return (*only).clone();
        }
        let total = |of: fn(&Self) -> f64| sources.iter().map(|source| of(source)).sum();
        let mut sum = Self::empty(total(|s| s.rate), total(|s| s.burst));
        for window in 0..grid.windows.len() {
            let laws: Vec<&[StoredAtom]> = sources.iter().map(|source| source.atoms(window)).collect();
            sum.end_window(grid, &comonotone(&laws));
        }
        sum
    }

    /// Whether it may be convolved: its law is known, not only a bound on its moments.
    pub(super) fn has_law(&self) -> bool {
        !self.atoms.is_empty()
    }

    pub(super) fn atoms(&self, window: usize) -> &[StoredAtom] {
        let start = window.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.atoms[start as usize..self.ends[window] as usize]
    }

    pub(super) fn max(&self, window: usize) -> f32 {
        self.max[window]
    }

    pub(super) fn log_mgf(&self, window: usize, exponents: usize) -> &[f32] {
        &self.log_mgf[window * exponents..(window + 1) * exponents]
    }

    /// Bytes that it occupies.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&self.atoms[..])
            + size_of_val(&self.ends[..])
            + size_of_val(&self.log_mgf[..])
            + size_of_val(&self.max[..])
    }
}

/// The law of the sum when all are at the same quantile.
fn comonotone(laws: &[&[StoredAtom]]) -> Vec<WorkAtom> {
    let mut next = vec![0usize; laws.len()];
    let mut left: Vec<f64> = laws.iter().map(|law| law[0].probability.into()).collect();
    let mut atoms = Vec::new();
    loop {
        let probability = left.iter().copied().fold(f64::INFINITY, f64::min);
        if probability == f64::INFINITY {
            return atoms;
        }
        let work = laws.iter().zip(&next).map(|(law, at)| f64::from(law[*at].work)).sum();
        atoms.push(WorkAtom { work, probability });
        for (law, (next, left)) in laws.iter().zip(next.iter_mut().zip(&mut left)) {
            *left -= probability;
            while *left <= 0.0 && *next + 1 < law.len() {
                *next += 1;
                *left += f64::from(law[*next].probability);
            }
            if *left <= 0.0 {
                // Kept probabilities add to a little more than 1: whoever is at the top waits for the others.
                *left = f64::INFINITY;
            }
        }
    }
}

fn keep(atom: &WorkAtom) -> StoredAtom {
    StoredAtom { work: up(atom.work), probability: up(atom.probability) }
}

/// To the next larger `f32`.
fn up(value: f64) -> f32 {
    // A difference of this size is below what the tables resolve.
    #[allow(clippy::cast_possible_truncation)]
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// What Chernoff's bound needs of several independent sources together: sums of tables.
#[derive(Debug, Clone, PartialEq)]
pub struct LawSums {
    pub(super) log_mgf: Vec<f64>,
    pub(super) max: Vec<f64>,
    pub(super) rate: f64,
    pub(super) burst: f64,
}

impl LawSums {
    /// Of no source.
    pub fn none(grid: &TailGrid) -> Self {
        Self {
            log_mgf: vec![0.0; grid.windows.len() * grid.thetas.len()],
            max: vec![0.0; grid.windows.len()],
            rate: 0.0,
            burst: 0.0,
        }
    }

    /// Of these sources on the same grid.
    pub fn of<'a>(grid: &TailGrid, sources: impl IntoIterator<Item = &'a WindowLaws>) -> Self {
        let mut sums = Self::none(grid);
        sources.into_iter().for_each(|source| sums.add(source));
        sums
    }

    /// One more source.
    pub fn add(&mut self, source: &WindowLaws) {
        self.log_mgf.iter_mut().zip(&source.log_mgf).for_each(|(sum, term)| *sum += f64::from(*term));
        self.max.iter_mut().zip(&source.max).for_each(|(sum, term)| *sum += f64::from(*term));
        self.rate += source.rate;
        self.burst += source.burst;
    }

    /// The sources of both.
    pub fn join(&mut self, other: &Self) {
        self.log_mgf.iter_mut().zip(&other.log_mgf).for_each(|(sum, term)| *sum += term);
        self.max.iter_mut().zip(&other.max).for_each(|(sum, term)| *sum += term);
        self.rate += other.rate;
        self.burst += other.burst;
    }
}
