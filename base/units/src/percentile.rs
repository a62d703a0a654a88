//! Percentiles as people write them, from 0 (excluded) to 100.

use crate::error::ParseError;
use crate::time::serde_as_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A percentile strictly between 0 and 100; 100 itself is the maximum and is allowed.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percentile(f64);

impl Percentile {
    /// `percent` in (0, 100]; `None` outside.
    pub fn new(percent: f64) -> Option<Self> {
        (percent > 0.0 && percent <= 100.0).then_some(Self(percent))
    }

    /// The percentile in percent, in (0, 100].
    pub fn percent(self) -> f64 {
        self.0
    }

    /// Returns true below 1 %: a share such as 0.999 was written in place of a percentage.
    pub fn is_like_a_share(self) -> bool {
        self.0 < 1.0
    }

    /// The percentile as a fraction, in (0, 1].
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl FromStr for Percentile {
    type Err = ParseError;
    /// `99.9`, `99.9%` or `p99.9`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let bare = trimmed.strip_prefix(['p', 'P']).or_else(|| trimmed.strip_suffix('%')).unwrap_or(trimmed);
        bare.trim()
            .parse()
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| ParseError::new(text, "a percentile above 0 and at most 100, such as 99.9%"))
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}%", self.0))
    }
}

serde_as_text!(Percentile);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_three_forms_and_nothing_else() {
        for text in ["99.9", "99.9%", "p99.9", " P99.9 "] {
            assert_eq!(text.parse::<Percentile>().unwrap().percent(), 99.9, "{text}");
        }
        for bad in ["0", "100.1", "-1%", "NaN", "", "p", "inf"] {
            assert!(bad.parse::<Percentile>().is_err(), "{bad}");
        }
    }
}
