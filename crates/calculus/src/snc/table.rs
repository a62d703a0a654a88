//! ρ(θ) tabulated once, so that adding a process to a queue is adding vectors.
//!
//! A table holds f(θ) = θρ(θ), the growth of the log moment generating function per
//! second. f is convex with f(0) = 0 for a process whose σ is 0, so straight lines between grid points are
//! upper bounds, and a table is as sound as the process that it was made of.
//!
//! For dependent processes, Hölder's inequality gives min Σ w_i f_i(θ/w_i) over weights with sum 1. Its
//! optimum is where the Legendre value u_i f_i'(u_i) − f_i(u_i) of all u_i = θ/w_i is the same; that value
//! is searched in one dimension ([`DependentSum`]).

use super::bound::{Bound, Envelope};
use crate::round_up;

/// A grid of θ, geometric: what tables that are added have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// The smallest θ, per second of capacity.
    pub low: f64,
    /// Points per decade.
    pub per_decade: usize,
    /// Points.
    pub points: usize,
}

impl Grid {
    /// Latencies from 10 µs to 100 s, 64 points in a decade.
    pub const LATENCIES: Self = Self { low: 0.05, per_decade: 64, points: 8 * 64 + 1 };

    /// The θ of a point.
    pub fn theta(&self, point: usize) -> f64 {
        self.low * 10_f64.powf(point as f64 / self.per_decade as f64)
    }
}

/// f(θ) = θρ(θ) on a grid; infinite beyond the domain.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTable {
    grid: Grid,
    growth: Vec<f64>,
}

impl RateTable {
    /// No traffic.
    pub fn zero(grid: Grid) -> Self {
        Self { grid, growth: vec![0.0; grid.points] }
    }

    /// Tabulates a process. Its σ is not kept: it must be 0.
    ///
    /// # Panics
    /// If the process has a σ.
    pub fn new(grid: Grid, envelope: &dyn Envelope) -> Self {
        let mut ended = false;
        let mut growth = |point| {
            let theta = grid.theta(point);
            let bound = if ended { None } else { envelope.at(theta) };
            ended |= bound.is_none();
            bound.map_or(f64::INFINITY, |Bound { rate, burst }| {
                assert!(burst == 0.0, "a table has no place for σ");
                theta * rate
            })
        };
        Self { grid, growth: (0..grid.points).map(&mut growth).collect() }
    }

    /// Traffic of which nothing is known: no θ is in its domain.
    pub fn unbounded(grid: Grid) -> Self {
        Self { grid, growth: vec![f64::INFINITY; grid.points] }
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// f at a grid point; infinite beyond the domain.
    pub fn growth(&self, point: usize) -> f64 {
        self.growth[point]
    }

    /// Adds an independent process.
    pub fn add(&mut self, other: &Self) {
        assert!(self.grid == other.grid, "tables of one grid");
        self.growth.iter_mut().zip(&other.growth).for_each(|(a, b)| *a += b);
    }

    /// This sum without one of its parts. Beyond the domain of the part nothing is known.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        assert!(self.grid == part.grid, "tables of one grid");
        let rest = |(sum, part): (&f64, &f64)| {
            if sum.is_finite() { round_up((sum - part).max(0.0)) } else { f64::INFINITY }
        };
        Self { grid: self.grid, growth: self.growth.iter().zip(&part.growth).map(rest).collect() }
    }

    /// f(θ) by the chord, an upper bound; infinite beyond the domain and beyond the grid.
    pub fn growth_at(&self, theta: f64) -> f64 {
        let place = (theta / self.grid.low).log10() * self.grid.per_decade as f64;
        if place.is_nan() {
            return f64::INFINITY;
        }
        if place < 0.0 {
            // From the origin to the first point.
            return self.growth[0] * theta / self.grid.low;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let below = (place as usize).min(self.grid.points);
        let end = (below + 1).min(self.grid.points);
        if below >= end {
            return f64::INFINITY;
        }
        if end == self.grid.points {
            return if theta <= self.grid.theta(below) { self.growth[below] } else { f64::INFINITY };
        }
        let (a, b) = (self.grid.theta(below), self.grid.theta(end));
        let part = ((theta - a) / (b - a)).clamp(0.0, 1.0);
        if part == 0.0 {
            self.growth[below]
        } else {
            self.growth[below] * (1.0 - part) + self.growth[end] * part
        }
    }

    /// The largest grid θ up to which the Legendre value of the chords is at most `level`, and f there.
    fn reach(&self, level: f64) -> (f64, f64) {
        // The chord from point k to k+1 has the value −intercept, which grows with k.
        let within = |point: usize| {
            let (a, b) = (self.grid.theta(point), self.grid.theta(point + 1));
            let (f, g) = (self.growth[point], self.growth[point + 1]);
            g.is_finite() && (a * g - b * f) / (b - a) <= level
        };
        let (mut low, mut high) = (0, self.grid.points);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if within(middle - 1) {
                low = middle;
            } else {
                high = middle;
            }
        }
        (self.grid.theta(low), self.growth[low])
    }
}

impl Envelope for RateTable {
    fn at(&self, theta: f64) -> Option<Bound> {
        Bound { rate: self.growth_at(theta) / theta, burst: 0.0 }.finite()
    }
}

/// f of the sum of independent processes; `None` of none.
pub fn sum<'a>(mut tables: impl Iterator<Item = &'a RateTable>) -> Option<RateTable> {
    let mut total = tables.next()?.clone();
    tables.for_each(|table| total.add(table));
    Some(total)
}

/// The sum of processes that may depend on each other in any way.
#[derive(Debug, Clone, Copy)]
pub struct DependentSum<'a>(pub &'a [&'a RateTable]);

impl DependentSum<'_> {
    /// The sum on the grid, to be used like one process; `None` of none.
    pub fn table(&self) -> Option<RateTable> {
        let grid = self.0.first()?.grid;
        let mut level = LEVELS[0];
        let mut growth = |point| {
            let (value, reached) = self.search(grid.theta(point), level);
            level = reached;
            value
        };
        Some(RateTable { grid, growth: (0..grid.points).map(&mut growth).collect() })
    }

    /// min Σ w_i f_i(θ/w_i) up to the resolution of the grid, from above; infinite beyond the domain.
    pub fn growth_at(&self, theta: f64) -> f64 {
        self.search(theta, LEVELS[0]).0
    }

    /// The sum and the Legendre value that it is reached at, which grows with θ and is at least `low`.
    fn search(&self, theta: f64, mut low: f64) -> (f64, f64) {
        let tables = match self.0 {
            [] => return (0.0, low),
            [one] => return (one.growth_at(theta), low),
            many => many,
        };
        // θ/u summed: 1 when the weights are used up.
        let used = |level: f64| tables.iter().map(|table| theta / table.reach(level).0).sum::<f64>();
        let (start, mut high) = (low, LEVELS[1]);
        if used(high) > 1.0 {
            // Beyond the grid or the domain of all together.
            return (f64::INFINITY, low);
        }
        while high / low > 1.0 + 1e-7 {
            let middle = (low * high).sqrt();
            if used(middle) > 1.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        // What is left of the weights goes to all in proportion.
        let total = used(high);
        let share = |table: &&RateTable| {
            let weight = theta / table.reach(high).0 / total;
            weight * table.growth_at(theta / weight)
        };
        (tables.iter().map(share).sum(), low.max(start))
    }
}

/// Legendre values are searched here, per second.
const LEVELS: [f64; 2] = [1e-12, 1e12];
