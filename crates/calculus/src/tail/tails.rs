//! The tails of the work in every window, and the cheapest union of cells.

use super::chernoff;
use super::convolve::Lattice;
use super::{LawSums, TailGrid, WindowLaws};

/// Lattice points per window.
const CELLS: usize = 128;
/// Sources that are convolved exactly.
const EXACT: usize = 16;
/// Widths of cells, in steps of the grid; the first cell may have any.
const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Independent sources that compete with a request.
#[derive(Debug)]
pub struct CrossTraffic<'a> {
    /// The grid of all tables.
    pub grid: &'a TailGrid,
    /// The sources that count until the request arrives, and their sums.
    pub same: (&'a [&'a WindowLaws], &'a LawSums),
    /// The sources that count until it is done, and their sums.
    pub higher: (&'a [&'a WindowLaws], &'a LawSums),
}

/// Bounds on the tails of the rivals' work for one latency d.
#[derive(Debug)]
pub struct WorkTails {
    windows: Vec<f64>,
    /// Lattice points per second, by window.
    points: Vec<f64>,
    latency: f64,
    /// For each window CELLS + 1 probabilities, at steps of (window + latency)/CELLS.
    tails: Vec<f64>,
    rate: f64,
    /// Work above the rate that can ever be there, seconds.
    burst: f64,
}

/// How each window's tail is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailMethod {
    /// By Chernoff alone: a tenth of the time.
    Moments,
    /// By convolution of those that matter, too.
    Convolution,
}

impl WorkTails {
    /// For requests that are to be done after `latency` seconds (positive).
    pub fn new(rivals: &CrossTraffic<'_>, latency: f64, effort: TailMethod) -> Self {
        let (same, higher) = (rivals.same.1, rivals.higher.1);
        let mut tails = Self {
            windows: rivals.grid.windows().to_vec(),
            points: rivals.grid.windows().iter().map(|window| CELLS as f64 / (window + latency)).collect(),
            latency,
            tails: Vec::new(),
            rate: same.rate + higher.rate,
            burst: same.burst + higher.burst + higher.rate * latency,
        };
        let mut work = TailBuilder::new(rivals);
        let mut tail = vec![0.0; CELLS + 1];
        for (index, &window) in tails.windows.iter().enumerate() {
            let Some(longer) = rivals.grid.window_from(window + latency) else { break };
            work.window(index, longer, (window + latency) / CELLS as f64, effort, &mut tail);
            tails.tails.extend_from_slice(&tail);
        }
        tails
    }

    /// The latency d, seconds.
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// A bound on `P(∃ u ≥ 0: S(u) + H(u + d) > spare·u + room)`; `room` at most d.
    pub fn exceedance(&self, spare: f64, room: f64) -> f64 {
        if self.burst <= 0.0 {
            return if room >= 0.0 { 0.0 } else { 1.0 };
        }
        let Some(end) = self.horizon(spare, room) else { return 1.0 };
        let mut cost = vec![0.0; end + 1];
        for from in (1..end).rev() {
            let y = spare * self.windows[from - 1] + room;
            let to = |width: usize| (from + width).min(end);
            let through = |width: usize| self.tail(to(width) - 1, y) + cost[to(width)];
            cost[from] = WIDTHS.map(through).into_iter().fold(1.0, f64::min);
        }
        (1..=end).map(|to| self.tail(to - 1, room) + cost[to]).fold(1.0, f64::min)
    }

    /// The number of the first window from which on the work cannot suffice, counting from 1.
    fn horizon(&self, spare: f64, room: f64) -> Option<usize> {
        if room <= 0.0 || spare <= self.rate {
            return None;
        }
        let from = (self.burst - room) / (spare - self.rate);
        let end = self.windows.partition_point(|window| *window < from) + 1;
        (end <= self.tails.len() / (CELLS + 1)).then_some(end)
    }

