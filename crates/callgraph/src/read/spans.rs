//! Span CSV.

use super::{Sink, Wrong, csv, time};
use crate::{Kind, Span};
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

pub(super) fn read(from: impl BufRead, sink: &mut Sink<'_>) -> Result<(), Wrong> {
    csv::records(from, COLUMNS, |line, fields| sink.take(fields.and_then(|fields| span(line, fields))))
}

fn span(line: u64, fields: [&str; 8]) -> Result<Span, Wrong> {
    let [trace, id, parent, service, operation, kind, start, duration] = fields;
    for (name, value) in [("trace_id", trace), ("span_id", id), ("service", service)] {
        if value.is_empty() {
            return Err(Wrong::expected(line, &format!("a {name}"), value));
        }
    }
    Ok(Span {
        trace: trace.into(),
        id: id.into(),
        parent: (!parent.is_empty()).then(|| parent.into()),
        service: service.into(),
        operation: operation.into(),
        kind: kind_of(kind).ok_or_else(|| {
            Wrong::expected(line, "internal, server, client, producer, consumer or nothing", kind)
        })?,
        follows: false,
        start: time(start, 1000, line, "a start in microseconds")?,
        duration: time(duration, 1000, line, "a duration in microseconds")?,
    })
}

/// By name, however it is written.
pub(super) fn kind_of(name: &str) -> Option<Kind> {
    Some(match name.to_ascii_lowercase().trim_start_matches("span_kind_") {
        "" | "internal" | "unspecified" => Kind::Internal,
        "server" => Kind::Server,
        "client" => Kind::Client,
        "producer" => Kind::Producer,
        "consumer" => Kind::Consumer,
        _ => return None,
    })
}
