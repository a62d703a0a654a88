//! Why a text is no policy that can be enforced.

use std::fmt;

/// What the field `format` of a policy file says; readers refuse others.
pub const POLICY_FORMAT: &str = "tailwright-policy-1";

/// How far the two forms of a number may be apart, as a fraction of the larger one: people write three digits.
pub(super) const ROUNDING: f64 = 0.01;

/// Why a text is no sound policy.
#[derive(Debug)]
pub enum PolicyError {
    /// The text is not JSON with the fields of a policy.
    NotAPolicy(serde_json::Error),
    /// The format is this one, not [`POLICY_FORMAT`].
    UnknownFormat(String),
    /// Two servers have this name.
    RepeatedServer(String),
    /// Two workloads have this name.
    RepeatedWorkload(String),
    /// A field has a value that nobody can enforce or promise.
    ImpossibleValue {
        /// The field and what it belongs to, such as `workload 'mail': limits[0] at storage: rate`.
        place: String,
        /// The value that was found.
        found: String,
        /// What was expected in its place.
        expected: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPolicy(error) => write!(f, "not a policy: {error}"),
            Self::UnknownFormat(format) => {
                write!(f, "the format is '{format}', expected '{POLICY_FORMAT}'")
            }
            Self::RepeatedServer(name) => write!(f, "server '{name}' is given twice"),
            Self::RepeatedWorkload(name) => write!(f, "workload '{name}' is given twice"),
            Self::ImpossibleValue { place, found, expected } => {
                write!(f, "{place} is {found}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotAPolicy(error) => Some(error),
            _ => None,
        }
    }
}

impl PolicyError {
    /// A field of its owner has a value that was not expected.
    pub(super) fn impossible(
        owner: &str,
        field: &str,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::ImpossibleValue {
            place: format!("{owner}: {field}"),
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}
