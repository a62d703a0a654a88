//! The SLOs of classes by name, as in a policy, and the order of deadlines derived from them.

use crate::slo::{RequestSlo, SloError};
use crate::tag::TagOrder;
use std::collections::BTreeMap;
use std::time::Duration;

/// SLOs of a system's classes of requests, by name; at least one.
///
/// The classes of a policy are the workloads that it admits: `ClassSlos::new(policy.slo_latencies())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSlos {
    by_name: BTreeMap<String, RequestSlo>,
    shortest: RequestSlo,
    longest: RequestSlo,
}

impl ClassSlos {
    /// Creates the SLOs of these classes.
    ///
    /// # Errors
    /// Without a class, for a repeated name, and for an SLO of zero or more than a day.
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

    /// Returns the SLO of the class with this name.
    ///
    /// # Errors
    /// [`SloError::Unknown`] with the known names.
    pub fn of(&self, name: &str) -> Result<RequestSlo, SloError> {
        self.by_name.get(name).copied().ok_or_else(|| SloError::Unknown {
            name: name.to_owned(),
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// Returns the longest SLO of all classes.
    pub fn longest(&self) -> RequestSlo {
        self.longest
    }

    /// Returns the order by earliest deadline, in which requests without a deadline have the longest SLO
    /// of all classes. Assume that every deadline was derived from an SLO of these classes, and every
    /// request has the tag of its entry. Then no request is overtaken by one that enters the system more
    /// than [`overtaken_for`](Self::overtaken_for) after it.
    pub fn order(&self) -> TagOrder {
        TagOrder::Deadline { default_slo: self.longest }
    }

    /// Returns the time after a request's start during which requests with earlier deadlines can still
    /// enter the system: the longest SLO minus the shortest. The errors of the clocks of several entry
    /// points add to it.
    pub fn overtaken_for(&self) -> Duration {
        Duration::from_nanos(self.longest.ns() - self.shortest.ns())
    }
}
