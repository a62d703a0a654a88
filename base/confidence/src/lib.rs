//! What a sample says about the distribution that it comes from.
//!
//! - [`tolerance_rank`], [`median_ranks`]: of independent values, whatever their distribution.
//! - [`quantile`]: an interval for a percentile, whatever the distribution; with [`design_effect`] also when
//!   neighbours depend on each other, as latencies of requests that met in a queue do.
//! - [`common_bursts`]: whether two streams that were recorded together are busy together, whatever the memory of each.
//! - [`change_point`]: whether a sequence of exchangeable values changes somewhere, and where.
//! - [`SymmetryTest`]: whether differences of pairs lie symmetrically about zero, judged after each one.
//! - [`discoveries`]: which of many tests count.
//! - [`conformal_quantile`]: what the next of exchangeable values stays within, also where they come in dependent blocks.
//! - [`Estimate`]: the mean of a few independent values, as far as they are normal.
//!
//! Nothing here knows what the values are.

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
pub use conformal::{conformal_coverage, conformal_quantile, conformal_rank, needed_for_conformal};
pub use dependence::{BLOCKS, design_effect};
pub use discoveries::discoveries;
pub use quantile::{Bounds, nearest_rank, needed_for_quantile, quantile};
pub use student::{Estimate, t_quantile};
pub use symmetry::{SymmetryTest, needed_for_symmetry, shift_estimate, shift_interval};
pub use tolerance::{TooFew, binomial_sums, median_ranks, needed_for_tolerance, tolerance_rank};
pub use windowed_series::{WINDOWS_MIN, WindowedSeries};
