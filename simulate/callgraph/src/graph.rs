//! A call graph as plain data: the input of a simulation of the services, and the contents of its file.

use crate::rule_counts::RuleCounts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Services that call each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallGraph {
    /// The services in alphabetical order.
    pub services: Vec<ObservedService>,
    /// The operations, sorted by service and name; [`OperationCall`] refers to indices of this list.
    pub operations: Vec<ServiceOperation>,
    /// The requests as they enter and leave the system.
    pub entry: GraphEntry,
    /// Number of times that each rule about irregular traces applied.
    pub counts: RuleCounts,
}

/// A service over the observed time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedService {
    /// The name of the service.
    pub name: String,
    /// Spans in progress on average (Little: their durations over the observed time).
    pub in_progress: f64,
    /// Spans that work themselves, on average: self times over the observed time. If self time is work, as many workers
    /// are busy.
    pub busy: f64,
}

/// An operation of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceOperation {
    /// Index of the service in [`CallGraph::services`].
    pub service: usize,
    /// The name of the operation.
    pub name: String,
    /// True for a caller's view of a call, whose self time is network and queue instead of work.
    pub is_client: bool,
    /// Self times of its spans: durations without the children that were waited for.
    pub own: MeasuredTimes,
    /// Durations of its spans from start to end.
    pub duration: MeasuredTimes,
    /// The part of all end-to-end latency that its self time on the critical path makes up.
    pub critical_share: f64,
    /// Patterns of its calls, the most frequent first; ties in the order of patterns. Shares add up to 1
    /// with [`Self::other_patterns`].
    pub patterns: Vec<CallPattern>,
    /// The share of its spans with rarer patterns than are kept.
    pub other_patterns: f64,
}

/// A way in which an operation calls others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallPattern {
    /// The part of the operation's spans that call in this way.
    pub share: f64,
    /// Groups of calls, one after the other; the calls of a group overlap in time. Empty where it calls no others.
    pub groups: Vec<Vec<OperationCall>>,
}

/// A call of another operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationCall {
    /// Index of the called operation in [`CallGraph::operations`].
    pub operation: usize,
    /// True if the caller continues without waiting.
    pub asynchronous: bool,
}

/// The requests as they enter and leave the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphEntry {
    /// Operations that are called from outside: the index in [`CallGraph::operations`] and the share of requests.
    pub operations: Vec<(usize, f64)>,
    /// Requests per second between the first and the last; 0 with fewer than two.
    pub rate_per_s: f64,
    /// The times between one arrival and the next.
    pub gaps: MeasuredTimes,
    /// The latencies of requests end to end.
    pub latency: MeasuredTimes,
    /// Requests in progress on average.
    pub in_progress: f64,
    /// Requests in progress at most.
    pub in_progress_max: u64,
}

/// The distribution of measured times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeasuredTimes {
    /// The number of measured times.
    pub count: u64,
    /// Their mean; 0 without any.
    pub mean_s: f64,
    /// Their squared coefficient of variation; 0 where the mean is.
    pub c2: f64,
    /// The shortest time, nanoseconds.
    pub least_ns: u64,
    /// The longest time, nanoseconds.
    pub most_ns: u64,
    /// All times, or as many as are kept, drawn at random; ascending.
    pub sample_ns: Vec<u64>,
}
