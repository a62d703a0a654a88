//! The call-graph table of Alibaba's published microservice traces (cluster-trace-microservices-v2021, -v2022).
//!
//! A row is a call of `dm` by `um`. `rpcid` is its path: 0.1.2 is called by 0.1. Times are milliseconds.
//! `rt` of rpc and http is recorded by both sides: positive by the caller, negative by the callee; other
//! calls have one row. Callers do not wait for calls by message queue. A positive row of rpc or http is a
//! span of the caller's view, every other row one of the callee; it starts at its timestamp. A callee
//! without a row has no span, and its time is in the caller's view. A callee's rt of 0 is
//! indistinguishable from a caller's: beside another positive row it counts as a duplicate.
//!
//! Parents are known by path alone, so a path whose parent is not in the table is a missing parent; a path without
//! a dot is an entry. A service that is not named, `(?)`, `NAN` or `UNKNOWN`, is called `unknown`.

use super::csv;
use super::record::{RecordError, SpanSink, parse_time};
use crate::{Span, SpanKind};
use std::io::BufRead;
use units::Nanos;

const COLUMNS: [&[&str]; 8] = [
    &["traceid"],
    &["timestamp"],
    &["rpcid", "rpc_id"],
    &["um"],
    &["rpctype"],
    &["dm"],
    &["interface"],
    &["rt"],
];
const MILLISECOND: u64 = 1_000_000;

pub(super) fn read(from: impl BufRead, sink: &mut SpanSink<'_>) -> Result<(), RecordError> {
    csv::records(from, COLUMNS, |line, fields| sink.take(fields.and_then(|fields| span(line, fields))))
}

fn span(line: u64, fields: [&str; 8]) -> Result<Span, RecordError> {
    let [trace, timestamp, id, um, kind, dm, interface, rt] = fields;
    if trace.is_empty() || id.is_empty() {
        return Err(RecordError::expected(line, "a traceid and an rpcid", &format!("{trace},{id}")));
    }
    let milliseconds = rt.parse::<f64>().ok().filter(|rt| rt.is_finite());
    let milliseconds =
        milliseconds.ok_or_else(|| RecordError::expected(line, "an rt in milliseconds", rt))?;
    let kind = match kind.to_ascii_lowercase().as_str() {
        "rpc" | "http" if milliseconds >= 0.0 => SpanKind::Client,
        "mq" => SpanKind::Consumer,
        _ => SpanKind::Server,
    };
    let duration = Nanos::from_secs(milliseconds.abs() / 1e3);
    let service = if kind == SpanKind::Client { um } else { dm };
    Ok(Span {
        trace: trace.into(),
        id: id.into(),
        parent: id.rsplit_once('.').map(|(parent, _)| parent.into()),
        service: service_name(service).into(),
        operation: if interface.is_empty() { service_name(dm).into() } else { interface.into() },
        kind,
        follows: false,
        start: parse_time(timestamp, MILLISECOND, line, "a timestamp in milliseconds")?,
        duration: duration.ok_or_else(|| RecordError::expected(line, "an rt in milliseconds", rt))?,
    })
}

/// The name of a service; those that the table does not name are called `unknown`.
fn service_name(service: &str) -> &str {
    match service {
        "" | "(?)" | "NAN" | "nan" | "UNKNOWN" => "unknown",
        name => name,
    }
}
