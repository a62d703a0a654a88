//! The SLOs of classes by name, as a policy has them, and the order of deadlines that they give.

use crate::slo::{RequestSlo, SloError};
use crate::tag::TagOrder;
use std::collections::BTreeMap;
use std::time::Duration;

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

    /// The earliest deadline first, where requests without a deadline have the longest SLO of all classes. If every deadline
    /// was made from an SLO of these classes, and every request has the tag of its entry, no request is overtaken by one that
    /// enters the system more than [`overtaken_for`](Self::overtaken_for) after it.
    pub fn order(&self) -> TagOrder {
        TagOrder::Deadline { default_slo: self.longest }
    }

    /// For how long after a request's start others can enter the system whose deadlines are before its own: the longest SLO
    /// less the shortest one. The errors of the clocks of several entry points add to it.
    pub fn overtaken_for(&self) -> Duration {
        Duration::from_nanos(self.longest.ns() - self.shortest.ns())
    }
}
