//! Probability that the work of some window exceeds the service in it, counted once.
//!
//! A union over windows counts a burst for every cell of windows in which it shows. A burst that comes together passes
//! below the level that it exceeded only once, and so it is the passages that this module counts.
//!
//! Let windows end at one instant, and let A_k be the work in the window with the length w_k, where 0 = w₀ < w₁ < … < w_K.
//! With Z(u) = A_k − σ·u for w_{k−1} < u ≤ w_k, the process Z falls at the rate σ and only jumps up, as A_k grows with k.
//! The work of each window u up to w_K is at most Z(u) + σ·u. If Z is above z anywhere, then either it is above z at w_K, or
//! there is a cell k at whose beginning it is above z and at whose end it is not: of the cells from there on, take the first
//! with Z(w_k) ≤ z. Hence
//!
//! P(∃ u ≤ w_K: Z(u) > z) ≤ Σ_k P(z + σ·w_{k−1} < A_k ≤ z + σ·w_k) + P(A_K > z + σ·w_K).
//!
//! Any subset of the lengths will do, and any lower level: the least sum counts. Each term is at most that of the union.
//! The same holds with any threshold that never falls in place of z + σ·u, such as the largest of several lines.
//!
//! *Rounding.* All of this needs A_k to grow with k. So values are rounded up to multiples of a step that doubles from cell to
//! cell or stays; the provider of laws rounds all windows of a stream to the same set of values.
//!
//! *Small streams.* Where a stream has at most a limit in each of the windows, or else does not matter, the atoms beyond the
//! limit are left out, and the sum bounds the probability that Z exceeds z and no stream exceeds its limits.

use super::LawAtom;

/// The number of lattice points per window.
const POINTS: usize = 768;
/// The widths of cells that are tried, in steps of the lengths.
const WIDTHS: [usize; 4] = [1, 2, 4, 8];
/// The levels that are tried, as parts of the room.
const LEVELS: [f64; 4] = [1.0, 0.95, 0.85, 0.7];

/// The law of one stream in one window.
#[derive(Debug, Clone, Copy)]
pub struct LimitedLaw<'a> {
    /// The atoms in ascending order. The values of all windows of a stream are rounded up to one set of values.
    pub atoms: &'a [LawAtom],
    /// The most work that the stream may have in this window, seconds; it grows with the window.
    pub limit: f64,
}

/// The laws of the sum of independent streams in windows of several lengths.
#[derive(Debug)]
pub struct Crossings {
    windows: Vec<SummedWindow>,
}

#[derive(Debug)]
struct SummedWindow {
    length: f64,
    step: f64,
    /// The probability of at most each lattice point.
    below: Vec<f64>,
    /// The probability of all values, including those beyond the lattice.
    total: f64,
}

impl Crossings {
    /// The sums for windows in ascending order of length, of which each has the laws of all streams. Exceedances are asked
    /// for of rooms up to `room` and of spare rates up to `spare`.
    pub fn new<'a>(
        (room, spare): (f64, f64),
        windows: impl IntoIterator<Item = (f64, Vec<LimitedLaw<'a>>)>,
    ) -> Self {
        let mut step = room / (POINTS - 1) as f64;
        let mut summed = Vec::new();
        for (length, laws) in windows {
            while step * ((POINTS - 1) as f64) < room + spare * length {
                step *= 2.0;
            }
            summed.push(SummedWindow::new(length, step, &laws));
        }
        Self { windows: summed }
    }

    /// A bound on the probability that the work of some window u up to the longest one exceeds `spare·u + room`, while no
    /// stream exceeds its limits.
    pub fn exceedance(&self, spare: f64, room: f64) -> f64 {
        self.exceedance_of_all(&[(spare, room)])
    }

    /// A bound on the probability that the work of some window u up to the longest one exceeds every one of the lines
    /// `spare·u + room`, while no stream exceeds its limits. Spare rates are not negative.
    pub fn exceedance_of_all(&self, lines: &[(f64, f64)]) -> f64 {
        if lines.iter().all(|(_, room)| *room <= 0.0) {
            return 1.0;
        }
        LEVELS.into_iter().map(|part| self.passages(lines, part)).fold(1.0, f64::min)
    }

    /// The least sum over the subsets of the lengths, with so large a part of the lines' rooms.
    fn passages(&self, lines: &[(f64, f64)], part: f64) -> f64 {
        let count = self.windows.len();
        let threshold =
            |length: f64| lines.iter().map(|(spare, room)| spare * length + part * room).fold(0.0, f64::max);
        let thresholds: Vec<f64> = std::iter::once(0.0)
            .chain(self.windows.iter().map(|window| window.length))
            .map(threshold)
            .collect();
        let last = self.windows.last().map_or(0.0, |last| last.total - last.up_to(thresholds[count]));
        let mut costs = vec![last.max(0.0); count + 1];
        for from in (0..count).rev() {
            let cost = |width: usize| {
                let to = (from + width).min(count);
                let window = &self.windows[to - 1];
                let passes = window.up_to(thresholds[to]) - window.up_to(thresholds[from]);
                passes.max(0.0) + costs[to]
            };
            costs[from] = WIDTHS.into_iter().map(cost).fold(f64::INFINITY, f64::min);
        }
        costs[0]
    }
}

impl SummedWindow {
    fn new(length: f64, step: f64, laws: &[LimitedLaw<'_>]) -> Self {
        let mut sum = vec![0.0; POINTS];
        sum[0] = 1.0;
        let mut next = vec![0.0; POINTS];
        let mut total = 1.0;
        // The points below this one may be positive.
        let mut reached = 1;
        for law in laws {
            next.fill(0.0);
            let mut probabilities = 0.0;
            let mut floor = -1.0;
            let mut most = 0;
            let mut at = 0;
            let mut probability = 0.0;
            for atom in law.atoms {
                // An atom stands for values above the one before it.
                if floor >= law.limit {
                    break;
                }
                floor = atom.work;
                let point = points_up(atom.work.min(law.limit), step);
                if point != at {
                    add_shifted(&mut next, &sum[..reached], at, probability);
                    (at, probability) = (point, 0.0);
                }
                probability += atom.probability;
                probabilities += atom.probability;
                most = point;
            }
            add_shifted(&mut next, &sum[..reached], at, probability);
            total *= probabilities;
            reached = (reached + most).min(POINTS);
            std::mem::swap(&mut sum, &mut next);
        }
        let mut below = 0.0;
        for probability in &mut sum {
            below += *probability;
            *probability = below;
        }
        Self { length, step, below: sum, total: total.max(below) }
    }

    /// The probability of at most so much work.
    fn up_to(&self, work: f64) -> f64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
        let mut point = (work / self.step) as usize;
        // Products with steps that differ by powers of two round alike, so that a value compares alike in all windows.
        while point > 0 && point as f64 * self.step > work {
            point -= 1;
        }
        while (point + 1) as f64 * self.step <= work {
            point += 1;
        }
        self.below.get(point).copied().unwrap_or(self.total)
    }
}

/// The number of steps that are at least so much work.
fn points_up(work: f64, step: f64) -> usize {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let points = (work / step).ceil() as usize;
    points
}

/// Adds a law moved up by this many points, with this weight.
fn add_shifted(sum: &mut [f64], law: &[f64], by: usize, weight: f64) {
    if weight > 0.0 && by < sum.len() {
        sum[by..].iter_mut().zip(law).for_each(|(sum, probability)| *sum += weight * probability);
    }
}
