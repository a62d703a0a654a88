//! The Hurst parameter of the arrival counts, from Haar wavelets.
//!
//! Veitch and Abry, "A wavelet-based joint estimator of the parameters of long-range dependence", IEEE
//! Trans. Information Theory 45(3), 1999, section II: for counts with Hurst parameter H the mean squared
//! detail grows as 2^(2Hj) over levels j (here of unnormalised sums, where they have 2^((2H−1)j) for
//! normalised ones). H is half the slope of a weighted regression of its logarithm on j; the logarithm of
//! a mean of n squared Gaussian details has mean bias ψ(n/2)/ln 2 − log2(n/2) and variance
//! ζ(2, n/2)/ln² 2, which give the correction and the weights.
//!
//! Fitted are the levels with at least [`DETAILS_MIN`] details whose bins hold at least [`MEAN_MIN`]
//! arrivals in the mean: below that, counts are noise around the rate and look like H = 1/2. Scaling may set
//! in later still, so the finest scales are left out until the line fits (chi-squared per degree of freedom
//! at most [`MISFIT_MAX`]), or, when none does, where it fits best; the idea is that of Veitch, Abry and
//! Taqqu, "On the automatic selection of the onset of scaling", Fractals 11(4), 2003. The standard error
//! is that of the regression, widened by the misfit where the points scatter more than Gaussian
//! details would; it does not cover what lies outside the fitted scales.

use super::cascade::Scale;
use units::Nanos;

/// Levels with fewer details say too little.
const DETAILS_MIN: u64 = 8;
/// Arrivals per bin.
const MEAN_MIN: f64 = 4.0;
const LEVELS_MIN: usize = 4;
/// Chi-squared per degree of freedom that counts as a fit.
const MISFIT_MAX: f64 = 2.0;

/// An estimate with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hurst {
    /// 1/2 without memory; between 1/2 and 1 long-range dependent. Estimates may fall outside.
    pub h: f64,
    /// One standard error of `h`.
    pub standard_error: f64,
    /// The finest scale in the fit.
    pub from: Nanos,
    /// The coarsest scale in the fit.
    pub to: Nanos,
}

/// Why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HurstFault {
    /// Fewer than four usable scales.
    TooShort,
    /// The counts do not vary at all at some scale.
    NoVariation,
}

impl std::fmt::Display for HurstFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooShort => "too short: fewer than four octaves of time with enough arrivals",
            Self::NoVariation => "arrivals do not vary",
        })
    }
}

/// A level as the regression sees it.
struct Point {
    level: f64,
    log2_energy: f64,
    weight: f64,
}

pub(super) fn estimate(scales: &[Scale]) -> Result<Hurst, HurstFault> {
    let usable: Vec<&Scale> =
        scales.iter().filter(|s| s.details >= DETAILS_MIN && s.mean >= MEAN_MIN).collect();
    if usable.len() < LEVELS_MIN {
        return Err(HurstFault::TooShort);
    }
    if usable.iter().any(|scale| scale.detail == 0.0) {
        return Err(HurstFault::NoVariation);
    }
    let points: Vec<Point> = usable.iter().enumerate().map(|(level, scale)| point(level, scale)).collect();
    let onset = onset(&points);
    let fit = fit(&points[onset..]);
    Ok(Hurst {
        h: fit.slope / 2.0,
        standard_error: fit.standard_error / 2.0,
        from: usable[onset].scale,
        to: usable[usable.len() - 1].scale,
    })
}

/// The first point of the part that a line fits.
fn onset(points: &[Point]) -> usize {
    let misfits: Vec<f64> = (0..=points.len() - LEVELS_MIN).map(|from| fit(&points[from..]).misfit).collect();
    let fits = misfits.iter().position(|&misfit| misfit <= MISFIT_MAX);
    let best = || (0..misfits.len()).min_by(|&a, &b| misfits[a].total_cmp(&misfits[b])).unwrap_or(0);
    fits.unwrap_or_else(best)
}

fn point(level: usize, scale: &Scale) -> Point {
    let half = scale.details as f64 / 2.0;
    let bias = digamma(half) / std::f64::consts::LN_2 - half.log2();
    let variance = zeta_2(half) / (std::f64::consts::LN_2 * std::f64::consts::LN_2);
    Point { level: level as f64, log2_energy: scale.detail.log2() - bias, weight: 1.0 / variance }
}

struct Fit {
    slope: f64,
    standard_error: f64,
    /// Chi-squared per degree of freedom.
    misfit: f64,
}

/// The weighted regression.
fn fit(points: &[Point]) -> Fit {
    let sum = |value: fn(&Point) -> f64| points.iter().map(|p| p.weight * value(p)).sum::<f64>();
    let (s, sx, sy) = (sum(|_| 1.0), sum(|p| p.level), sum(|p| p.log2_energy));
    let (sxx, sxy) = (sum(|p| p.level * p.level), sum(|p| p.level * p.log2_energy));
    let determinant = s * sxx - sx * sx;
    let slope = (s * sxy - sx * sy) / determinant;
    let intercept = (sy - slope * sx) / s;
    let residual = |p: &Point| p.weight * (p.log2_energy - intercept - slope * p.level).powi(2);
    let misfit = points.iter().map(residual).sum::<f64>() / (points.len() - 2) as f64;
    Fit { slope, standard_error: (s / determinant * misfit.max(1.0)).sqrt(), misfit }
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
