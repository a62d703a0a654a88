//! CSV with one span per row: the simplest format, for spans that come from elsewhere.

use super::csv;
use super::ids::is_absent;
use super::record::{RecordError, SpanSink, kind_by_name, parse_time};
use crate::Span;
use std::io::BufRead;

const COLUMNS: [&[&str]; 8] = [
    &["trace_id"],
    &["span_id"],
    &["parent_id"],
    &["service"],
    &["operation"],
    &["kind", ""],
    &["start_us"],
    &["duration_us"],
];

pub(super) fn read(from: impl BufRead, sink: &mut SpanSink<'_>) -> Result<(), RecordError> {
    csv::records(from, COLUMNS, |line, fields| sink.take(fields.and_then(|fields| span(line, fields))))
}

fn span(line: u64, fields: [&str; 8]) -> Result<Span, RecordError> {
    let [trace, id, parent, service, operation, kind, start, duration] = fields;
    for (name, value) in [("trace_id", trace), ("span_id", id), ("service", service)] {
        if value.is_empty() {
            return Err(RecordError::expected(line, &format!("a {name}"), value));
        }
    }
    Ok(Span {
        trace: trace.into(),
        id: id.into(),
        parent: (!is_absent(parent)).then(|| parent.into()),
        service: service.into(),
        operation: operation.into(),
        kind: kind_by_name(kind).ok_or_else(|| {
            RecordError::expected(line, "internal, server, client, producer, consumer or nothing", kind)
        })?,
        follows: false,
        start: parse_time(start, 1000, line, "a start in microseconds")?,
        duration: parse_time(duration, 1000, line, "a duration in microseconds")?,
    })
}
