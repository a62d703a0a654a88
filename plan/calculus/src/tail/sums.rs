//! Sums of the tables of independent streams.

use super::grid::TailGrid;
use super::window_laws::WindowLaws;

/// Sums of the tables of several independent streams, as Chernoff's bound needs them.
#[derive(Debug, Clone, PartialEq)]
pub struct LawSums {
    /// The sum of Λ, window by window, exponent by exponent.
    pub(super) log_mgf: Vec<f64>,
    /// The sum of the largest values of each window.
    pub(super) max: Vec<f64>,
    pub(super) rate: f64,
    pub(super) burst: f64,
}

impl LawSums {
    /// The sums over no stream.
    pub fn none(grid: &TailGrid) -> Self {
        Self {
            log_mgf: vec![0.0; grid.windows().len() * grid.thetas().len()],
            max: vec![0.0; grid.windows().len()],
            rate: 0.0,
            burst: 0.0,
        }
    }

    /// The sums over these streams on the same grid.
    pub fn over<'a>(grid: &TailGrid, streams: impl IntoIterator<Item = &'a WindowLaws>) -> Self {
        let mut sums = Self::none(grid);
        streams.into_iter().for_each(|stream| sums.add(stream));
        sums
    }

    /// Adds one more independent stream.
    pub fn add(&mut self, stream: &WindowLaws) {
        self.log_mgf.iter_mut().zip(stream.log_mgfs()).for_each(|(sum, term)| *sum += f64::from(*term));
        self.max.iter_mut().zip(stream.maxima()).for_each(|(sum, term)| *sum += f64::from(*term));
        self.rate += stream.rate();
        self.burst += stream.burst();
    }

    /// Adds the streams of other sums, independent of those of these.
    pub fn join(&mut self, other: &Self) {
        self.log_mgf.iter_mut().zip(&other.log_mgf).for_each(|(sum, term)| *sum += term);
        self.max.iter_mut().zip(&other.max).for_each(|(sum, term)| *sum += term);
        self.rate += other.rate;
        self.burst += other.burst;
    }
}
