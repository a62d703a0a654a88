//! Irregularities of traces, counted by the rule that handles them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of times that each rule applied. Every irregularity is counted, none is dropped silently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleCounts {
    /// Traces that were read, or fragments of them.
    pub traces: u64,
    /// Spans in these traces.
    pub spans: u64,
    /// Spans without times, and records that could not be read, in lenient reading.
    pub unreadable: u64,
    /// Traces without an entry span, which are left out: fragments of requests.
    pub without_entry: u64,
    /// Spans whose parent is not in the trace: further roots.
    pub missing_parents: u64,
    /// Cycles of parents: cut at the span that starts first.
    #[serde(rename = "circles")]
    pub cycles: u64,
    /// Second spans of one id and kind: left out.
    pub duplicates: u64,
    /// Children that start before a parent of another service: moved to its start with all that is below.
    pub skewed: u64,
    /// Children that start before their parent of the same service: their time outside does not count for the parent.
    pub early: u64,
    /// Children that end after their parent.
    pub outliving: u64,
    /// Children that their parent does not wait for.
    pub asynchronous: u64,
    /// Further calls of an operation by one span: retries, or loops.
    pub repeated: u64,
    /// Spans with call patterns beyond the maximum number of different patterns that is kept.
    pub other_patterns: u64,
}
