//! What was found odd, and what became of it.

use serde::{Deserialize, Serialize};

/// How often each rule applied. Nothing that is counted here is silently lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Traces, or fragments of them.
    pub traces: u64,
    /// Spans in them.
    pub spans: u64,
    /// Records that could not be read, in lenient reading.
    pub unreadable: u64,
    /// Traces without an entry span: their self times count, their latency and calls at the entry do not.
    pub without_entry: u64,
    /// Spans whose parent is not in the trace: further roots.
    pub missing_parents: u64,
    /// Spans in a circle of parents: cut at the one that starts first.
    pub circles: u64,
    /// Second spans of one id and kind: left out.
    pub duplicates: u64,
    /// Children that start before a parent of another service: moved to its start with all that is below.
    pub skewed: u64,
    /// Children that start before their parent of the same service: what is outside does not count for the parent.
    pub early: u64,
    /// Children that end after their parent.
    pub outliving: u64,
    /// Children that their parent does not wait for.
    pub asynchronous: u64,
    /// Further calls of an operation by one span: retries, or loops.
    pub repeated: u64,
    /// Different call patterns beyond those that are kept, by how many spans have them.
    pub other_patterns: u64,
}
