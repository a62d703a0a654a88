//! Quantities with a single accepted form: shares, percentages and request rates.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use units::Percentile;

/// Parses a share, `0.85` or `85%`. Negative values are refused; options refuse values above 1 where they
/// make no sense.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse().ok().map(|number: f64| number * unit);
    share
        .filter(|share| share.is_finite() && *share >= 0.0)
        .ok_or_else(|| format!("expected a share such as 0.85 or 85%, found '{text}'"))
}

/// Parses requests per second from `500/s`, `2/ms`, `30/min` or `7/h`.
pub fn request_rate(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, ""));
    let per_s = match unit.trim() {
        "s" => Some(1.0),
        "ms" => Some(1e3),
        "min" => Some(1.0 / 60.0),
        "h" => Some(1.0 / 3600.0),
        _ => None,
    };
    let rate = number.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    rate.zip(per_s)
        .map(|(rate, per_s)| rate * per_s)
        .ok_or_else(|| format!("expected a rate with its unit, such as 500/s or 30/min, found '{text}'"))
}

/// Parses a percentile as a percentage; a share such as 0.999 is refused.
pub fn percentage(text: &str) -> Result<Percentile, String> {
    let percentile: Percentile = text.parse().map_err(|error| format!("{error}"))?;
    match percentile.is_like_a_share() {
        true => Err(format!("expected a percentage such as 99.9, found '{text}'")),
        false => Ok(percentile),
    }
}

/// Parses a positive count.
pub fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number, at least 1".to_owned())
}

/// Parses a confidence as a share.
pub fn confidence(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a share from 0.5 to below 1, such as 0.95 or 95%, found '{text}'");
    share(text).ok().filter(|share| (0.5..1.0).contains(share)).ok_or_else(expected)
}

/// Returns the paths of the requested results.
pub fn results<const N: usize>(asked: [&Option<PathBuf>; N]) -> Vec<PathBuf> {
    asked.into_iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_no_percentage() {
        assert_eq!(percentage("99.9").map(Percentile::percent), Ok(99.9));
        for bad in ["0.999", "0.5", "x", "101"] {
            assert!(percentage(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!((share("0.85"), share("85%"), share("12.5 %")), (Ok(0.85), Ok(0.85), Ok(0.125)));
        for bad in ["", "-0.1", "-5%", "nan", "inf", "%", "85 percent"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rates_have_units() {
        assert_eq!((request_rate("500/s"), request_rate("2/ms")), (Ok(500.0), Ok(2000.0)));
        assert_eq!((request_rate("30/min"), request_rate("7200/h")), (Ok(0.5), Ok(2.0)));
        for bad in ["500", "500/", "/s", "-1/s", "500/day", "nan/s"] {
            assert!(request_rate(bad).is_err(), "{bad}");
        }
    }
}
