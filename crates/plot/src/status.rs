/// What a value means, shown by a mark and a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As wanted.
    Good,
    /// Close to a limit, or uncertain.
    Warn,
    /// Not as wanted.
    Bad,
}

impl Status {
    /// The class that colours it.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// The mark that says the same without colour.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Warn => "!",
            Self::Bad => "✕",
        }
    }
}