    /// P(work ≥ y) in the window with this index.
    fn tail(&self, window: usize, y: f64) -> f64 {
        let position = y * self.points[window];
        // Not negative, and at most CELLS up to rounding.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let point = (position as usize).min(CELLS);
        self.tails[window * (CELLS + 1) + point]
    }
}

/// What is needed to bound one window after another.
struct TailBuilder<'a> {
    same: (&'a [&'a WindowLaws], &'a LawSums),
    higher: (&'a [&'a WindowLaws], &'a LawSums),
    thetas: &'a [f64],
    log_mgf: Vec<f64>,
    rest: Vec<f64>,
    convolved: Vec<f64>,
}

impl<'a> TailBuilder<'a> {
    fn new(rivals: &CrossTraffic<'a>) -> Self {
        let thetas = rivals.grid.thetas();
        Self {
            same: rivals.same,
            higher: rivals.higher,
            thetas,
            log_mgf: vec![0.0; thetas.len()],
            rest: vec![0.0; CELLS + 1],
            convolved: vec![0.0; CELLS + 1],
        }
    }

    /// The tail of the work in the window `index`, for those above in the window `longer`.
    fn window(&mut self, index: usize, longer: usize, step: f64, effort: TailMethod, tail: &mut [f64]) {
        let count = self.thetas.len();
        let part = |sums: &'a LawSums, window: usize| &sums.log_mgf[window * count..(window + 1) * count];
        let (same, higher) = (part(self.same.1, index), part(self.higher.1, longer));
        self.log_mgf.iter_mut().zip(same.iter().zip(higher)).for_each(|(sum, (a, b))| *sum = a + b);
        let max = self.same.1.max[index] + self.higher.1.max[longer];
        chernoff::tail(self.thetas, &self.log_mgf, step, max, tail);
        if effort == TailMethod::Convolution {
            self.convolve(index, longer, step, max);
            tail.iter_mut().zip(&self.convolved).enumerate().for_each(|(m, (tail, exact))| {
                if m as f64 * step <= max {
                    *tail = tail.min(*exact);
                }
            });
        }
    }

    /// Convolves those that add most to Chernoff's exponent; the others stay in it.
    fn convolve(&mut self, index: usize, longer: usize, step: f64, max: f64) {
        let count = self.thetas.len();
        let at = self.exponent_for(step * CELLS as f64 * 0.5);
        let with = |window: usize| {
            move |source: &&'a WindowLaws| (*source, window, f64::from(source.log_mgf(window, count)[at]))
        };
        let all = self.same.0.iter().map(with(index)).chain(self.higher.0.iter().map(with(longer)));
        let mut chosen: Vec<(&WindowLaws, usize, f64)> =
            all.filter(|(source, ..)| source.has_law()).collect();
        let total = self.same.0.len() + self.higher.0.len();
        if chosen.len() > EXACT {
            chosen.select_nth_unstable_by(EXACT - 1, |a, b| b.2.total_cmp(&a.2));
            chosen.truncate(EXACT);
        }
        let mut lattice = Lattice::new(CELLS, step);
        let mut max_rest = max;
        for &(source, window, _) in &chosen {
            lattice.add(source.atoms(window));
            let table = source.log_mgf(window, count);
            self.log_mgf.iter_mut().zip(table).for_each(|(sum, term)| *sum -= f64::from(*term));
            max_rest -= f64::from(source.max(window));
        }
        let rest = (chosen.len() < total).then(|| {
            chernoff::tail(self.thetas, &self.log_mgf, step, max_rest + 1e-9 * max, &mut self.rest);
            &self.rest[..]
        });
        lattice.tail_with(rest, &mut self.convolved);
    }

    /// The exponent that is best at y.
    fn exponent_for(&self, y: f64) -> usize {
        let value = |index: usize| self.log_mgf[index] - self.thetas[index] * y;
        (0..self.thetas.len()).min_by(|a, b| value(*a).total_cmp(&value(*b))).unwrap_or(0)
    }
}
