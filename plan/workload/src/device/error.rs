//! The error of device profiles.

use std::fmt;

/// A device profile cannot be used. The message says which field or line is wrong, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError(String);

impl ProfileError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProfileError {}
