//! Interface of a format's parser for the [`TraceReader`](super::TraceReader).

use crate::error::{TraceErrorKind, TracePosition, excerpt};
use model::Request;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A request could not be read.
pub(super) struct SourceError {
    pub(super) position: TracePosition,
    pub(super) kind: TraceErrorKind,
    /// True if the source can continue with the next line or record.
    pub(super) is_recoverable: bool,
    /// File of the error, if it is not the one that was opened: a segment of a recording.
    pub(super) file: Option<PathBuf>,
}

impl SourceError {
    /// Creates an error after which reading cannot continue.
    pub(super) fn fatal(position: TracePosition, kind: TraceErrorKind) -> Self {
        Self { position, kind, is_recoverable: false, file: None }
    }

    /// Creates an error for a malformed line or record; the next one may be valid.
    pub(super) fn malformed(position: TracePosition, expected: &'static str, found: &[u8]) -> Self {
        let kind = TraceErrorKind::Malformed { expected, found: excerpt(found) };
        Self { position, kind, is_recoverable: true, file: None }
    }
}

/// A stream of requests, in the order of the file and with times since the file's own origin.
pub(super) trait TraceSource: Send {
    /// Returns the next request, `None` at the end.
    fn next(&mut self) -> Result<Option<Request>, SourceError>;

    /// Returns the position of the last request.
    fn position(&self) -> TracePosition;

    /// Returns the number of records so far that were neither reads nor writes.
    fn ignored(&self) -> u64;

    /// Returns the requests of each workload or client so far; `None` if the format does not distinguish
    /// them.
    fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        None
    }

    /// Returns final remarks on the file, a sentence each.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the share of the input read so far, from 0 to 1, if the source itself knows it.
    fn fraction(&self) -> Option<f64> {
        None
    }
}
