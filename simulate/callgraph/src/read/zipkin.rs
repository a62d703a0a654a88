//! A span as Zipkin's API gives it (version 2 of its JSON).

use super::ids::{canonical, is_absent};
use super::record::kind_by_name;
use crate::Span;
use serde_json::Value;
use units::Nanos;

/// Passes a span, or the spans of a trace, to `take`, or the defects of unreadable ones.
pub(super) fn spans(value: &Value, take: &mut dyn FnMut(Result<Span, String>)) {
    match value.as_array() {
        Some(trace) => trace.iter().for_each(|value| take(span(value))),
        None => take(span(value)),
    }
}

fn span(value: &Value) -> Result<Span, String> {
    let id = text(value, "id")?;
    if value["localEndpoint"].is_null() && !value["annotations"][0]["endpoint"].is_null() {
        return Err(format!("span {id}: expected version 2 of Zipkin's JSON, found version 1"));
    }
    let service = value["localEndpoint"]["serviceName"].as_str().filter(|name| !name.is_empty());
    let name = value["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("unknown");
    let kind = value["kind"].as_str().unwrap_or_default();
    Ok(Span {
        trace: canonical(text(value, "traceId")?),
        id: canonical(id),
        parent: value["parentId"].as_str().filter(|id| !is_absent(id)).map(canonical),
        service: service.unwrap_or("unknown").into(),
        operation: name.into(),
        kind: kind_by_name(kind).ok_or_else(|| format!("span {id}: expected a kind, found '{kind}'"))?,
        follows: false,
        start: time(value, id, "timestamp")?,
        duration: time(value, id, "duration")?,
    })
}

/// A time of a span, which Zipkin gives in microseconds.
fn time(value: &Value, id: &str, name: &str) -> Result<Nanos, String> {
    let time = value[name].as_u64().and_then(|us| us.checked_mul(1000));
    time.map(Nanos).ok_or_else(|| format!("span {id}: expected {name} in microseconds"))
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("expected a span with a text \"{name}\""))
}
