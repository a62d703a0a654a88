//! Service time of a channel of the emulated SSD, and its text form.

use std::fmt;
use std::str::FromStr;
use units::{Bytes, Nanos};

/// A service time that is linear in the size of a request: base + slope · size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearServiceTime {
    base: Nanos,
    slope_ps_per_byte: u64,
}

impl LinearServiceTime {
    /// The longest base that is read from text: an hour.
    const BASE_MAX: Nanos = Nanos(3_600_000_000_000);
    /// The steepest slope that is read from text, in picoseconds per byte: a millisecond.
    const SLOPE_PS_MAX: f64 = 1e15;

    /// Takes `base` for any request and `slope_ps_per_byte` picoseconds for each of its bytes.
    pub const fn new(base: Nanos, slope_ps_per_byte: u64) -> Self {
        Self { base, slope_ps_per_byte }
    }

    /// The service time of a request of this size, rounded up to whole nanoseconds. It saturates.
    pub(crate) fn for_size(self, size: Bytes) -> Nanos {
        let picos = u128::from(self.slope_ps_per_byte) * u128::from(size.0);
        Nanos(self.base.0.saturating_add(u64::try_from(picos.div_ceil(1000)).unwrap_or(u64::MAX)))
    }

    /// Adds one part of the text form: a time, or a time per byte. `None` when it is neither or too long.
    fn plus(self, part: &str) -> Option<Self> {
        let Some(per_byte) = part.strip_suffix("/B") else {
            let base = part.parse::<Nanos>().ok()?;
            return Some(Self { base: Nanos(self.base.0.checked_add(base.0)?), ..self });
        };
        let seconds: units::Seconds = per_byte.trim().parse().ok()?;
        let picos = seconds.0 * 1e12;
        if !(0.0..=Self::SLOPE_PS_MAX).contains(&picos) {
            return None;
        }
        // It is not negative and far below 2⁶⁴.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let picos = picos.round() as u64;
        Some(Self { slope_ps_per_byte: self.slope_ps_per_byte.checked_add(picos)?, ..self })
    }
}

impl fmt::Display for LinearServiceTime {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slope_ns = self.slope_ps_per_byte as f64 / 1000.0;
        match self.base.to_string() {
            base if base.parse() == Ok(self.base) => write!(f, "{base}+{slope_ns}ns/B"),
            // Times are printed rounded; then only nanoseconds are exact.
            _ => write!(f, "{}ns+{slope_ns}ns/B", self.base.0),
        }
    }
}

impl FromStr for LinearServiceTime {
    type Err = String;

    /// Reads a time, a time per byte (`2ns/B`, `0.5ns/B`), or several of these joined by `+`.
    fn from_str(text: &str) -> Result<Self, String> {
        let zero = Self::new(Nanos::ZERO, 0);
        text.split('+')
            .try_fold(zero, |sum, part| sum.plus(part.trim()))
            .filter(|sum| sum.base <= Self::BASE_MAX && *sum != zero)
            .ok_or_else(|| format!("'{text}': expected a time, and a time per byte, such as 90us+2ns/B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, base, slope) in [
            ("90us+2ns/B", 90_000, 2000),
            ("90us + 0.5 ns/B", 90_000, 500),
            ("1ms", 1_000_000, 0),
            ("3ns/B", 0, 3000),
        ] {
            assert_eq!(text.parse(), Ok(LinearServiceTime::new(Nanos(base), slope)), "{text}");
        }
        for bad in ["", "90", "2ns/B+", "-1us", "1h+2h", "0us", "90us+2ns/KiB", "1e9s/B"] {
            assert!(bad.parse::<LinearServiceTime>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_as_it_is_read() {
        for service_time in [
            LinearServiceTime::new(Nanos(90_000), 500),
            LinearServiceTime::new(Nanos(0), 1),
            LinearServiceTime::new(Nanos(1_234_567), 0),
        ] {
            assert_eq!(service_time.to_string().parse(), Ok(service_time));
        }
    }

    #[test]
    fn rounds_up_and_saturates() {
        let service_time = LinearServiceTime::new(Nanos(10), 1);
        assert_eq!([0, 1, 1000, 1001].map(|size| service_time.for_size(Bytes(size)).0), [10, 11, 11, 12]);
        assert_eq!(LinearServiceTime::new(Nanos(1), u64::MAX).for_size(Bytes(u64::MAX)), Nanos(u64::MAX));
    }
}
