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

/// A grid of θ, geometric: what tables that are added have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThetaGrid {
    /// The smallest θ, per second of capacity.
    pub low: f64,
    /// Points per decade.
    pub per_decade: usize,
    /// Points.
    pub points: usize,
}

impl ThetaGrid {
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
    grid: ThetaGrid,
    growth: Vec<f64>,
}

impl RateTable {
    /// No traffic.
    pub fn zero(grid: ThetaGrid) -> Self {
        Self { grid, growth: vec![0.0; grid.points] }
    }

    /// Tabulates a process. Its σ is not kept: it must be 0.
    ///
    /// # Panics
    /// If the process has a σ.
    pub fn new(grid: ThetaGrid, envelope: &dyn MgfEnvelope) -> Self {
        let mut ended = false;
        let mut growth = |point| {
            let theta = grid.theta(point);
            let bound = if ended { None } else { envelope.at(theta) };
            ended |= bound.is_none();
            bound.map_or(f64::INFINITY, |MgfBound { rate, burst }| {
                assert!(burst == 0.0, "a table has no place for σ");
                theta * rate
            })
        };
        Self { grid, growth: (0..grid.points).map(&mut growth).collect() }
    }

    /// Traffic of which nothing is known: no θ is in its domain.
    pub fn unbounded(grid: ThetaGrid) -> Self {
        Self { grid, growth: vec![f64::INFINITY; grid.points] }
    }

    /// The grid.
    pub fn grid(&self) -> ThetaGrid {
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
        let ratio = |points: f64| 10_f64.powf(points / self.grid.per_decade as f64);
        let part = ((ratio(place - below as f64) - 1.0) / (ratio(1.0) - 1.0)).clamp(0.0, 1.0);
        if part == 0.0 {
            self.growth[below]
        } else {
            self.growth[below] * (1.0 - part) + self.growth[end] * part
        }
    }

    /// u f'(u) − f(u) on the chord that begins at a point: it grows with u. Infinite at the end of the domain.
    fn legendre(&self, point: usize) -> f64 {
        let ratio = 10_f64.powf(1.0 / self.grid.per_decade as f64);
        match self.growth.get(point + 1) {
            Some(next) if next.is_finite() => (next - ratio * self.growth[point]) / (ratio - 1.0),
            _ => f64::INFINITY,
        }
    }
}

impl MgfEnvelope for RateTable {
    fn at(&self, theta: f64) -> Option<MgfBound> {
        MgfBound { rate: self.growth_at(theta) / theta, burst: 0.0 }.finite()
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
        let mut walk = WeightWalk::new(self.0);
        let growth = |point| walk.growth_at(grid.theta(point));
        Some(RateTable { grid, growth: (0..grid.points).map(growth).collect() })
    }

    /// min Σ w_i f_i(θ/w_i) up to the resolution of the grid, from above; infinite beyond the domain.
    pub fn growth_at(&self, theta: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { WeightWalk::new(self.0).growth_at(theta) }
    }
}

/// Moves the u_i up together, always the one whose Legendre value stays least, as far as θ asks for.
struct WeightWalk<'a> {
    tables: &'a [&'a RateTable],
    /// Where the u_i are, and the Legendre values of the chords that begin there.
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

    /// For θ that do not decrease.
    fn growth_at(&mut self, theta: f64) -> f64 {
        if let [one] = self.tables {
            return one.growth_at(theta);
        }
        // θ/u summed: 1 when the weights are used up.
        let used =
            |at: &[(usize, f64)], thetas: &[f64]| at.iter().map(|&(k, _)| theta / thetas[k]).sum::<f64>();
        while used(&self.at, &self.thetas) > 1.0 {
            let next = (0..self.at.len()).min_by(|&a, &b| self.at[a].1.total_cmp(&self.at[b].1));
            let next = next.expect("at least two");
            let (point, level) = self.at[next];
            if level == f64::INFINITY {
                return f64::INFINITY;
            }
            self.at[next] = (point + 1, self.tables[next].legendre(point + 1));
        }
        // What is left of the weights goes to all in proportion.
        let total = used(&self.at, &self.thetas);
        let share = |(table, &(point, _)): (&&RateTable, &(usize, f64))| {
            let weight = theta / self.thetas[point] / total;
            weight * table.growth_at(theta / weight)
        };
        self.tables.iter().zip(&self.at).map(share).sum()
    }
}
