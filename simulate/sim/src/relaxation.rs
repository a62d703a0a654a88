//! The time that a queue needs to forget its beginning.

/// Relaxation times after which a mean that began at zero is within some 1 % of its limit.
const FORGOTTEN: f64 = 5.0;

/// Returns the number of arrivals that a station which begins empty needs before its latencies are those of
/// the steady state; infinite from a utilisation of 1.
///
/// The relaxation time of M/M/c is that of ρ ÷ (1 − √ρ)² arrivals (Abate and Whitt, "Transient behavior of
/// the M/M/1 queue", Queueing Systems 2, 1987). In heavy traffic it grows with the variability of arrivals and
/// service, (C²a + C²s) ÷ 2, which is 1 for M/M/c.
pub fn settling_arrivals(utilisation: f64, variability: f64) -> f64 {
    if utilisation >= 1.0 {
        return f64::INFINITY;
    }
    let relaxation = utilisation / (1.0 - utilisation.sqrt()).powi(2);
    FORGOTTEN * relaxation * variability.max(1.0)
}

/// Returns the arrivals of a warm-up or measured window that should have `settling_arrivals`: at least `usual` and,
/// unless that is more, at most `longest`.
pub fn settling_window(usual: u64, settling_arrivals: f64, longest: u64) -> u64 {
    // The cast saturates, and is not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let needed = settling_arrivals.ceil() as u64;
    needed.min(longest).max(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_grows_with_the_square_of_the_distance_to_saturation() {
        for (utilisation, arrivals) in [(0.0, 0.0), (0.5, 29.1), (0.9, 1709.0), (0.99, 197_000.0)] {
            let found = settling_arrivals(utilisation, 1.0);
            assert!((found - arrivals).abs() <= 0.01 * arrivals, "{utilisation}: {found}");
        }
        assert!(settling_arrivals(1.0, 1.0).is_infinite());
        assert_eq!(settling_window(100, 29.1, 1000), 100);
        assert_eq!(settling_window(100, 700.5, 1000), 701);
        assert_eq!(settling_window(100, f64::INFINITY, 1000), 1000);
    }
}
