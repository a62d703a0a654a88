//! Times: integer nanoseconds where they are measured or simulated, seconds as real numbers where they are computed.

use crate::error::ParseError;
use crate::quantity::{significant, split, to_u64};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

const EXPECTED: &str = "a time such as 150ms, 1.5s or 10min, in ns, us, ms, s, min or h";
/// Expected value in the error for times beyond 64 bits of nanoseconds.
const EXPECTED_SHORTER: &str = "a time of less than 584 years";
/// Text suffix and length in nanoseconds, longest last.
const SUFFIXES: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];

/// A point in time since a trace's origin, or a span, in integer nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero length, or the origin.
    pub const ZERO: Self = Self(0);

    /// Length in seconds. Exact below 2^53 ns (104 days); above, within one part in 10^16.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Nearest nanosecond to `secs`; `None` when negative, not finite or beyond 584 years.
    pub fn from_secs(secs: f64) -> Option<Self> {
        to_u64(secs * 1e9).map(Self)
    }

    /// `self − earlier`, or zero when `earlier` is later.
    pub fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl FromStr for Nanos {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, EXPECTED);
        let (number, suffix) = split(text).ok_or_else(error)?;
        let &(_, scale) = SUFFIXES.iter().find(|(s, _)| *s == suffix).ok_or_else(error)?;
        to_u64(number * scale).map(Self).ok_or_else(|| ParseError::new(text, EXPECTED_SHORTER))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Seconds(self.as_secs()).to_string())
    }
}

/// A computed span in seconds: a bound, a mean, an SLO. Never negative, may be infinite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Seconds(pub f64);

impl FromStr for Seconds {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, EXPECTED);
        let (number, suffix) = split(text).ok_or_else(error)?;
        let &(_, scale) = SUFFIXES.iter().find(|(s, _)| *s == suffix).ok_or_else(error)?;
        Ok(Self(number * (scale / 1e9)))
    }
}

impl fmt::Display for Seconds {
    /// Four significant digits in the largest unit that keeps the number at or above one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() {
            return f.pad("unbounded");
        }
        // Rounded first, so that nothing is a thousand of its unit.
        let rounded: f64 = format!("{:.3e}", self.0).parse().unwrap_or(self.0);
        let (scale, suffix) = match rounded.abs() {
            s if s == 0.0 || s >= 1.0 => (1.0, "s"),
            s if s >= 1e-3 => (1e3, "ms"),
            s if s >= 1e-6 => (1e6, "us"),
            _ => (1e9, "ns"),
        };
        f.pad(&format!("{}{suffix}", significant(rounded * scale, 4)))
    }
}

macro_rules! serde_as_text {
    ($($unit:ty),*) => {$(
        impl Serialize for $unit {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use serde_as_text;
serde_as_text!(Nanos, Seconds);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_a_thousand_of_its_unit() {
        for (seconds, shown) in [
            (0.000_999_999_9, "1ms"),
            (0.999_96, "1s"),
            (9.999_9e-7, "1us"),
            (0.000_999_94, "999.9us"),
            (0.0, "0s"),
        ] {
            assert_eq!(Seconds(seconds).to_string(), shown, "{seconds}");
        }
    }

    #[test]
    fn reads_what_people_write() {
        for (text, ns) in
            [("150ms", 150_000_000), ("1.5s", 1_500_000_000), ("20 us", 20_000), ("1h", 3_600_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
        for bad in ["", "150", "-1ms", "1 parsec", "ms", "1e30s"] {
            assert!(bad.parse::<Nanos>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_in_a_readable_unit() {
        for (secs, text) in [
            (0.2, "200ms"),
            (0.950_12, "950.1ms"),
            (12.0, "12s"),
            (0.0, "0s"),
            (4.2e-5, "42us"),
            (f64::INFINITY, "unbounded"),
        ] {
            assert_eq!(Seconds(secs).to_string(), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn printed_times_parse_back_within_print_precision(ns in 0u64..1u64 << 53) {
            let back: Nanos = Nanos(ns).to_string().parse().unwrap();
            proptest::prop_assert!((back.0 as f64 - ns as f64).abs() <= 5e-4 * ns as f64 + 0.5);
        }
    }
}
