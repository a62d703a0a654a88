//! Inference about a distribution from samples.
//!
//! - [`tolerance_rank`], [`median_ranks`]: independent values of any distribution.
//! - [`quantile`]: an interval for a percentile of any distribution; with [`design_effect`] also when
//!   neighbours depend on each other, as latencies of requests that met in a queue do.
//! - [`common_bursts`]: a test for common bursts of two streams that were recorded together, whatever the
//!   memory of each.
//! - [`change_point`]: a test for a change in a sequence of exchangeable values, with its position.
//! - [`SymmetryTest`]: a test for symmetry of paired differences about zero, valid after each one.
//! - [`discoveries`]: the significant ones of many tests.
//! - [`conformal_quantile`]: an upper bound of the next of exchangeable values, also if they come in
//!   dependent blocks.
//! - [`Estimate`]: the mean of a few independent values, as far as they are normal.
//!
//! Values are plain numbers: nothing here depends on their meaning.

mod binomial;
mod change_point;
mod common_bursts;
mod conformal;
mod dependence;
mod discoveries;
mod fourier;
mod quantile;
mod ranks;
mod student;
mod symmetry;
mod tolerance;
mod windowed_series;

pub use change_point::{ChangePoint, change_point, neighbour_correlation};
pub use common_bursts::{CommonBursts, ScaleComparison, common_bursts};
pub use conformal::{conformal_coverage, conformal_quantile, needed_for_conformal};
pub use dependence::{BLOCKS, design_effect, design_effect_of_runs};
pub use discoveries::discoveries;
pub use quantile::{Bounds, nearest_rank, needed_for_quantile, quantile};
pub use student::{Estimate, normal_quantile, t_quantile};
pub use symmetry::{SymmetryTest, needed_for_symmetry, shift_estimate, shift_interval};
pub use tolerance::{TooFew, median_ranks, needed_for_tolerance, tolerance_rank};
pub use windowed_series::{WINDOWS_MIN, WindowedSeries};
