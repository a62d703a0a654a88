//! Minimisation in one dimension, for objectives that are undefined in places.
//!
//! A scan finds the neighbourhood, golden section narrows it. The objective may have several regimes, be
//! flat, or be `None`, NaN or infinite outside an unknown domain. Every probe of a bound's free parameter
//! is a valid bound, so a result that is not quite the minimum is still right.

/// The fraction at which golden section cuts the larger part of an interval.
const CUT: f64 = 0.381_966_011_250_105;

/// The argument and value of the smallest finite value that was found.
pub(super) type Minimum = Option<(f64, f64)>;

/// Scans `points` (at least 2) evenly spaced arguments of [`low`, `high`], then narrows around the best.
/// `None` when the objective is defined at none of them.
pub(super) fn minimise(
    low: f64,
    high: f64,
    points: usize,
    mut objective: impl FnMut(f64) -> Option<f64>,
) -> Minimum {
    assert!(points >= 2 && low <= high, "an interval and its ends");
    let at = |k: usize| low + (high - low) * k as f64 / (points - 1) as f64;
    let mut value = |x: f64| objective(x).filter(|v| !v.is_nan()).unwrap_or(f64::INFINITY);
    let mut best = 0;
    let mut least = f64::INFINITY;
    for k in 0..points {
        let v = value(at(k));
        if v < least {
            (best, least) = (k, v);
        }
    }
    let bracket = [at(best.saturating_sub(1)), at(best), at((best + 1).min(points - 1))];
    (least < f64::INFINITY).then(|| narrow(bracket, least, value))
}

/// Does the same as [`minimise`] over the logarithm of positive arguments.
pub(super) fn minimise_log(
    low: f64,
    high: f64,
    points: usize,
    mut objective: impl FnMut(f64) -> Option<f64>,
) -> Minimum {
    let found = minimise(low.ln(), high.ln(), points, |x| objective(x.exp()));
    found.map(|(x, value)| (x.exp(), value))
}

/// Golden section around the middle of `bracket`, whose value is `least`.
fn narrow(bracket: [f64; 3], least: f64, mut value: impl FnMut(f64) -> f64) -> (f64, f64) {
    let ([mut low, mut middle, mut high], mut least) = (bracket, least);
    let tolerance = 1e-7 * (1.0 + middle.abs());
    while high - low > tolerance {
        let right = high - middle > middle - low;
        let probe = if right { middle + CUT * (high - middle) } else { middle - CUT * (middle - low) };
        let v = value(probe);
        match (v < least, right) {
            (true, true) => (low, middle, least) = (middle, probe, v),
            (true, false) => (high, middle, least) = (middle, probe, v),
            (false, true) => high = probe,
            (false, false) => low = probe,
        }
    }
    (middle, least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_minima_inside_at_the_ends_and_beside_undefined_places() {
        let close = |found: Minimum, x: f64| assert!((found.unwrap().0 - x).abs() < 1e-3, "{found:?} {x}");
        close(minimise(0.0, 10.0, 5, |x| Some((x - 3.3).powi(2))), 3.3);
        close(minimise(0.0, 10.0, 5, Some), 0.0);
        close(minimise(0.0, 10.0, 5, |x| Some(-x)), 10.0);
        close(minimise(0.0, 10.0, 11, |x| (x > 4.2).then_some(x)), 4.2);
        close(minimise(0.0, 10.0, 11, |x| if x < 2.0 { Some(f64::NAN) } else { Some((x - 2.5).abs()) }), 2.5);
        close(minimise_log(1e-6, 1e6, 40, |x| Some(x + 1e4 / x)), 100.0);
        // Two regimes: the scan picks the deeper one.
        close(minimise(0.0, 10.0, 21, |x| Some((x - 2.0).abs().min((x - 8.0).abs() - 1.0))), 8.0);
    }

    #[test]
    fn undefined_everywhere_is_no_minimum() {
        assert_eq!(minimise(0.0, 1.0, 9, |_| None), None);
        assert_eq!(minimise(0.0, 1.0, 9, |_| Some(f64::NAN)), None);
        assert_eq!(minimise(0.0, 1.0, 9, |_| Some(f64::INFINITY)), None);
    }
}
