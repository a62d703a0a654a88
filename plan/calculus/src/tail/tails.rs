//! The tails of the work in every window, and the cheapest union of cells.

use super::chernoff;
use super::convolve::Lattice;
use super::{LawSums, TailGrid, WindowLaws};

/// The number of lattice cells per window.
const CELLS: usize = 128;
/// The number of streams that are convolved exactly.
const EXACT: usize = 16;
/// The mean rate, of the streams that count until a request arrives, from which on cells take their tails beyond the rates,
/// too. Below, they gain next to nothing and cost as much time as all other tails.
const CELLS_FROM_RATE: f64 = 0.3;
/// The widths that cells of the partition may have, in steps of the grid; the first cell may have any.
const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The independent streams that a request competes with, its cross traffic.
#[derive(Debug)]
pub struct CrossTraffic<'a> {
    /// The grid of all tables.
    pub grid: &'a TailGrid,
    /// The streams that count until the request arrives, and their sums.
    pub same: (&'a [&'a WindowLaws], &'a LawSums),
    /// The same streams, with the laws of their most work beyond their rates in the cell from each window of the grid to
    /// the next; see the module header.
    pub same_in_cells: (&'a [&'a WindowLaws], &'a LawSums),
    /// The streams that count until the request is done, and their sums.
    pub higher: (&'a [&'a WindowLaws], &'a LawSums),
}

/// Bounds on the tails of the work of [`CrossTraffic`] for one latency d.
#[derive(Debug)]
pub struct WorkTails {
    windows: Vec<f64>,
    /// The lattice points per second of each window.
    points_per_s: Vec<f64>,
    latency: f64,
    /// The tails, `CELLS` + 1 probabilities for each window.
    tails: Vec<f64>,
    /// The tails of what is beyond the rates in the cell that begins with each window, at the same steps; empty where the
    /// rates are too low to gain by them.
    cell_tails: Vec<f64>,
    /// The mean rate of all streams.
    rate: f64,
    /// The most work that can ever be there beyond the rate, seconds.
    burst: f64,
}

/// Method of bounding the tail of each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailMethod {
    /// Chernoff's bound alone, in a tenth of the time.
    Moments,
    /// Convolution of the streams that matter most, and Chernoff's bound for the others.
    Convolution,
}

impl WorkTails {
    /// The tails for requests that have to be done after `latency` seconds (positive).
    pub fn new(traffic: &CrossTraffic<'_>, latency: f64, method: TailMethod) -> Self {
        let same = traffic.same.1;
        let higher = traffic.higher.1;
        let mut tails = Self {
            windows: traffic.grid.windows().to_vec(),
            points_per_s: traffic
                .grid
                .windows()
                .iter()
                .map(|window| CELLS as f64 / (window + latency))
                .collect(),
            latency,
            tails: Vec::new(),
            cell_tails: Vec::new(),
            rate: same.rate + higher.rate,
            burst: same.burst + higher.burst + higher.rate * latency,
        };
        let mut builder = TailBuilder::new(traffic);
        let mut tail = vec![0.0; CELLS + 1];
        for (index, &window) in tails.windows.iter().enumerate() {
            let Some(longer) = traffic.grid.window_from(window + latency) else { break };
            builder.window_tail(index, longer, (window + latency) / CELLS as f64, method, &mut tail);
            tails.tails.extend_from_slice(&tail);
        }
        if same.rate >= CELLS_FROM_RATE {
            tails.add_cell_tails(traffic, method);
        }
        tails
    }

    /// Adds the tails of cells, as far as the grid reaches.
    fn add_cell_tails(&mut self, traffic: &CrossTraffic<'_>, method: TailMethod) {
        let mut builder = TailBuilder::new(traffic);
        builder.same = traffic.same_in_cells;
        let mut tail = vec![0.0; CELLS + 1];
        for index in 0..self.windows.len() - 1 {
            let Some(longer) = traffic.grid.window_from(self.windows[index + 1] + self.latency) else {
                break;
            };
            let step = (self.windows[index] + self.latency) / CELLS as f64;
            builder.window_tail(index, longer, step, method, &mut tail);
            self.cell_tails.extend_from_slice(&tail);
        }
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
        if room <= 0.0 {
            return 1.0;
        }
        let Some(end) = self.horizon(spare, room) else { return 1.0 };
        let cost = self.union_costs((1, end), spare, room);
        (1..=end).map(|to| self.tail(to - 1, room) + cost[to]).fold(1.0, f64::min)
    }

    /// As the bound above, for windows of `u ≥ from` only; `room` may be negative.
    pub fn exceedance_from(&self, spare: f64, room: f64, from: f64) -> f64 {
        if self.burst <= 0.0 && spare * from + room >= 0.0 {
            return 0.0;
        }
        let first = self.windows.partition_point(|window| *window <= from);
        let Some(end) = self.horizon(spare, room).map(|end| end.max(first)) else { return 1.0 };
        if first == 0 || spare * self.windows[first - 1] + room <= 0.0 || end > self.tails.len() / (CELLS + 1)
        {
            return 1.0;
        }
        self.union_costs((first, end), spare, room)[first].min(1.0)
    }

