//! A trace as Jaeger exports it: spans, and processes that name the services.

use super::ids::{canonical_of_jaeger, is_absent};
use super::record::kind_by_name;
use crate::{Span, SpanKind};
use serde_json::Value;
use units::Nanos;

/// Passes the spans of a trace to `take`, or the defects of unreadable ones.
pub(super) fn spans(trace: &Value, take: &mut dyn FnMut(Result<Span, String>)) {
    match trace["spans"].as_array() {
        Some(spans) => spans.iter().for_each(|value| take(span(value, trace))),
        None => take(Err("expected a trace with a list \"spans\"".to_owned())),
    }
}

fn span(value: &Value, trace: &Value) -> Result<Span, String> {
    let id = text(value, "spanID")?;
    let process = &trace["processes"][value["processID"].as_str().unwrap_or_default()];
    let process = if process.is_null() { &value["process"] } else { process };
    let service = process["serviceName"]
        .as_str()
        .ok_or_else(|| format!("span {id}: expected a process with a serviceName"))?;
    let trace_id = text(value, "traceID")?;
    let (parent, follows) = parent(value, trace_id);
    let own = canonical_of_jaeger(id);
    Ok(Span {
        trace: canonical_of_jaeger(trace_id),
        // Some exporters name a root as its own parent.
        parent: parent.filter(|parent| *parent != own),
        id: own,
        service: service.into(),
        operation: text(value, "operationName")?.into(),
        kind: kind(value),
        follows,
        start: time(value, id, "startTime")?,
        duration: time(value, id, "duration")?,
    })
}

/// A time of a span, which Jaeger gives in microseconds.
fn time(value: &Value, id: &str, name: &str) -> Result<Nanos, String> {
    let time = value[name].as_u64().and_then(|us| us.checked_mul(1000));
    time.map(Nanos).ok_or_else(|| format!("span {id}: expected {name} in microseconds"))
}

/// Returns the parent, by the first reference within the trace to a caller, else to any span, and true if
/// it continues without the span. Old exports have `parentSpanID` instead.
fn parent(value: &Value, trace: &str) -> (Option<Box<str>>, bool) {
    let references = value["references"].as_array().map_or(&[][..], Vec::as_slice);
    let trace = canonical_of_jaeger(trace);
    let is_within =
        |reference: &&Value| reference["traceID"].as_str().is_none_or(|id| canonical_of_jaeger(id) == trace);
    let follows = |reference: &&Value| reference["refType"] == "FOLLOWS_FROM";
    let mut candidates = references.iter().filter(is_within);
    // A span that continues another one may name its caller, too.
    let caller = candidates.clone().find(|reference| !follows(reference)).or_else(|| candidates.next());
    match caller {
        Some(reference) => (parent_id(&reference["spanID"]), follows(&reference)),
        None => (parent_id(&value["parentSpanID"]), false),
    }
}

fn parent_id(id: &Value) -> Option<Box<str>> {
    let id = id.as_str().filter(|id| !is_absent(id)).map(canonical_of_jaeger)?;
    (*id != *"0").then_some(id)
}

fn kind(value: &Value) -> SpanKind {
    let tags = value["tags"].as_array().map_or(&[][..], Vec::as_slice);
    let tag = tags.iter().find(|tag| tag["key"] == "span.kind");
    tag.and_then(|tag| kind_by_name(tag["value"].as_str()?)).unwrap_or_default()
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("expected a span with a text \"{name}\""))
}
