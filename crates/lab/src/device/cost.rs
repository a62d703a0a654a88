//! What a request costs a channel, as people write it.

use std::fmt;
use std::str::FromStr;
use units::{Bytes, Nanos};

/// base + slope · size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    base: Nanos,
    slope_ps: u64,
}

impl Cost {
    /// `base` for any request and `slope_ps` picoseconds for each byte.
    pub const fn new(base: Nanos, slope_ps: u64) -> Self {
        Self { base, slope_ps }
    }

    /// For a request without bytes.
    pub fn base(self) -> Nanos {
        self.base
    }

    /// For a request of this size, in whole nanoseconds, rounded up; saturates.
    pub fn of(self, size: Bytes) -> Nanos {
        let picos = u128::from(self.slope_ps) * u128::from(size.0);
        Nanos(self.base.0.saturating_add(u64::try_from(picos.div_ceil(1000)).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Cost {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slope = self.slope_ps as f64 / 1000.0;
        match self.base.to_string() {
            base if base.parse() == Ok(self.base) => write!(f, "{base}+{slope}ns/B"),
            _ => write!(f, "{}ns+{slope}ns/B", self.base.0),
        }
    }
}

impl FromStr for Cost {
    type Err = String;

    /// A time, a time per byte (`2ns/B`, `0.5ns/B`), or both joined by `+`.
    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || format!("'{text}': expected a time, and a time per byte, such as 90us+2ns/B");
        let mut cost = Self::new(Nanos::ZERO, 0);
        for part in text.split('+').map(str::trim) {
            match part.strip_suffix("/B") {
                Some(each) => {
                    let nanos: units::Seconds = each.trim().parse().map_err(|_| fault())?;
                    let picos = nanos.0 * 1e12;
                    if !(0.0..=1e15).contains(&picos) {
                        return Err(fault());
                    }
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let picos = picos.round() as u64;
                    cost.slope_ps = cost.slope_ps.checked_add(picos).ok_or_else(fault)?;
                }
                None => {
                    let base = part.parse::<Nanos>().map_err(|_| fault())?.0;
                    cost.base = Nanos(cost.base.0.checked_add(base).ok_or_else(fault)?);
                }
            }
        }
        if cost.base.0 > 3_600_000_000_000 || cost == Self::new(Nanos::ZERO, 0) {
            return Err(fault());
        }
        Ok(cost)
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
            assert_eq!(text.parse(), Ok(Cost::new(Nanos(base), slope)), "{text}");
        }
        for bad in ["", "90", "2ns/B+", "-1us", "1h+2h", "0us", "90us+2ns/KiB", "1e9s/B"] {
            assert!(bad.parse::<Cost>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_as_it_is_read() {
        for cost in [Cost::new(Nanos(90_000), 500), Cost::new(Nanos(0), 1), Cost::new(Nanos(1_234_567), 0)] {
            assert_eq!(cost.to_string().parse(), Ok(cost));
        }
    }

    #[test]
    fn rounds_up_and_saturates() {
        let cost = Cost::new(Nanos(10), 1);
        assert_eq!([0, 1, 1000, 1001].map(|size| cost.of(Bytes(size)).0), [10, 11, 11, 12]);
        assert_eq!(Cost::new(Nanos(1), u64::MAX).of(Bytes(u64::MAX)), Nanos(u64::MAX));
    }
}
