//! A span, in the form that all formats are read into.

use units::Nanos;

/// Role of a span in a call; it decides which time counts as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SpanKind {
    /// Work of a service, or of a part of one; the kind of spans that do not give any.
    #[default]
    Internal,
    /// Work of a service for a caller.
    Server,
    /// The caller's view of a call: the time that its callee does not cover is network and queue.
    Client,
    /// Sending of a message without waiting for an answer.
    Producer,
    /// Work for a message whose sender does not wait.
    Consumer,
}

/// An operation of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace, and so the request, that it belongs to.
    pub trace: Box<str>,
    /// The id, which is unique in the trace, except that a client and a server may share one.
    pub id: Box<str>,
    /// The id of the span that it is a part of; `None` for an entry.
    pub parent: Option<Box<str>>,
    /// The service that works.
    pub service: Box<str>,
    /// The operation of the service.
    pub operation: Box<str>,
    /// The role of the span in a call.
    pub kind: SpanKind,
    /// True if the parent does not wait for it (`FOLLOWS_FROM`).
    pub follows: bool,
    /// The start, since the epoch of the file.
    pub start: Nanos,
    /// The time from start to end.
    pub duration: Nanos,
}

impl Span {
    /// Returns true if its parent continues without it.
    pub fn is_asynchronous(&self) -> bool {
        self.follows || matches!(self.kind, SpanKind::Producer | SpanKind::Consumer)
    }
}
