//! Claims of papers, values found, and their agreement by rules fixed before the outcome was known.

use schemars::JsonSchema;
use serde::Serialize;
use sim::engine::Estimate;

/// Claim of a paper about a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// This value, read to this relative accuracy: the rounding of a printed number, or the width of a line in a plot.
    About {
        /// The value that the paper gives.
        value: f64,
        /// The largest deviation that still agrees, relative to the value.
        within: f64,
    },
    /// The value is at least this.
    AtLeast(f64),
    /// The value is at most this.
    AtMost(f64),
    /// The value is below zero: only the direction is claimed.
    Negative,
    /// The value is above zero: only the direction is claimed.
    Positive,
}

/// Source of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimSource {
    /// The paper that the experiment is from.
    Paper,
    /// Our own: a check of the simulation, a calibration, or a conjecture.
    Ours,
}

/// Agreement of a value with a paper's claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// All values of the confidence interval agree with the claim.
    Agree,
    /// No value of the interval is as claimed.
    Differ,
    /// Some values of the interval are as claimed and some are not.
    Undecided,
    /// The paper leaves open what decides the claim.
    Underspecified,
}

/// A claim and its agreement with the value found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    pub source: ClaimSource,
    /// The paper's claim in our words, with its numbers.
    #[serde(rename = "said")]
    pub statement: String,
    /// The claim as a rule for the value found.
    pub expected: Expected,
    /// The value that was found; shares are fractions, times are seconds.
    pub found: f64,
    /// Half the width of its confidence interval; `None` when the value is exact.
    pub half_width: Option<f64>,
    /// The value that was found and its interval, as text.
    #[serde(rename = "ours")]
    pub found_text: String,
    /// Agreement of the value with the rule.
    #[serde(rename = "verdict")]
    pub agreement: Agreement,
    /// Why the value differs or the claim is open, when that is known.
    pub remark: String,
}

impl Expected {
    /// Returns true if a value is as expected.
    fn holds(self, found: f64) -> bool {
        match self {
            Self::About { value, within } => (found - value).abs() <= within * value.abs(),
            Self::AtLeast(least) => found >= least,
            Self::AtMost(most) => found <= most,
            Self::Negative => found < 0.0,
            Self::Positive => found > 0.0,
        }
    }

    /// Compares all values of an interval with the rule. The values that a rule allows are contiguous:
    /// all of the interval hold if both ends do, and some hold if the nearest one does.
    fn judge(self, found: f64, half_width: f64) -> Agreement {
        let low = found - half_width;
        let high = found + half_width;
        let nearest = match self {
            Self::About { value, .. } => value.clamp(low, high),
            Self::AtLeast(_) | Self::Positive => high,
            Self::AtMost(_) | Self::Negative => low,
        };
        if self.holds(low) && self.holds(high) {
            Agreement::Agree
        } else if self.holds(nearest) {
            Agreement::Undecided
        } else {
            Agreement::Differ
        }
    }
}

impl Claim {
    /// Compares an estimate with the rule. `format` writes a value.
    pub fn new(statement: &str, expected: Expected, found: Estimate, format: impl Fn(f64) -> String) -> Self {
        let half_width = found.has_interval().then_some(found.half_width);
        let agreement = expected.judge(found.value, half_width.unwrap_or(0.0));
        let found_text = match half_width {
            Some(half) if format(half).contains(|digit| ('1'..='9').contains(&digit)) => {
                format!("{} ± {}", format(found.value), format(half).trim_start_matches('+'))
            }
            // With an interval narrower than the last digit, the printed value is certain.
            _ => format(found.value),
        };
        Self {
            source: ClaimSource::Paper,
            statement: statement.to_owned(),
            expected,
            found: found.value,
            half_width,
            found_text,
            agreement,
            remark: String::new(),
        }
    }

    /// Compares a value that is known without chance with the rule.
    pub fn exact(statement: &str, expected: Expected, found: f64, format: impl Fn(f64) -> String) -> Self {
        Self::new(statement, expected, Estimate { value: found, half_width: f64::INFINITY }, format)
    }

