//! How long requests may take: an SLO in nanoseconds within its range, and the SLOs of classes by name, as a policy has
//! them.

use crate::tag::TagOrder;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The time from a request's start to its deadline: above zero, and at most [`RequestSlo::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestSlo {
    ns: u64,
}

impl RequestSlo {
    /// A day. What is longer is a mistake of a unit and no objective, and would put a request behind all others.
    pub const MAX: Self = Self { ns: 86_400_000_000_000 };

    /// The SLO of this length.
    ///
    /// # Errors
    /// [`SloError::OutOfRange`] for zero and for more than a day.
    pub fn new(length: Duration) -> Result<Self, SloError> {
        let ns = u64::try_from(length.as_nanos()).ok().filter(|ns| (1..=Self::MAX.ns).contains(ns));
        ns.map(|ns| Self { ns }).ok_or(SloError::OutOfRange { class: None, length })
    }

    /// Its length in nanoseconds.
    pub fn ns(self) -> u64 {
        self.ns
    }
}

/// The SLOs of the classes of requests that services of a system have, by name; at least one.
///
/// The classes of a policy are the workloads that it admits: `ClassSlos::new(policy.slo_latencies())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSlos {
    by_name: BTreeMap<String, RequestSlo>,
    shortest: RequestSlo,
    longest: RequestSlo,
}

impl ClassSlos {
    /// The SLOs of these classes.
    ///
    /// # Errors
    /// Without a class, with two of a name, and where an SLO is zero or more than a day.
    pub fn new<N: Into<String>>(classes: impl IntoIterator<Item = (N, Duration)>) -> Result<Self, SloError> {
        let mut by_name = BTreeMap::new();
        for (name, length) in classes {
            let name = name.into();
            let slo = RequestSlo::new(length)
                .map_err(|_| SloError::OutOfRange { class: Some(name.clone()), length })?;
            if by_name.insert(name.clone(), slo).is_some() {
                return Err(SloError::Repeated(name));
            }
        }
        let ends = by_name.values().min().zip(by_name.values().max());
        let (shortest, longest) = ends.map(|(a, b)| (*a, *b)).ok_or(SloError::NoClass)?;
        Ok(Self { by_name, shortest, longest })
    }

    /// The SLO of the class of this name.
    ///
    /// # Errors
    /// [`SloError::Unknown`] with the names that there are.
    pub fn of(&self, name: &str) -> Result<RequestSlo, SloError> {
        self.by_name.get(name).copied().ok_or_else(|| SloError::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// The longest SLO of all classes.
    pub fn longest(&self) -> RequestSlo {
        self.longest
    }

    /// The earliest deadline first, where requests without a deadline have the longest SLO of all classes: then no request is
    /// overtaken by one that enters the system more than [`overtaken_for`](Self::overtaken_for) after it.
    pub fn order(&self) -> TagOrder {
        TagOrder::Deadline { default_slo: self.longest }
    }

    /// For how long after a request's start others can enter the system whose deadlines are before its own: the longest SLO
    /// less the shortest one. The errors of the clocks of several entry points add to it.
    pub fn overtaken_for(&self) -> Duration {
        Duration::from_nanos(self.longest.ns - self.shortest.ns)
    }
}

/// An SLO, or the name of a class, that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SloError {
    /// The SLO is zero or more than a day.
    OutOfRange {
        /// The class that has it, where it is one of several.
        class: Option<String>,
        /// What was given.
        length: Duration,
    },
    /// There is no class of this name.
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are, in their order.
        known: Vec<String>,
    },
    /// Two classes have this name.
    Repeated(String),
    /// There is no class at all.
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
