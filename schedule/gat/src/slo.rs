//! SLOs of requests: times in nanoseconds within a valid range, and errors for others.

use std::fmt;
use std::time::Duration;

/// The time from a request's start to its deadline: above zero, and at most [`RequestSlo::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestSlo {
    ns: u64,
}

impl RequestSlo {
    /// A day. A longer SLO is probably a wrong unit, and would put a request behind all others.
    pub const MAX: Self = Self { ns: 86_400_000_000_000 };

    /// Creates an SLO of this length.
    ///
    /// # Errors
    /// [`SloError::OutOfRange`] for zero and for more than a day.
    pub fn new(length: Duration) -> Result<Self, SloError> {
        let ns = u64::try_from(length.as_nanos()).ok().filter(|ns| (1..=Self::MAX.ns).contains(ns));
        ns.map(|ns| Self { ns }).ok_or(SloError::OutOfRange { class: None, length })
    }

    /// Returns its length in nanoseconds.
    pub fn ns(self) -> u64 {
        self.ns
    }
}

/// An SLO, or the name of a class, that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SloError {
    /// The SLO is zero or more than a day.
    OutOfRange {
        /// Class with this SLO, if there are several.
        class: Option<String>,
        /// Given length.
        length: Duration,
    },
    /// No class has this name.
    Unknown {
        /// Requested name.
        name: String,
        /// Known names, in their order.
        known: Vec<String>,
    },
    /// Two classes have this name.
    Repeated(String),
    /// There are no classes.
    NoClass,
}

impl fmt::Display for SloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { class, length } => {
                let of = class.as_ref().map(|name| format!("class '{name}': ")).unwrap_or_default();
                write!(f, "{of}an SLO of {length:?}; expected more than zero, and at most a day")
            }
            Self::Unknown { name, known } => {
                write!(f, "no class has the name '{name}'; with an SLO there are: {}", known.join(", "))
            }
            Self::Repeated(name) => write!(f, "class '{name}' is given twice; expected each name once"),
            Self::NoClass => f.write_str("there is no class with an SLO; expected at least one"),
        }
    }
}

impl std::error::Error for SloError {}
