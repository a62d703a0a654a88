//! Parts shared by the readers of all formats: records with their line, and the destination of spans.

use super::error::BadRecords;
use crate::{Span, SpanKind};
use std::io;
use units::Nanos;

/// A record that cannot be read: its line, and what was expected there.
#[derive(Debug)]
pub(super) struct RecordError {
    pub(super) line: u64,
    pub(super) message: String,
}

impl RecordError {
    pub(super) fn expected(line: u64, what: &str, found: &str) -> Self {
        Self { line, message: format!("expected {what}, found '{found}'") }
    }

    pub(super) fn io(line: u64, error: &io::Error) -> Self {
        Self { line, message: format!("cannot be read: {error}") }
    }
}

/// Destination of spans and of unreadable records.
pub(super) struct SpanSink<'a> {
    pub(super) span: &'a mut dyn FnMut(Span),
    pub(super) bad_records: BadRecords,
    /// Records that were left out so far.
    pub(super) unreadable: u64,
}

impl SpanSink<'_> {
    /// Passes a span on, or counts a record that cannot be read.
    ///
    /// # Errors
    /// When a record cannot be read and this is fatal.
    pub(super) fn take(&mut self, record: Result<Span, RecordError>) -> Result<(), RecordError> {
        match record {
            Ok(span) => (self.span)(span),
            Err(error) if self.bad_records == BadRecords::Fatal => return Err(error),
            Err(_) => self.unreadable += 1,
        }
        Ok(())
    }
}

/// A whole number of units of `unit_ns` nanoseconds each.
pub(super) fn parse_time(text: &str, unit_ns: u64, line: u64, what: &str) -> Result<Nanos, RecordError> {
    let value = text.trim().parse::<u64>().ok().and_then(|value| value.checked_mul(unit_ns));
    value.map(Nanos).ok_or_else(|| RecordError::expected(line, what, text))
}

/// The kind of a span by its name, in upper or lower case, with or without the prefix of OpenTelemetry.
pub(super) fn kind_by_name(name: &str) -> Option<SpanKind> {
    Some(match name.to_ascii_lowercase().trim_start_matches("span_kind_") {
        "" | "internal" | "unspecified" => SpanKind::Internal,
        "server" => SpanKind::Server,
        "client" => SpanKind::Client,
        "producer" => SpanKind::Producer,
        "consumer" => SpanKind::Consumer,
        _ => return None,
    })
}
