//! ρ(θ) tabulated once, so that adding a process to a queue is adding vectors.
//!
//! A table holds f(θ) = θρ(θ), the growth of the log moment generating function per
//! second. f is convex with f(0) = 0 for a process whose σ is 0, so straight lines between grid points are
//! upper bounds, and a table is as sound as the process that it was made of.
//!
//! For dependent processes, Hölder's inequality gives min Σ w_i f_i(θ/w_i) over weights with sum 1. Its
//! optimum is where the Legendre value u_i f_i'(u_i) − f_i(u_i) of all u_i = θ/w_i is the same; that value
//! is searched in one dimension ([`DependentSum`]).

use super::bound::{MgfBound, MgfEnvelope};
use crate::round_up;

/// A geometric grid of θ, which tables that are added have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThetaGrid {
    /// The smallest θ, per second of capacity.
    pub low: f64,
    /// The number of points per decade.
    pub per_decade: usize,
    /// The number of points.
    pub points: usize,
}

impl ThetaGrid {
    /// A grid for latencies from 10 µs to 100 s, with 64 points in a decade.
    pub const LATENCIES: Self = Self { low: 0.05, per_decade: 64, points: 8 * 64 + 1 };

    /// The θ of a point.
    pub fn theta(&self, point: usize) -> f64 {
        self.low * 10_f64.powf(point as f64 / self.per_decade as f64)
    }
}

/// The growth f(θ) = θρ(θ) on a grid; infinite beyond the domain.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTable {
    grid: ThetaGrid,
    growth: Vec<f64>,
}

impl RateTable {
    /// The table of no traffic at all.
    pub fn zero(grid: ThetaGrid) -> Self {
        Self { grid, growth: vec![0.0; grid.points] }
    }

    /// The table of a process. Its σ is not kept: it must be 0.
    ///
    /// # Panics
    /// When the process has a σ.
    pub fn new(grid: ThetaGrid, envelope: &dyn MgfEnvelope) -> Self {
        let mut growth = vec![f64::INFINITY; grid.points];
        for (point, growth) in growth.iter_mut().enumerate() {
            let theta = grid.theta(point);
            let Some(MgfBound { rate, burst }) = envelope.bound_at(theta) else { break };
            assert!(burst == 0.0, "a table has no place for σ");
            *growth = theta * rate;
        }
        Self { grid, growth }
    }

    /// The table of traffic of which nothing is known: no θ is in its domain.
    pub fn unbounded(grid: ThetaGrid) -> Self {
        Self { grid, growth: vec![f64::INFINITY; grid.points] }
    }

    /// The grid of θ.
    pub fn grid(&self) -> ThetaGrid {
        self.grid
    }

    /// The memory that the table occupies beside its own fields, bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(self.growth.as_slice())
    }

    /// The growth f at a grid point; infinite beyond the domain.
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
        let growth =
            self.growth.iter().zip(&part.growth).map(|(sum, part)| {
                if sum.is_finite() { round_up((sum - part).max(0.0)) } else { f64::INFINITY }
            });
        Self { grid: self.grid, growth: growth.collect() }
    }

    /// The growth f(θ) by the chord, an upper bound; infinite beyond the domain and beyond the grid.
    pub fn growth_at(&self, theta: f64) -> f64 {
        let place = (theta / self.grid.low).log10() * self.grid.per_decade as f64;
        if place.is_nan() {
            return f64::INFINITY;
        }
        if place < 0.0 {
            // From the origin to the first point.
            return self.growth[0] * theta / self.grid.low;
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; `as` saturates"
        )]
        let below = (place as usize).min(self.grid.points);
        let end = (below + 1).min(self.grid.points);
        if below >= end {
            return f64::INFINITY;
        }
        if end == self.grid.points {
            return if theta <= self.grid.theta(below) { self.growth[below] } else { f64::INFINITY };
        }
        let ratio = |points: f64| 10_f64.powf(points / self.grid.per_decade as f64);
        let part = ((ratio(place - below as f64) - 1.0) / (ratio(1.0) - 1.0)).clamp(0.0, 1.0);
        if part == 0.0 {
            self.growth[below]
        } else {
            self.growth[below] * (1.0 - part) + self.growth[end] * part
        }
    }

    /// The Legendre value u f'(u) − f(u) on the chord that begins at a point. It grows with u, and is infinite at the end
    /// of the domain.
    fn legendre(&self, point: usize) -> f64 {
        let ratio = 10_f64.powf(1.0 / self.grid.per_decade as f64);
        match self.growth.get(point + 1) {
            Some(next) if next.is_finite() => (next - ratio * self.growth[point]) / (ratio - 1.0),
            _ => f64::INFINITY,
        }
    }
}

