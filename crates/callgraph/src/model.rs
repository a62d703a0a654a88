//! A call graph as plain data: what a simulation of the services is built from, and what its file holds.

use crate::Counts;
use serde::{Deserialize, Serialize};

/// Services that call each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallGraph {
    /// In alphabetical order.
    pub services: Vec<Service>,
    /// By service and operation; [`Call`] refers to places in this list.
    pub operations: Vec<Operation>,
    /// Where requests come in.
    pub entry: Entry,
    /// What was odd.
    pub counts: Counts,
}

/// A service over the observed time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Spans in progress on average (Little: their durations over the observed time).
    pub in_progress: f64,
    /// Spans that work themselves, on average: self times over the observed time. As many workers are busy, if
    /// self time is work.
    pub busy: f64,
}

/// An operation of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Place in [`CallGraph::services`].
    pub service: usize,
    /// Its name.
    pub name: String,
    /// Whether it is a caller's view of a call, whose self time is network and queue instead of work.
    pub is_client: bool,
    /// Durations without the children that were waited for.
    pub own: TimeLaw,
    /// Whole durations.
    pub duration: TimeLaw,
    /// The part of all end-to-end latency that its self time on the critical path makes up.
    pub critical_share: f64,
    /// What it calls, the most frequent first; ties in the order of patterns. Shares add up to 1 with
    /// [`Self::other_patterns`].
    pub patterns: Vec<Pattern>,
    /// The share of its spans with rarer patterns than are kept.
    pub other_patterns: f64,
}

/// A way in which an operation calls others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pattern {
    /// The part of the operation's spans that call in this way.
    pub share: f64,
    /// One after the other; the calls of a group overlap in time. Empty: it calls nobody.
    pub groups: Vec<Vec<Call>>,
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Call {
    /// Place in [`CallGraph::operations`].
    pub operation: usize,
    /// Whether the caller goes on at once.
    pub asynchronous: bool,
}

/// How requests come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Operations that are called from outside: the place in [`CallGraph::operations`] and the share of requests.
    pub operations: Vec<(usize, f64)>,
    /// Requests per second between the first and the last; 0 with fewer than two.
    pub rate_per_s: f64,
    /// Times between arrivals.
    pub gaps: TimeLaw,
    /// Latencies end to end.
    pub latency: TimeLaw,
    /// Requests in progress on average.
    pub in_progress: f64,
    /// Requests in progress at most.
    pub in_progress_max: u64,
}

/// Measured times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TimeLaw {
    /// How many there were.
    pub count: u64,
    /// Their mean; 0 without any.
    pub mean_s: f64,
    /// Their squared coefficient of variation; 0 where the mean is.
    pub c2: f64,
    /// The shortest.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// All of them, or as many as are kept, drawn at random; ascending.
    pub sample_ns: Vec<u64>,
}
