//! A span as every format has it.

use units::Nanos;

/// What a span stands for; it decides how its time is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Kind {
    /// Work of a service, or of a part of one. What says nothing of its kind is this.
    #[default]
    Internal,
    /// Work of a service for a caller.
    Server,
    /// A caller's view of a call: what its callee does not cover is network and queue.
    Client,
    /// Sends a message and does not wait.
    Producer,
    /// Works for a message that nobody waits for.
    Consumer,
}

/// An operation of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Request that it belongs to.
    pub trace: Box<str>,
    /// Unique in the trace, but for a client and a server that share one.
    pub id: Box<str>,
    /// Whose part it is; `None` for an entry.
    pub parent: Option<Box<str>>,
    /// Who works.
    pub service: Box<str>,
    /// What on.
    pub operation: Box<str>,
    /// What it stands for.
    pub kind: Kind,
    /// The parent does not wait for it (`FOLLOWS_FROM`).
    pub follows: bool,
    /// Since the epoch of the file.
    pub start: Nanos,
    /// From start to end.
    pub duration: Nanos,
}

impl Span {
    /// Whether its parent goes on without it.
    pub fn is_asynchronous(&self) -> bool {
        self.follows || matches!(self.kind, Kind::Producer | Kind::Consumer)
    }
}