impl MgfEnvelope for RateTable {
    fn bound_at(&self, theta: f64) -> Option<MgfBound> {
        MgfBound { rate: self.growth_at(theta) / theta, burst: 0.0 }.finite()
    }
}

/// The table of the sum of independent processes; `None` of none.
pub fn independent_sum<'a>(mut tables: impl Iterator<Item = &'a RateTable>) -> Option<RateTable> {
    let mut total = tables.next()?.clone();
    tables.for_each(|table| total.add(table));
    Some(total)
}

/// The sum of processes that may depend on each other in any way.
#[derive(Debug, Clone, Copy)]
pub struct DependentSum<'a>(pub &'a [&'a RateTable]);

impl DependentSum<'_> {
    /// The table of the sum, to be used like one process; `None` of none.
    pub fn table(&self) -> Option<RateTable> {
        let grid = self.0.first()?.grid;
        let mut walk = WeightWalk::new(self.0);
        let growth = |point| walk.growth_at(grid.theta(point));
        Some(RateTable { grid, growth: (0..grid.points).map(growth).collect() })
    }

    /// The least Σ w_i f_i(θ/w_i), up to the resolution of the grid and from above; infinite beyond the domain.
    pub fn growth_at(&self, theta: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { WeightWalk::new(self.0).growth_at(theta) }
    }
}

/// Moves the u_i up together, always the one whose Legendre value stays least, as far as θ asks for.
struct WeightWalk<'a> {
    tables: &'a [&'a RateTable],
    /// The point of each u_i, and the Legendre value of the chord that begins there.
    at: Vec<(usize, f64)>,
    thetas: Vec<f64>,
}

impl<'a> WeightWalk<'a> {
    fn new(tables: &'a [&'a RateTable]) -> Self {
        let grid = tables[0].grid;
        assert!(tables.iter().all(|table| table.grid == grid), "tables of one grid");
        let thetas = (0..grid.points).map(|point| grid.theta(point)).collect();
        Self { tables, at: tables.iter().map(|table| (0, table.legendre(0))).collect(), thetas }
    }

    /// The least sum at θ. Successive θ must not decrease.
    fn growth_at(&mut self, theta: f64) -> f64 {
        if let [one] = self.tables {
            return one.growth_at(theta);
        }
        while self.used_weight(theta) > 1.0 {
            let next = (0..self.at.len()).min_by(|&a, &b| self.at[a].1.total_cmp(&self.at[b].1));
            let next = next.expect("at least two");
            let (point, level) = self.at[next];
            if level == f64::INFINITY {
                return f64::INFINITY;
            }
            self.at[next] = (point + 1, self.tables[next].legendre(point + 1));
        }
        // The unused weight is distributed to all in proportion.
        let total = self.used_weight(theta);
        let shares = self.tables.iter().zip(&self.at).map(|(table, &(point, _))| {
            let weight = theta / self.thetas[point] / total;
            weight * table.growth_at(theta / weight)
        });
        shares.sum()
    }

    /// The sum of the weights θ/u_i, which is 1 when they are used up.
    fn used_weight(&self, theta: f64) -> f64 {
        self.at.iter().map(|&(point, _)| theta / self.thetas[point]).sum()
    }
}
