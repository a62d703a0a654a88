//! What a paper says, what was found, and whether the two agree: by rules that do not know the outcome.

use serde::Serialize;
use sim::engine::Estimate;

/// What a paper says of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// This value, read to this relative accuracy: the rounding of a printed number, or the width of a line in a plot.
    About {
        /// What the paper says.
        value: f64,
        /// How far from it still counts, relative to it.
        within: f64,
    },
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// Less than nothing or more than nothing: only the direction is claimed.
    Negative,
    /// See [`Self::Negative`].
    Positive,
}

/// Whether what was found agrees with what a paper says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval of what was found meets what was said.
    Agree,
    /// It does not.
    Differ,
    /// The paper leaves open what decides it.
    Underspecified,
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// What the paper says, in our words, with its numbers.
    pub said: String,
    /// The same as a rule.
    pub expected: Expected,
    /// What was found; shares are fractions, times are seconds.
    pub found: f64,
    /// Half the width of its confidence interval; none when it is exact.
    pub half_width: Option<f64>,
    /// What was found, as people read it.
    pub ours: String,
    /// By the rule.
    pub verdict: Verdict,
    /// Why it differs or is open, when that is known.
    pub remark: String,
}

impl Expected {
    /// Whether a value, give or take an interval, is what was expected.
    fn holds(self, found: f64, half_width: f64) -> bool {
        match self {
            Self::About { value, within } => (found - value).abs() <= within * value.abs() + half_width,
            Self::AtLeast(least) => found + half_width >= least,
            Self::AtMost(most) => found - half_width <= most,
            // A direction is found only when chance is excluded.
            Self::Negative => found + half_width < 0.0,
            Self::Positive => found - half_width > 0.0,
        }
    }
}

impl Claim {
    /// Judged by its rule. `shown` says how a value is written.
    pub fn new(said: &str, expected: Expected, found: Estimate, shown: impl Fn(f64) -> String) -> Self {
        let half_width = found.half_width.is_finite().then_some(found.half_width);
        let verdict = match expected.holds(found.value, half_width.unwrap_or(0.0)) {
            true => Verdict::Agree,
            false => Verdict::Differ,
        };
        let ours = match half_width {
            Some(half) => format!("{} ± {}", shown(found.value), shown(half).trim_start_matches('+')),
            None => shown(found.value),
        };
        Self {
            said: said.to_owned(),
            expected,
            found: found.value,
            half_width,
            ours,
            verdict,
            remark: String::new(),
        }
    }

    /// A value that is known without chance.
    pub fn exact(said: &str, expected: Expected, found: f64, shown: impl Fn(f64) -> String) -> Self {
        Self::new(said, expected, Estimate { value: found, half_width: f64::INFINITY }, shown)
    }

    /// Adds why it differs or what is open.
    #[must_use]
    pub fn remark(mut self, remark: &str) -> Self {
        remark.clone_into(&mut self.remark);
        self
    }

    /// The paper leaves open what decides it; the remark says what.
    #[must_use]
    pub fn underspecified(mut self, remark: &str) -> Self {
        self.verdict = Verdict::Underspecified;
        self.remark(remark)
    }
}

/// Seconds as people read them.
pub(crate) fn time(seconds: f64) -> String {
    units::Seconds(seconds).to_string()
}

/// Nanoseconds as seconds.
pub(crate) fn seconds(ns: Estimate) -> Estimate {
    Estimate { value: ns.value / 1e9, half_width: ns.half_width / 1e9 }
}

/// How many times as much.
pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// A change as a percentage: −0.81 is −81 %.
pub(crate) fn change(fraction: f64) -> String {
    format!("{:+.1} %", 100.0 * fraction)
}

/// A share as a percentage.
pub(crate) fn share(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

/// A plain number.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_look_at_the_interval() {
        let verdict = |expected, value, half_width| {
            Claim::new("", expected, Estimate { value, half_width }, change).verdict == Verdict::Agree
        };
        let about = Expected::About { value: 2.0, within: 0.1 };
        assert!(verdict(about, 2.19, 0.0) && verdict(about, 2.29, 0.1) && !verdict(about, 2.35, 0.1));
        assert!(verdict(Expected::AtLeast(1.0), 0.9, 0.2) && !verdict(Expected::AtLeast(1.0), 0.9, 0.05));
        assert!(verdict(Expected::AtMost(1.0), 1.1, 0.2) && !verdict(Expected::AtMost(1.0), 1.1, 0.05));
        assert!(verdict(Expected::Negative, -0.2, 0.1) && !verdict(Expected::Negative, -0.2, 0.3));
        assert!(verdict(Expected::Positive, 0.2, f64::INFINITY) && !verdict(Expected::Positive, 0.2, 0.3));
        assert_eq!(Claim::exact("", about, -0.81, change).ours, "-81.0 %");
    }
}
