//! Tag of a request, and the results of reading one.

use crate::slo::RequestSlo;
use std::fmt;

/// Tag that a request carries from the edge to every service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestTag {
    /// Instant of entry into the system, nanoseconds of `CLOCK_REALTIME`, or a logical instant
    /// ([`EdgeClock::Logical`](crate::EdgeClock::Logical)). Requests are served in this order.
    pub start_ns: u64,
    /// Deadline of the answer, nanoseconds of the same clock; never zero.
    pub deadline_ns: Option<u64>,
}

/// Order of requests: the smallest key goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagOrder {
    /// By start: oldest first.
    #[default]
    Start,
    /// By deadline: earliest first. A request without one is due `default_slo` after its start.
    Deadline {
        /// SLO of requests without a deadline.
        default_slo: RequestSlo,
    },
}

impl RequestTag {
    /// Creates the tag of a request that entered at this instant, without a deadline.
    pub fn starting_at(start_ns: u64) -> Self {
        Self { start_ns, deadline_ns: None }
    }

    /// Sets the deadline to `slo` after the start.
    #[must_use]
    pub fn with_slo(self, slo: RequestSlo) -> Self {
        Self { deadline_ns: Some(self.start_ns.saturating_add(slo.ns())), ..self }
    }

    /// Returns the time since the start at `now_ns`, nanoseconds; zero if clocks disagree about the order.
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.start_ns)
    }

    /// Returns the key by which a scheduler orders the request, nanoseconds of the tag's clock; the smallest
    /// goes first. All requests of a queue must have keys of one order.
    pub fn key(&self, order: TagOrder) -> u64 {
        match order {
            TagOrder::Start => self.start_ns,
            TagOrder::Deadline { default_slo } => {
                self.deadline_ns.unwrap_or(self.start_ns.saturating_add(default_slo.ns()))
            }
        }
    }

    /// Returns the tag of work on behalf of both: the earlier start and the earlier deadline.
    ///
    /// Calls of one request and the joining of their answers keep its tag, since this is idempotent,
    /// commutative and associative; a retry keeps the first start.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        let earlier = match (self.deadline_ns, other.deadline_ns) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { start_ns: self.start_ns.min(other.start_ns), deadline_ns: earlier }
    }
}

/// Result of reading a request's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedTag {
    /// One well-formed tag; [`InnerTier`](crate::InnerTier) checks that its instants are plausible.
    Tagged(RequestTag),
    /// No member or header with our name.
    Untagged,
    /// A member or header with our name is not a tag.
    Malformed(TagFault),
}

/// Reason why a member or header is not a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagFault {
    /// A value is not one to twenty decimal digits: empty, signed, a fraction, bytes that are no text.
    NotANumber,
    /// A value is above 2⁶⁴ − 1, or a deadline is zero.
    OutOfRange,
    /// Two members of one name have different values.
    Conflict,
    /// There is a deadline and no start.
    DeadlineAlone,
}

impl fmt::Display for TagFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotANumber => {
                "a value is not a number of nanoseconds; expected one to twenty decimal digits"
            }
            Self::OutOfRange => {
                "a value is out of range; expected nanoseconds below 2^64, and deadlines above 0"
            }
            Self::Conflict => "two members of one name differ; expected one",
            Self::DeadlineAlone => "there is a deadline without a start; expected both",
        })
    }
}
