//! Parameters outside their ranges.

use std::fmt;

/// A parameter is out of its range; the message says which one and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterError(String);

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParameterError {}

impl ParameterError {
    /// Returns `Ok` when the condition `holds`.
    ///
    /// # Errors
    /// Otherwise, with the message that `expected` makes.
    pub fn require(holds: bool, expected: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(expected())) }
    }

    /// Returns `Ok` when `value` is positive and finite.
    ///
    /// # Errors
    /// Otherwise, with the name of the parameter.
    pub fn positive(name: &str, value: f64) -> Result<(), Self> {
        Self::require(value > 0.0 && value.is_finite(), || {
            format!("expected a positive {name}, found {value}")
        })
    }
}