    /// For each window from the first one to the last, both counted from 1, a bound on the probability that the event has a
    /// u between it and the last window; that is the cheapest partition into cells.
    fn union_costs(&self, (first, end): (usize, usize), spare: f64, room: f64) -> Vec<f64> {
        let mut cost = vec![0.0; end + 1];
        for from in (first..end).rev() {
            let y = spare * self.windows[from - 1] + room;
            let costs = WIDTHS.map(|width| {
                let to = (from + width).min(end);
                self.tail(to - 1, y) + cost[to]
            });
            let beyond_rates = self.cell_tail(from - 1, y) + cost[from + 1];
            cost[from] = costs.into_iter().fold(beyond_rates.min(1.0), f64::min);
        }
        cost
    }

    /// Returns the number, from 1, of the first window from which on the work cannot suffice; `None` if there
    /// is none.
    fn horizon(&self, spare: f64, room: f64) -> Option<usize> {
        if spare <= self.rate {
            return None;
        }
        let from = (self.burst - room) / (spare - self.rate);
        let end = self.windows.partition_point(|window| *window < from) + 1;
        (end <= self.tails.len() / (CELLS + 1)).then_some(end)
    }

    /// The bound on P(work ≥ y) in the window with this index.
    fn tail(&self, window: usize, y: f64) -> f64 {
        self.tails[self.point(window, y)]
    }

    /// Returns the bound on P(work beyond the rates ≥ y) in the cell that begins with this window; 1 if
    /// unknown.
    fn cell_tail(&self, window: usize, y: f64) -> f64 {
        self.cell_tails.get(self.point(window, y)).copied().unwrap_or(1.0)
    }

    /// The index of the tail at y, or just below, among those of all windows.
    fn point(&self, window: usize, y: f64) -> usize {
        let position = y * self.points_per_s[window];
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the cells")]
        let point = (position as usize).min(CELLS);
        window * (CELLS + 1) + point
    }
}

/// Bounds one window after another, with the tables that this takes.
struct TailBuilder<'a> {
    same: (&'a [&'a WindowLaws], &'a LawSums),
    higher: (&'a [&'a WindowLaws], &'a LawSums),
    thetas: &'a [f64],
    /// The sum of Λ over all streams that are not convolved, by exponent.
    log_mgf: Vec<f64>,
    /// The tail of the streams that are not convolved.
    rest: Vec<f64>,
    /// The tail of all streams with the convolution.
    convolved: Vec<f64>,
}

impl<'a> TailBuilder<'a> {
    fn new(traffic: &CrossTraffic<'a>) -> Self {
        let thetas = traffic.grid.thetas();
        Self {
            same: traffic.same,
            higher: traffic.higher,
            thetas,
            log_mgf: vec![0.0; thetas.len()],
            rest: vec![0.0; CELLS + 1],
            convolved: vec![0.0; CELLS + 1],
        }
    }

    /// The tail of the work in the window `index`, and for the classes above in the window `longer`.
    fn window_tail(&mut self, index: usize, longer: usize, step: f64, method: TailMethod, tail: &mut [f64]) {
        let count = self.thetas.len();
        let same = &self.same.1.log_mgf[index * count..(index + 1) * count];
        let higher = &self.higher.1.log_mgf[longer * count..(longer + 1) * count];
        self.log_mgf.iter_mut().zip(same.iter().zip(higher)).for_each(|(sum, (a, b))| *sum = a + b);
        let max = self.same.1.max[index] + self.higher.1.max[longer];
        chernoff::tail(self.thetas, &self.log_mgf, step, max, tail);
        if method == TailMethod::Convolution {
            self.convolve(index, longer, step, max);
            tail.iter_mut().zip(&self.convolved).enumerate().for_each(|(m, (tail, exact))| {
                if m as f64 * step <= max {
                    *tail = tail.min(*exact);
                }
            });
        }
    }

    /// Convolves the streams that add most to Chernoff's exponent; the others stay in it.
    fn convolve(&mut self, index: usize, longer: usize, step: f64, max: f64) {
        let count = self.thetas.len();
        let exponent = self.best_exponent(step * CELLS as f64 * 0.5);
        let mut chosen: Vec<(&WindowLaws, usize, f64)> = Vec::new();
        for (streams, window) in [(self.same.0, index), (self.higher.0, longer)] {
            for stream in streams.iter().filter(|stream| stream.has_law()) {
                chosen.push((stream, window, f64::from(stream.log_mgf(window, count)[exponent])));
            }
        }
        let total = self.same.0.len() + self.higher.0.len();
        if chosen.len() > EXACT {
            chosen.select_nth_unstable_by(EXACT - 1, |a, b| b.2.total_cmp(&a.2));
            chosen.truncate(EXACT);
        }
        let mut lattice = Lattice::new(CELLS, step);
        let mut max_rest = max;
        for &(stream, window, _) in &chosen {
            lattice.add(stream.atoms(window));
            let table = stream.log_mgf(window, count);
            self.log_mgf.iter_mut().zip(table).for_each(|(sum, term)| *sum -= f64::from(*term));
            max_rest -= f64::from(stream.max(window));
        }
        let rest = (chosen.len() < total).then(|| {
            chernoff::tail(self.thetas, &self.log_mgf, step, max_rest + 1e-9 * max, &mut self.rest);
            &self.rest[..]
        });
        lattice.tail_with(rest, &mut self.convolved);
    }

    /// The index of the exponent that gives the least Chernoff bound at y.
    fn best_exponent(&self, y: f64) -> usize {
        let value = |index: usize| self.log_mgf[index] - self.thetas[index] * y;
        (0..self.thetas.len()).min_by(|a, b| value(*a).total_cmp(&value(*b))).unwrap_or(0)
    }
}
