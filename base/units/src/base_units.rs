//! Quantities as numbers in base units, as machine output has them.

use crate::bytes::{ByteRate, Bytes};
use crate::percentile::Percentile;
use crate::time::{Nanos, Seconds};
use serde::{Serialize, Serializer};

/// A quantity that documents give as a number in its base unit, which the name of the field states.
pub trait BaseUnits {
    /// Type of the number.
    type Number: Serialize;
    /// Returns the quantity in seconds, bytes, bytes per second or percent.
    fn in_base_units(&self) -> Self::Number;
}

/// Serialises a quantity as a number: `#[serde(serialize_with = "units::in_base_units")]`.
pub fn in_base_units<T: BaseUnits, S: Serializer>(quantity: &T, serializer: S) -> Result<S::Ok, S::Error> {
    quantity.in_base_units().serialize(serializer)
}

impl BaseUnits for Nanos {
    type Number = f64;
    fn in_base_units(&self) -> f64 {
        self.as_secs()
    }
}

impl BaseUnits for Seconds {
    type Number = f64;
    fn in_base_units(&self) -> f64 {
        self.0
    }
}

impl BaseUnits for Bytes {
    type Number = u64;
    fn in_base_units(&self) -> u64 {
        self.0
    }
}

impl BaseUnits for ByteRate {
    type Number = f64;
    fn in_base_units(&self) -> f64 {
        self.bytes_per_sec()
    }
}

impl BaseUnits for Percentile {
    type Number = f64;
    fn in_base_units(&self) -> f64 {
        self.percent()
    }
}

impl<T: BaseUnits> BaseUnits for Option<T> {
    type Number = Option<T::Number>;
    fn in_base_units(&self) -> Self::Number {
        self.as_ref().map(BaseUnits::in_base_units)
    }
}
