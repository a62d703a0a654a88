//! What a sample says about the distribution that it comes from.
//!
//! - [`tolerance_rank`], [`median_ranks`]: of independent values, whatever their distribution.
//! - [`quantile`]: an interval for a percentile, whatever the distribution; with [`design_effect`] also when
//!   neighbours depend on each other, as latencies of requests that met in a queue do.
//! - [`conformal_quantile`]: what the next of exchangeable values stays within, also where they come in dependent blocks.
//! - [`Estimate`]: the mean of a few independent values, as far as they are normal.
//!
//! Nothing here knows what the values are.

mod binomial;
mod conformal;
mod dependence;
mod quantile;
mod student;
mod tolerance;

pub use conformal::{conformal_coverage, conformal_quantile, conformal_rank, needed_for_conformal};
pub use dependence::{BLOCKS, design_effect};
pub use quantile::{Bounds, nearest_rank, needed_for_quantile, quantile};
pub use student::{Estimate, t_quantile};
pub use tolerance::{TooFew, binomial_sums, median_ranks, needed_for_tolerance, tolerance_rank};
