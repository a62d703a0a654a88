//! The Hurst parameter of the arrival counts, from Haar wavelets.
//!
//! Veitch and Abry, "A wavelet-based joint estimator of the parameters of long-range dependence", IEEE
//! Trans. Information Theory 45(3), 1999, section II: for counts with Hurst parameter H the mean squared
//! detail grows as 2^(2Hj) over levels j (here of unnormalised sums, where they have 2^((2H−1)j) for
//! normalised ones). H is half the slope of a weighted regression of its logarithm on j. The logarithm of
//! a mean of n squared Gaussian details has mean bias ψ(n/2)/ln 2 − log2(n/2) and variance ζ(2, n/2)/ln²
//! 2: the correction and the weights of the regression.
//!
//! The regression uses the levels that have at least [`DETAILS_MIN`] details and whose bins contain at
//! least [`MEAN_MIN`] arrivals in the mean: below that, counts are noise around the rate and look like H
//! = 1/2. Scaling may begin at coarser scales still. The finest scales are therefore left out until the
//! line fits (chi-squared per degree of freedom at most [`MISFIT_MAX`]); if it never does, the best fit
//! is taken. The idea is that of Veitch, Abry and Taqqu, "On the automatic selection of the onset of
//! scaling", Fractals 11(4), 2003. The standard error is that of the regression, widened by the misfit
//! where the points scatter more than Gaussian details would. It does not cover errors outside the fitted
//! scales.

use super::dyadic::DyadicScale;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Nanos, in_base_units};

/// Minimum number of details of a level: fewer are too noisy.
const DETAILS_MIN: u64 = 8;
/// Minimum mean number of arrivals in a bin.
const MEAN_MIN: f64 = 4.0;
const LEVELS_MIN: usize = 4;
/// Maximum chi-squared per degree of freedom that counts as a fit.
const MISFIT_MAX: f64 = 2.0;

/// An estimate of the Hurst parameter with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct HurstEstimate {
    /// The Hurst parameter: 1/2 without memory, between 1/2 and 1 with long-range dependence. Estimates may lie outside.
    pub h: f64,
    /// The standard error of `h`.
    pub standard_error: f64,
    /// The finest scale that the regression uses.
    #[serde(rename = "from_s", serialize_with = "in_base_units")]
    #[schemars(with = "f64")]
    pub from: Nanos,
    /// The coarsest scale that the regression uses.
    #[serde(rename = "to_s", serialize_with = "in_base_units")]
    #[schemars(with = "f64")]
    pub to: Nanos,
}

/// The Hurst parameter of a trace cannot be estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HurstError {
    /// There are fewer than four usable scales.
    TooShort,
    /// The counts do not vary at all at one of the scales.
    NoVariation,
}

impl std::fmt::Display for HurstError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooShort => "too short: fewer than four octaves of time with enough arrivals",
            Self::NoVariation => "arrivals do not vary",
        })
    }
}

impl std::error::Error for HurstError {}

/// A level of the cascade as a regression point.
struct RegressionPoint {
    level: f64,
    log2_energy: f64,
    weight: f64,
}

pub(super) fn estimate(scales: &[DyadicScale]) -> Result<HurstEstimate, HurstError> {
    let usable: Vec<&DyadicScale> =
        scales.iter().filter(|s| s.details >= DETAILS_MIN && s.mean >= MEAN_MIN).collect();
    if usable.len() < LEVELS_MIN {
        return Err(HurstError::TooShort);
    }
    if usable.iter().any(|scale| scale.detail_energy == 0.0) {
        return Err(HurstError::NoVariation);
    }
    let points: Vec<RegressionPoint> =
        usable.iter().enumerate().map(|(level, scale)| RegressionPoint::new(level, scale)).collect();
    let onset = onset(&points);
    let fit = fit(&points[onset..]);
    Ok(HurstEstimate {
        h: fit.slope / 2.0,
        standard_error: fit.standard_error / 2.0,
        from: usable[onset].bin_length,
        to: usable[usable.len() - 1].bin_length,
    })
}

/// Returns the index of the first point from which on a line fits.
fn onset(points: &[RegressionPoint]) -> usize {
    let misfits: Vec<f64> = (0..=points.len() - LEVELS_MIN).map(|from| fit(&points[from..]).misfit).collect();
    if let Some(onset) = misfits.iter().position(|&misfit| misfit <= MISFIT_MAX) {
        return onset;
    }
    (0..misfits.len()).min_by(|&a, &b| misfits[a].total_cmp(&misfits[b])).unwrap_or(0)
}

impl RegressionPoint {
    fn new(level: usize, scale: &DyadicScale) -> Self {
        let half = scale.details as f64 / 2.0;
        let bias = digamma(half) / std::f64::consts::LN_2 - half.log2();
        let variance = zeta_2(half) / (std::f64::consts::LN_2 * std::f64::consts::LN_2);
        Self { level: level as f64, log2_energy: scale.detail_energy.log2() - bias, weight: 1.0 / variance }
    }
}

struct LineFit {
    slope: f64,
    standard_error: f64,
    /// The chi-squared per degree of freedom.
    misfit: f64,
}

/// Fits a line by weighted least squares.
fn fit(points: &[RegressionPoint]) -> LineFit {
    let s = weighted_sum(points, |_| 1.0);
    let sx = weighted_sum(points, |p| p.level);
    let sy = weighted_sum(points, |p| p.log2_energy);
    let sxx = weighted_sum(points, |p| p.level * p.level);
    let sxy = weighted_sum(points, |p| p.level * p.log2_energy);
    let determinant = s * sxx - sx * sx;
    let slope = (s * sxy - sx * sy) / determinant;
    let intercept = (sy - slope * sx) / s;
    let residual = |p: &RegressionPoint| p.weight * (p.log2_energy - intercept - slope * p.level).powi(2);
    let misfit = points.iter().map(residual).sum::<f64>() / (points.len() - 2) as f64;
    LineFit { slope, standard_error: (s / determinant * misfit.max(1.0)).sqrt(), misfit }
}

fn weighted_sum(points: &[RegressionPoint], value: fn(&RegressionPoint) -> f64) -> f64 {
    points.iter().map(|p| p.weight * value(p)).sum()
}

/// ψ(x) for x > 0: recurrence up to 6, then the asymptotic series (error below 1e-8).
fn digamma(x: f64) -> f64 {
    if x < 6.0 {
        return digamma(x + 1.0) - 1.0 / x;
    }
    let square = 1.0 / (x * x);
    x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

/// ζ(2, x) = Σ 1/(x + k)² for x > 0: recurrence up to 6, then the asymptotic series (error below 1e-7).
fn zeta_2(x: f64) -> f64 {
    if x < 6.0 {
        return zeta_2(x + 1.0) + 1.0 / (x * x);
    }
    let inverse = 1.0 / x;
    inverse + inverse * inverse * (0.5 + inverse * (1.0 / 6.0 - inverse * inverse / 30.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_functions_at_known_points() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + EULER).abs() < 1e-7);
        assert!((digamma(0.5) + EULER + 2.0 * std::f64::consts::LN_2).abs() < 1e-7);
        let pi2 = std::f64::consts::PI * std::f64::consts::PI;
        assert!((zeta_2(1.0) - pi2 / 6.0).abs() < 1e-6);
        assert!((zeta_2(0.5) - pi2 / 2.0).abs() < 1e-6);
    }
}
