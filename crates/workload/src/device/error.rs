use std::fmt;

/// A device profile that cannot be used: which field or line, and what was expected there.
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
