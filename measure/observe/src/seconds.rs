//! Nanoseconds as seconds, as documents have them.

use serde::{Serialize, Serializer};

/// A number of nanoseconds that documents give in seconds.
pub trait NanosecondCount {
    /// Type of the number of seconds.
    type Seconds: Serialize;
    /// Returns the time in seconds.
    fn in_seconds(&self) -> Self::Seconds;
}

/// Serialises nanoseconds as seconds: `#[serde(serialize_with = "observe::in_seconds")]`.
pub fn in_seconds<T: NanosecondCount, S: Serializer>(
    nanoseconds: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    nanoseconds.in_seconds().serialize(serializer)
}

impl NanosecondCount for u64 {
    type Seconds = f64;
    fn in_seconds(&self) -> f64 {
        *self as f64 / 1e9
    }
}

impl NanosecondCount for f64 {
    type Seconds = f64;
    fn in_seconds(&self) -> f64 {
        self / 1e9
    }
}

impl<T: NanosecondCount> NanosecondCount for Option<T> {
    type Seconds = Option<T::Seconds>;
    fn in_seconds(&self) -> Self::Seconds {
        self.as_ref().map(NanosecondCount::in_seconds)
    }
}
