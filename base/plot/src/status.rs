//! Status of a value: good, uncertain or bad.

/// Status of a value, shown by a mark and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The value is as wanted.
    Good,
    /// The value is close to a limit or uncertain.
    Warn,
    /// The value is not as wanted.
    Bad,
}

impl Status {
    /// Returns the class of the page's styles that gives the colour.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// Returns the text mark that corresponds to the colour.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Warn => "!",
            Self::Bad => "✕",
        }
    }
}
