//! What the parser of a format offers to the [`TraceReader`](super::TraceReader).

use crate::error::{TraceErrorKind, TracePosition, excerpt};
use model::Request;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A request could not be read.
pub(super) struct SourceError {
    pub(super) position: TracePosition,
    pub(super) kind: TraceErrorKind,
    /// Whether the source can continue with the next line or record.
    pub(super) is_recoverable: bool,
    /// The file in which it is, where that is not the one that was opened: a segment of a recording.
    pub(super) file: Option<PathBuf>,
}

impl SourceError {
    /// An error after which reading cannot continue.
    pub(super) fn fatal(position: TracePosition, kind: TraceErrorKind) -> Self {
        Self { position, kind, is_recoverable: false, file: None }
    }

    /// A line or record does not follow its format; the next one may.
    pub(super) fn malformed(position: TracePosition, expected: &'static str, found: &[u8]) -> Self {
        let kind = TraceErrorKind::Malformed { expected, found: excerpt(found) };
        Self { position, kind, is_recoverable: true, file: None }
    }
}

/// A stream of requests, in the order of the file and with times since the file's own origin.
pub(super) trait TraceSource: Send {
    /// The next request, `None` at the end.
    fn next(&mut self) -> Result<Option<Request>, SourceError>;

    /// Where the last request was found.
    fn position(&self) -> TracePosition;

    /// How many records so far were neither reads nor writes.
    fn ignored(&self) -> u64;

    /// The requests of each workload or client so far; `None` where the format does not tell them apart.
    fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        None
    }

    /// What the reader of the file should know in the end, a sentence each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The share of the input that was read, from 0 to 1, if the source itself knows it.
    fn fraction(&self) -> Option<f64> {
        None
    }
}