    /// Marks a claim as one that no paper makes.
    #[must_use]
    pub fn ours(self) -> Self {
        self.with_source(ClaimSource::Ours)
    }

    /// Sets the source of the claim.
    #[must_use]
    pub(crate) fn with_source(mut self, source: ClaimSource) -> Self {
        self.source = source;
        self
    }

    /// Shows what was found in these words, where a value and its interval say too little.
    #[must_use]
    pub(crate) fn shown_as(mut self, found_text: String) -> Self {
        self.found_text = found_text;
        self
    }

    /// Adds why the value differs, if it does.
    #[must_use]
    pub(crate) fn because(self, why: &str) -> Self {
        if self.agreement == Agreement::Differ { self.remark(why) } else { self }
    }

    /// Adds the reason for a difference, or an open question.
    #[must_use]
    pub fn remark(mut self, remark: &str) -> Self {
        remark.clone_into(&mut self.remark);
        self
    }

    /// Marks a claim as open, because the paper does not say what decides it; the remark says what that is.
    #[must_use]
    pub fn underspecified(mut self, remark: &str) -> Self {
        self.agreement = Agreement::Underspecified;
        self.remark(remark)
    }
}

/// A time with a readable unit.
pub(crate) fn format_time(seconds: f64) -> String {
    units::Seconds(seconds).to_string()
}

/// An estimate in nanoseconds, converted to seconds.
pub(crate) fn to_seconds(ns: Estimate) -> Estimate {
    Estimate { value: ns.value / 1e9, half_width: ns.half_width / 1e9 }
}

/// A ratio as a factor.
pub(crate) fn format_factor(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// A relative change as a percentage: −0.81 is −81 %.
pub(crate) fn format_change(fraction: f64) -> String {
    format!("{:+.1} %", 100.0 * fraction)
}

/// A share as a percentage.
pub(crate) fn format_share(fraction: f64) -> String {
    format!("{:.1} %", 100.0 * fraction)
}

/// A number with three decimals.
pub(crate) fn format_number(value: f64) -> String {
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_look_at_the_interval() {
        use Agreement::{Agree, Differ, Undecided};
        let about = Expected::About { value: 2.0, within: 0.1 };
        let least = Expected::AtLeast(1.0);
        let most = Expected::AtMost(1.0);
        for (expected, value, half_width, verdict) in [
            (about, 2.19, 0.0, Agree),
            (about, 2.1, 0.05, Agree),
            (about, 2.29, 0.1, Undecided),
            // An interval wider than the allowed range has values on both sides of it.
            (about, 2.0, 0.5, Undecided),
            (about, 2.35, 0.1, Differ),
            (about, 1.5, 0.1, Differ),
            (least, 1.2, 0.1, Agree),
            (least, 0.9, 0.2, Undecided),
            (least, 1.1, 0.2, Undecided),
            (least, 0.9, 0.05, Differ),
            (most, 0.8, 0.1, Agree),
            (most, 1.1, 0.2, Undecided),
            (most, 1.1, 0.05, Differ),
            (Expected::Negative, -0.2, 0.1, Agree),
            (Expected::Negative, -0.2, 0.3, Undecided),
            (Expected::Negative, 0.2, 0.3, Undecided),
            (Expected::Negative, 0.2, 0.1, Differ),
            (Expected::Positive, 0.2, f64::INFINITY, Agree),
            (Expected::Positive, 0.2, 0.3, Undecided),
            (Expected::Positive, -0.2, 0.1, Differ),
        ] {
            let claim = Claim::new("", expected, Estimate { value, half_width }, format_change);
            assert_eq!(claim.agreement, verdict, "{expected:?} {value} {half_width}");
        }
        assert_eq!(Claim::exact("", about, -0.81, format_change).found_text, "-81.0 %");
    }

    #[test]
    fn a_reason_is_given_where_something_differs() {
        let claim = |found| Claim::exact("", Expected::AtMost(1.0), found, format_change).because("why");
        assert_eq!([claim(0.5).remark, claim(2.0).remark], ["", "why"]);
    }
}
