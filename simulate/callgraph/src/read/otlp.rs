//! The spans of one resource, in the JSON form of the OpenTelemetry protocol.

use super::ids::{canonical, is_absent};
use super::record::kind_by_name;
use crate::{Span, SpanKind};
use serde_json::Value;
use units::Nanos;

/// Passes the spans of a resource to `take`, or the defects of unreadable ones.
pub(super) fn spans(resource: &Value, take: &mut dyn FnMut(Result<Span, String>)) {
    let service = service(&resource["resource"]);
    // Named instrumentationLibrarySpans before version 0.19 of the protocol.
    let scopes =
        ["scopeSpans", "instrumentationLibrarySpans"].iter().find_map(|name| resource[*name].as_array());
    // Writers of this form leave empty lists out.
    let Some(scopes) = scopes else {
        if !resource.is_object() {
            take(Err("expected a resource with a list \"scopeSpans\"".to_owned()));
        }
        return;
    };
    for scope in scopes {
        match scope["spans"].as_array() {
            Some(spans) => spans.iter().for_each(|value| take(span(value, service))),
            None if scope.is_object() => {}
            None => take(Err("expected a scope with a list \"spans\"".to_owned())),
        }
    }
}

fn service(resource: &Value) -> Option<&str> {
    let attributes = resource["attributes"].as_array()?;
    let name = attributes.iter().find(|attribute| attribute["key"] == "service.name")?;
    name["value"]["stringValue"].as_str()
}

fn span(value: &Value, service: Option<&str>) -> Result<Span, String> {
    let id = text(value, "spanId")?;
    let start = time(value, id, "startTimeUnixNano")?;
    let end = time(value, id, "endTimeUnixNano")?;
    if end < start {
        return Err(format!("span {id}: expected an end that is not before the start"));
    }
    Ok(Span {
        trace: canonical(text(value, "traceId")?),
        id: canonical(id),
        parent: value["parentSpanId"].as_str().filter(|id| !is_absent(id)).map(canonical),
        service: service.unwrap_or("unknown").into(),
        operation: text(value, "name")?.into(),
        kind: kind(&value["kind"]),
        follows: false,
        start,
        duration: end - start,
    })
}

/// A time of a span, nanoseconds. 64-bit integers are texts in this form; some writers use numbers.
fn time(value: &Value, id: &str, name: &str) -> Result<Nanos, String> {
    let value = &value[name];
    let ns = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    ns.map(Nanos).ok_or_else(|| format!("span {id}: expected {name} in nanoseconds"))
}

/// The kind of a span, which is given by number or by name.
fn kind(value: &Value) -> SpanKind {
    match value.as_u64() {
        Some(2) => SpanKind::Server,
        Some(3) => SpanKind::Client,
        Some(4) => SpanKind::Producer,
        Some(5) => SpanKind::Consumer,
        _ => value.as_str().and_then(kind_by_name).unwrap_or_default(),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value[name].as_str().ok_or_else(|| format!("expected a span with a text \"{name}\""))
}
