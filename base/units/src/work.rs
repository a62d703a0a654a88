//! Work of a stage as an integer with a fixed point, so that sums do not depend on their order.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Units of [`Work`] per base unit (one byte on a network, one nanosecond of a device).
pub const MILLI: u64 = 1000;

/// An amount of work at one stage, in thousandths of the stage's base unit: milli-bytes on a network,
/// picoseconds of device time on storage.
///
/// Integer, so that sums, hulls and merges are exact and associative; conversions from real numbers
/// round up, so that work is never understated. A trace may hold 1.8e16 bytes or 213 device-days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Work(pub u64);

impl Work {
    /// The work of nothing: zero.
    pub const ZERO: Self = Self(0);

    /// The smallest work that is at least `base_units` (bytes or nanoseconds); negative counts as zero,
    /// beyond the range saturates.
    pub fn from_base_units(base_units: f64) -> Self {
        // `as` saturates, which is the documented behaviour.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Self((base_units * MILLI as f64).ceil() as u64)
    }

    /// The work in base units (bytes or nanoseconds).
    pub fn base_units(self) -> f64 {
        self.0 as f64 / MILLI as f64
    }

    /// The sum, or `None` when it overflows.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

impl Add for Work {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Work {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.base_units().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_never_understates() {
        for units in [0.0, 0.0004, 1.0, 302.4, 4_705.600_1, 1e12] {
            let work = Work::from_base_units(units).base_units();
            assert!(work >= units && work <= units + 1.0 / MILLI as f64, "{units} became {work}");
        }
        assert_eq!(Work::from_base_units(-1.0), Work::ZERO);
    }
}
