//! Gains and their causes: ratios of one mode to another over repetitions with the same requests.

use confidence::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// Conclusion from a ratio of latencies with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GainVerdict {
    /// The interval lies below 1: latencies are shorter.
    Shorter,
    /// The interval lies above 1: latencies are longer.
    Longer,
    /// The interval contains 1, or there is no interval.
    NotShown,
}

/// The ratio of a figure in one mode to that in another: the geometric mean over repetitions, with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RatioEstimate {
    /// The geometric mean of the ratios.
    pub ratio: f64,
    /// The lower end of the interval; 0 for a single repetition.
    pub low: f64,
    /// The upper end of the interval; infinite for a single repetition, which is null in JSON.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// Conclusion from the interval.
    pub verdict: GainVerdict,
}

impl RatioEstimate {
    /// Estimates the ratio of `after` to `before`, which have one figure per repetition. Logarithms of
    /// ratios are assumed to be normal. `None` without repetitions, or if a figure is not above 0.
    ///
    /// # Panics
    /// Unless the confidence is strictly between 0 and 1.
    pub fn of(before: &[f64], after: &[f64], confidence: f64) -> Option<Self> {
        let is_usable = |figure: &f64| *figure > 0.0 && figure.is_finite();
        if !before.iter().chain(after).all(is_usable) {
            return None;
        }
        let logarithms: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (after / before).ln()).collect();
        let Estimate { value, half_width } = Estimate::of(&logarithms, confidence)?;
        let low = (value - half_width).exp();
        let high = (value + half_width).exp();
        let verdict = if high < 1.0 {
            GainVerdict::Shorter
        } else if low > 1.0 {
            GainVerdict::Longer
        } else {
            GainVerdict::NotShown
        };
        Some(Self { ratio: value.exp(), low, high, verdict })
    }
}

/// A gain as the product of the effects of the limit and of age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GainSplit {
    /// Oldest first against a thread per request.
    pub total: RatioEstimate,
    /// The limit alone: limited sharing without age against a thread per request.
    pub cap: RatioEstimate,
    /// Age alone: oldest first against limited sharing without age.
    pub age: RatioEstimate,
    /// Share of the gain that is due to age, on the scale of logarithms, on which gains add up; above 1 if
    /// the limit alone lengthens latencies. `None` unless a gain is shown.
    pub age_share: Option<f64>,
}

impl GainSplit {
    /// Splits one figure, given in each mode for each repetition. `None` without repetitions.
    ///
    /// # Panics
    /// Unless the confidence is strictly between 0 and 1.
    pub fn of(fair: &[f64], limited: &[f64], oldest: &[f64], confidence: f64) -> Option<Self> {
        let total = RatioEstimate::of(fair, oldest, confidence)?;
        let cap = RatioEstimate::of(fair, limited, confidence)?;
        let age = RatioEstimate::of(limited, oldest, confidence)?;
        let is_shorter = total.verdict == GainVerdict::Shorter;
        let age_share = is_shorter.then(|| age.ratio.ln() / total.ratio.ln());
        Some(Self { total, cap, age, age_share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // Ratios ½, ½, ½: no spread.
        let half = RatioEstimate::of(&[2.0, 4.0, 8.0], &[1.0, 2.0, 4.0], 0.95).unwrap();
        assert!((half.ratio - 0.5).abs() < 1e-12 && half.verdict == GainVerdict::Shorter);
        // Logarithms ±ln 2 with mean 0: contains 1.
        let unclear = RatioEstimate::of(&[1.0, 2.0], &[2.0, 1.0], 0.95).unwrap();
        assert!((unclear.ratio - 1.0).abs() < 1e-12 && unclear.verdict == GainVerdict::NotShown);
        let once = RatioEstimate::of(&[2.0], &[1.0], 0.95).unwrap();
        assert!(once.low == 0.0 && once.high == f64::INFINITY && once.verdict == GainVerdict::NotShown);
        assert_eq!(RatioEstimate::of(&[], &[], 0.95), None);
        assert_eq!(RatioEstimate::of(&[0.0], &[1.0], 0.95), None);
        let longer = RatioEstimate::of(&[1.0, 1.0, 1.0], &[2.0, 2.1, 2.2], 0.95).unwrap();
        assert_eq!(longer.verdict, GainVerdict::Longer);
    }

    #[test]
    fn a_gain_that_is_not_shown_is_due_to_nothing() {
        let split = GainSplit::of(&[4.0, 4.0], &[2.0, 2.0], &[1.0, 1.0], 0.95).unwrap();
        assert_eq!(split.age_share, Some(0.5));
        let unclear = GainSplit::of(&[1.0, 2.0], &[2.0, 1.0], &[1.0, 2.0], 0.95).unwrap();
        assert_eq!(unclear.age_share, None);
    }

    proptest! {
        #[test]
        fn parts_multiply_to_the_whole(
            figures in proptest::collection::vec((0.1f64..10.0, 0.1f64..10.0, 0.1f64..10.0), 2..20),
        ) {
            let column = |pick: fn(&(f64, f64, f64)) -> f64| figures.iter().map(pick).collect::<Vec<f64>>();
            let split =
                GainSplit::of(&column(|f| f.0), &column(|f| f.1), &column(|f| f.2), 0.95).unwrap();
            prop_assert!((split.cap.ratio * split.age.ratio / split.total.ratio - 1.0).abs() < 1e-9);
            prop_assert!(split.total.low <= split.total.ratio && split.total.ratio <= split.total.high);
        }
    }
}
