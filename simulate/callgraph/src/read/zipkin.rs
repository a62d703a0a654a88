//! A span as Zipkin's API gives it (version 2 of its JSON).

use super::ids::{canonical, is_absent};
use super::record::kind_by_name;
use crate::Span;
use serde_json::Value;
use units::Nanos;

/// Passes a span, or the spans of a trace, to `take`, or the defects of unreadable ones. Returns the number of
/// spans without a timestamp or a duration, which are left out: Zipkin has those of requests that it saw in
/// part.
pub(super) fn spans(value: &Value, take: &mut dyn FnMut(Result<Span, String>)) -> u64 {
    let mut untimed = 0;
    let mut take_one = |value: &Value| {
        let is_untimed = value["timestamp"].is_null() || value["duration"].is_null();
        if is_untimed && value["id"].is_string() && !is_version_1(value) {
            untimed += 1;
        } else {
            take(span(value));
        }
    };
    match value.as_array() {
        Some(trace) => trace.iter().for_each(take_one),
        None => take_one(value),
    }
    untimed
}

/// Returns true for a span of version 1, whose times are those of its annotations.
fn is_version_1(value: &Value) -> bool {
    value["localEndpoint"].is_null() && !value["annotations"][0]["endpoint"].is_null()
}

fn span(value: &Value) -> Result<Span, String> {
    let id = text(value, "id")?;
    if is_version_1(value) {
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
