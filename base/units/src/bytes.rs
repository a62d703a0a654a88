//! Sizes in bytes and rates in bytes per second, with decimal and binary prefixes.

use crate::error::ParseError;
use crate::quantity::{significant, split, to_u64};
use crate::time::serde_as_text;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

const DECIMAL: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
const BINARY: [(&str, f64); 4] =
    [("Ki", 1024.0), ("Mi", 1_048_576.0), ("Gi", 1_073_741_824.0), ("Ti", 1_099_511_627_776.0)];

/// The multiplier of a prefix such as `M` or `Ki`; `K` is accepted for `k`.
fn prefix_scale(prefix: &str) -> Option<f64> {
    let prefix = if prefix == "K" { "k" } else { prefix };
    DECIMAL.iter().chain(&BINARY).find(|(p, _)| *p == prefix).map(|(_, scale)| *scale)
}

/// A size or an amount of data in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, "a size such as 4096, 64KiB or 1MB");
        let (number, suffix) = split(text).ok_or_else(error)?;
        let prefix = suffix.strip_suffix('B').unwrap_or(suffix);
        let scale = prefix_scale(prefix).ok_or_else(error)?;
        to_u64(number * scale).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    /// Binary prefixes when exact, otherwise four significant decimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0 as f64;
        let exact = BINARY.iter().rev().find(|(_, s)| value >= *s && value % s == 0.0);
        let text = match exact {
            Some((prefix, scale)) => format!("{}{prefix}B", value / scale),
            None => {
                let (prefix, scale) = DECIMAL.iter().rev().find(|(_, s)| value >= *s).unwrap_or(&DECIMAL[0]);
                format!("{}{prefix}B", significant(value / scale, 4))
            }
        };
        f.pad(&text)
    }
}

/// Data per time in bytes per second: a link, a device. Positive and finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ByteRate(f64);

impl ByteRate {
    /// The rate, or `None` unless it is positive and finite.
    pub fn from_bytes_per_sec(rate: f64) -> Option<Self> {
        (rate.is_finite() && rate > 0.0).then_some(Self(rate))
    }

    /// The rate in bytes per second.
    pub fn bytes_per_sec(self) -> f64 {
        self.0
    }
}

impl FromStr for ByteRate {
    type Err = ParseError;
    /// Bytes (`125MB/s`) or bits (`1Gbps`, `1Gbit/s`) per second.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, "a rate such as 125MB/s, 1Gbps or 1Gbit/s");
        let (number, suffix) = split(text).ok_or_else(error)?;
        let (prefix, bits) = ["bps", "bit/s", "b/s"]
            .iter()
            .find_map(|unit| suffix.strip_suffix(unit).map(|p| (p, 8.0)))
            .or_else(|| suffix.strip_suffix("B/s").map(|p| (p, 1.0)))
            .ok_or_else(error)?;
        let scale = prefix_scale(prefix).ok_or_else(error)?;
        Self::from_bytes_per_sec(number * scale / bits).ok_or_else(error)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, scale) = DECIMAL.iter().rev().find(|(_, s)| self.0 >= *s).unwrap_or(&DECIMAL[0]);
        f.pad(&format!("{}{prefix}B/s", significant(self.0 / scale, 4)))
    }
}

serde_as_text!(Bytes, ByteRate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        for (text, bytes) in
            [("4096", 4096), ("64KiB", 65_536), ("1MB", 1_000_000), ("1.5k", 1500), ("2 GiB", 1 << 31)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for bad in ["", "KiB", "-4", "4 XB", "4 kelvin"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bits_and_bytes_per_second_differ_by_eight() {
        for text in ["125MB/s", "1Gbps", "1Gbit/s", "1000 Mbps", "125000kB/s"] {
            assert_eq!(text.parse::<ByteRate>().unwrap().bytes_per_sec(), 125e6, "{text}");
        }
        for bad in ["0MB/s", "1G", "fast", "1GB", "inf MB/s"] {
            assert!(bad.parse::<ByteRate>().is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn printed_sizes_parse_back_within_print_precision(bytes in 0u64..1 << 50) {
            let back: Bytes = Bytes(bytes).to_string().parse().unwrap();
            proptest::prop_assert!((back.0 as f64 - bytes as f64).abs() <= 5e-4 * bytes as f64);
        }
    }
}
