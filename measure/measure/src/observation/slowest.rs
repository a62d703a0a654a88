//! The slowest requests with their stages, as a trace for Perfetto and the tracing page of Chrome.

use model::OperationError;
use observe::{ObservedRequest, RequestPoint, RequestQuality, STAGE_NAMES};
use operation::files::write_result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use units::Nanos;

/// The requests with the largest T6 − T1 of those seen so far.
#[derive(Debug)]
pub(super) struct SlowestRequests {
    /// By latency and number, so that of equal ones the first stays.
    requests: BTreeMap<(u64, u64), ObservedRequest>,
    count_max: usize,
    seen: u64,
}

impl SlowestRequests {
    pub(super) fn new(count_max: usize) -> Self {
        Self { requests: BTreeMap::new(), count_max, seen: 0 }
    }

    pub(super) fn take(&mut self, request: &ObservedRequest) {
        self.requests.insert((request.latency_from_stack(), u64::MAX - self.seen), *request);
        self.seen += 1;
        if self.requests.len() > self.count_max {
            self.requests.pop_first();
        }
    }

    /// Writes the events of all, slowest first, a track for each.
    pub(super) fn write(&self, path: &Path) -> Result<(), OperationError> {
        write_result(path, &self.json(), "trace of the slowest requests")
    }

    fn json(&self) -> String {
        let slowest: Vec<&ObservedRequest> = self.requests.values().rev().collect();
        let origin = slowest.iter().map(|request| request.at(RequestPoint::Wire)).min().unwrap_or_default();
        let mut events = Vec::new();
        for (track, request) in (1..).zip(slowest) {
            events.extend(request_events(request, track, origin));
        }
        let document = ChromeTrace { display_time_unit: "ns", trace_events: events };
        serde_json::to_string(&document).expect("plain data with text keys serialises")
    }
}

/// A document of the Trace Event Format; Perfetto reads it, too.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChromeTrace {
    display_time_unit: &'static str,
    trace_events: Vec<ChromeEvent>,
}

/// A slice (`X`), or the name of a track (`M`). Times are in microseconds.
#[derive(Serialize)]
struct ChromeEvent {
    name: String,
    ph: &'static str,
    pid: u16,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    args: BTreeMap<&'static str, serde_json::Value>,
}

/// The name of the request's track, the whole request, and its stages inside.
fn request_events(request: &ObservedRequest, track: u32, origin: u64) -> Vec<ChromeEvent> {
    let latency = Nanos(request.latency_from_stack());
    let name = format!("{track}. {latency} from {}", request.peer);
    let mut events = vec![
        ChromeEvent {
            name: "thread_name".to_owned(),
            ph: "M",
            pid: request.port,
            tid: track,
            ts: None,
            dur: None,
            args: BTreeMap::from([("name", name.into())]),
        },
        ChromeEvent {
            args: details(request),
            ..slice("request", request.points[0], request.points[7], origin)
        },
    ];
    for (stage, name) in STAGE_NAMES.iter().enumerate() {
        events.push(slice(name, request.points[stage], request.points[stage + 1], origin));
    }
    events.iter_mut().for_each(|event| (event.pid, event.tid) = (request.port, track));
    events
}

fn slice(name: &str, begin: u64, end: u64, origin: u64) -> ChromeEvent {
    let microseconds = |nanoseconds: u64| Some(nanoseconds as f64 / 1e3);
    ChromeEvent {
        name: name.to_owned(),
        ph: "X",
        pid: 0,
        tid: 0,
        ts: microseconds(begin - origin),
        dur: microseconds(end - begin),
        args: BTreeMap::new(),
    }
}

fn details(request: &ObservedRequest) -> BTreeMap<&'static str, serde_json::Value> {
    let flags: Vec<&str> = RequestQuality::ALL
        .into_iter()
        .filter(|(flag, _)| request.quality.has(*flag))
        .map(|(_, says)| says)
        .collect();
    BTreeMap::from([
        ("client", request.peer.to_string().into()),
        ("latency_from_t1_s", (request.latency_from_stack() as f64 / 1e9).into()),
        ("request_bytes", request.request_bytes.into()),
        ("answer_bytes", request.answer_bytes.into()),
        ("reader_thread", request.reader.into()),
        ("writer_thread", request.writer.into()),
        ("t0_monotonic_ns", request.at(RequestPoint::Wire).into()),
        ("less_certain", flags.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use serde_json::Value;

    #[test]
    fn a_json_parser_finds_the_slowest_with_their_stages() {
        let mut slowest = SlowestRequests::new(3);
        for n in 0..100u64 {
            let latency = 1000 * (n * 37 % 100);
            slowest.take(&request(1_000_000 + n, 1_000_000 + n + latency / 2, latency / 2));
        }
        let document: Value = serde_json::from_str(&slowest.json()).expect("it is JSON");
        let events = document["traceEvents"].as_array().expect("a list");
        let named =
            |name: &str| events.iter().filter(|event| event["name"] == name).cloned().collect::<Vec<_>>();
        let durations: Vec<f64> = named("request").iter().filter_map(|event| event["dur"].as_f64()).collect();
        assert_eq!(durations, [99.0, 98.0, 97.0]);
        for track in 1..=3 {
            let of_track = events.iter().filter(|event| event["tid"] == track && event["ph"] == "X");
            let (whole, stages): (Vec<_>, Vec<_>) = of_track.partition(|event| event["name"] == "request");
            let sum: f64 = stages.iter().filter_map(|event| event["dur"].as_f64()).sum();
            assert!((sum - whole[0]["dur"].as_f64().expect("a number")).abs() < 1e-6, "stages add up");
            assert_eq!(stages.len(), STAGE_NAMES.len());
            let mut end = whole[0]["ts"].as_f64().expect("a number");
            for stage in stages {
                assert!((stage["ts"].as_f64().expect("a number") - end).abs() < 1e-6, "one after the other");
                end += stage["dur"].as_f64().expect("a number");
            }
        }
        assert_eq!(named("thread_name").len(), 3);
        assert_eq!(SlowestRequests::new(3).json(), r#"{"displayTimeUnit":"ns","traceEvents":[]}"#);
    }
}
