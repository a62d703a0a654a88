//! Student's t: inference about an expectation from the mean of a few independent values.

/// An estimate with the half-width of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Mean of the replications.
    pub value: f64,
    /// Half-width of the confidence interval around `value`, exact if the values are normal; infinite for
    /// a single value.
    pub half_width: f64,
}

impl Estimate {
    /// From independent values; `None` without any.
    ///
    /// # Panics
    /// Unless the confidence is strictly between 0 and 1.
    pub fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let value = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|x| (x - value) * (x - value)).sum();
        let half_width = match n {
            1 => f64::INFINITY,
            _ => t_quantile(n - 1, confidence) * (squares / (n - 1) as f64 / n as f64).sqrt(),
        };
        Some(Self { value, half_width })
    }

    /// The half-width as a fraction of the estimate.
    pub fn relative(&self) -> f64 {
        (self.half_width / self.value).abs()
    }

    /// Returns true if the interval is meaningful. It is not for identical values: its width is then zero, or
    /// rounding error.
    pub fn has_interval(&self) -> bool {
        self.half_width.is_finite() && self.half_width > 1e-12 * self.value.abs()
    }

    /// Returns true if `value` lies within the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.value - value).abs() <= self.half_width
    }
}

/// The t with P(|T| ≤ t) = confidence for `degrees` of freedom.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1 and there is a degree of freedom.
pub fn t_quantile(degrees: usize, confidence: f64) -> f64 {
    assert!(degrees > 0 && confidence > 0.0 && confidence < 1.0, "confidence is strictly between 0 and 1");
    // t = √ν tan θ; P is increasing in θ from 0 to π/2.
    let mut low = 0.0;
    let mut high = std::f64::consts::FRAC_PI_2;
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if within(degrees, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    (degrees as f64).sqrt() * low.tan()
}

/// Returns the z with P(|Z| ≤ z) = confidence for a standard normal Z: the limit of [`t_quantile`] for many degrees of
/// freedom.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn normal_quantile(confidence: f64) -> f64 {
    assert!(confidence > 0.0 && confidence < 1.0, "confidence is strictly between 0 and 1");
    let mut low = 0.0;
    // P(|Z| ≤ 9) rounds to 1.
    let mut high = 9.0;
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if libm::erf(middle * std::f64::consts::FRAC_1_SQRT_2) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// P(|T| ≤ √ν tan θ) by the finite series for whole ν (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(degrees: usize, theta: f64) -> f64 {
    let (sin, cos) = theta.sin_cos();
    let odd = degrees % 2 == 1;
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    // The power of the cosine; it ends with ν − 2.
    let mut power = usize::from(odd);
    while power + 2 <= degrees {
        sum += term;
        term *= (power + 1) as f64 / (power + 2) as f64 * cos * cos;
        power += 2;
    }
    if odd { (theta + sin * sum) * 2.0 / std::f64::consts::PI } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_printed_tables() {
        for (degrees, confidence, table) in [
            (1, 0.95, 12.706),
            (2, 0.95, 4.303),
            (3, 0.9, 2.353),
            (4, 0.99, 4.604),
            (9, 0.95, 2.262),
            (10, 0.95, 2.228),
            (30, 0.99, 2.750),
            (31, 0.95, 2.040),
            (120, 0.95, 1.980),
        ] {
            let got = t_quantile(degrees, confidence);
            assert!((got - table).abs() < 6e-4, "t({degrees}, {confidence}) = {got} instead of {table}");
        }
    }

    #[test]
    fn normal_quantiles_are_limits_of_t() {
        for (confidence, table) in [(0.5, 0.674_490), (0.9, 1.644_854), (0.95, 1.959_964), (0.999, 3.290_527)]
        {
            let normal = normal_quantile(confidence);
            assert!((normal - table).abs() < 1e-6, "z({confidence}) = {normal} instead of {table}");
            let many = t_quantile(100_000, confidence);
            assert!(normal < many && many < normal * 1.0001, "t {many} beside z {normal} at {confidence}");
        }
    }

    #[test]
    fn an_interval_by_hand() {
        // Mean 2, variance 1: half-width 4.303/√3.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0], 0.95).unwrap();
        assert!((estimate.value - 2.0).abs() < 1e-12 && (estimate.half_width - 2.484).abs() < 1e-3);
        assert!(estimate.contains(0.0) && !estimate.contains(4.6));
        assert_eq!(Estimate::of(&[], 0.95), None);
        assert_eq!(Estimate::of(&[5.0], 0.95).unwrap().half_width, f64::INFINITY);
    }
}
