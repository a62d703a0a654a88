//! The load file.

use crate::input::read_text;
use arrivals::ArrivalPattern;
use load::{ClientHost, LoadOptions, LoadTarget, LoadWorkload, OfferedLoad};
use model::{Op, OperationError, Request};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Value;
use trace::{OpenOptions, SliceOrigin};
use units::{Bytes, Nanos};

const HINT: &str = "docs/load.md describes a load file; `tailwright load --help` shows one";

/// The file, and where it is.
pub(crate) struct LoadFile {
    path: PathBuf,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    duration: Nanos,
    #[serde(default)]
    warm_up: Nanos,
    drain: Option<Nanos>,
    #[serde(default = "one")]
    seed: u64,
    realtime: Option<u32>,
    cpu: Option<usize>,
    #[serde(default)]
    verify_data: bool,
    #[serde(default)]
    workload: Vec<WorkloadSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadSpec {
    name: String,
    target: Text<LoadTarget>,
    netns: Option<String>,
    bind: Option<IpAddr>,
    #[serde(default = "one_connection")]
    connections: usize,
    trace: Option<PathBuf>,
    speed: Option<f64>,
    start: Option<Nanos>,
    requests: Option<usize>,
    span: Option<Bytes>,
    arrivals: Option<Text<ArrivalPattern>>,
    size: Option<Bytes>,
    reads: Option<f64>,
    closed: Option<ClosedSpec>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClosedSpec {
    outstanding: u32,
    op: Op,
    size: Bytes,
    #[serde(default)]
    sequential: bool,
}

fn one() -> u64 {
    1
}

fn one_connection() -> usize {
    1
}

/// A value with a grammar of its own.
struct Text<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl LoadFile {
    /// Reads it, with values replaced.
    pub(crate) fn read(path: &Path, set: &[String]) -> Result<Self, OperationError> {
        let text = read_text(path, "load file")?;
        let wrong = |error: &dyn Display| {
            OperationError::input(format_args!("{}: {}", path.display(), error.to_string().trim_end()))
                .hint(HINT)
        };
        // Read once as what it should be: only from text do faults have a line.
        let spec = toml::from_str(&text).map_err(|error| wrong(&error))?;
        if set.is_empty() {
            return Ok(Self { path: path.to_owned(), spec });
        }
        let mut table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        for setting in set {
            let expected = || {
                OperationError::input(format_args!("--set {setting}: expected PATH=VALUE"))
                    .hint("such as --set duration=60s or --set workload.mail.speed=2")
            };
            let (place, value) = setting.split_once('=').ok_or_else(expected)?;
            let value = value.trim();
            let as_in_a_file = format!("value = {value}").parse::<toml::Table>().ok();
            let value = as_in_a_file.and_then(|mut table| table.remove("value"));
            let value = value.unwrap_or_else(|| Value::String(setting[place.len() + 1..].trim().to_owned()));
            match scenario::path::set(&mut table, place.trim(), &value) {
                Ok(0) => return Err(wrong(&format_args!("'{place}': nothing is there"))),
                Ok(_) => {}
                Err(fault) => return Err(wrong(&fault)),
            }
        }
        let spec = Value::Table(table).try_into().map_err(|error: toml::de::Error| wrong(&error))?;
        Ok(Self { path: path.to_owned(), spec })
    }

    pub(crate) fn options(&self) -> LoadOptions {
        let Spec { duration, warm_up, seed, realtime, cpu, verify_data, .. } = self.spec;
        let drain = self.spec.drain.unwrap_or(LoadOptions::default().drain);
        LoadOptions { warm_up, duration, drain, seed, realtime, cpu, verify_data }
    }

    /// With the requests of their traces or processes.
    pub(crate) fn workloads(&self) -> Result<Vec<LoadWorkload>, OperationError> {
        let one = |(index, spec): (u64, &WorkloadSpec)| {
            let client = ClientHost { netns: spec.netns.clone(), bind: spec.bind };
            let (name, target, connections) = (spec.name.clone(), spec.target.0.clone(), spec.connections);
            Ok(LoadWorkload { name, target, client, connections, offered: self.demand(index, spec)? })
        };
        (0..).zip(&self.spec.workload).map(one).collect()
    }

    fn demand(&self, index: u64, spec: &WorkloadSpec) -> Result<OfferedLoad, OperationError> {
        let wrong = |what: &str| {
            let (path, name) = (self.path.display(), &spec.name);
            OperationError::input(format_args!("{path}: workload {name}: {what}")).hint(HINT)
        };
        let of_trace =
            [spec.speed.is_some(), spec.start.is_some(), spec.requests.is_some(), spec.span.is_some()];
        if spec.trace.is_none() && of_trace.contains(&true) {
            return Err(wrong("speed, start, requests and span are about a trace"));
        }
        if spec.arrivals.is_none() && (spec.size.is_some() || spec.reads.is_some()) {
            return Err(wrong("size and reads go with arrivals"));
        }
        match (&spec.trace, &spec.arrivals, spec.closed) {
            (Some(trace), None, None) => {
                let path = self.path.parent().unwrap_or(Path::new("")).join(trace);
                self.replayed(&path, spec, wrong)
            }
            (None, Some(Text(arrivals)), None) => {
                let size = spec.size.ok_or_else(|| wrong("arrivals need a size"))?;
                self.drawn(index, arrivals, size, spec.reads.unwrap_or(1.0), wrong)
            }
            (None, None, Some(ClosedSpec { outstanding, op, size, sequential })) => {
                Ok(OfferedLoad::Closed { in_flight: outstanding, op, size, sequential })
            }
            _ => Err(wrong("expected one of: trace; arrivals and size; closed")),
        }
    }

    /// From the start of the run to its end.
    fn length(&self) -> Nanos {
        self.spec.warm_up + self.spec.duration
    }

    fn replayed(
        &self,
        path: &Path,
        spec: &WorkloadSpec,
        wrong: impl Fn(&str) -> OperationError,
    ) -> Result<OfferedLoad, OperationError> {
        let speed = spec.speed.unwrap_or(1.0);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(wrong("speed: expected a positive number"));
        }
        if spec.span == Some(Bytes(0)) {
            return Err(wrong("span: expected at least one byte"));
        }
        let fault = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
        let requests = trace::open(path, &OpenOptions::default()).map_err(fault)?;
        let start = spec.start.unwrap_or_default();
        let requests = trace::slice(requests, start, None, SliceOrigin::Rebase);
        let requests = trace::scale_time(requests, 1.0 / speed);
        let mut kept = Vec::new();
        for request in requests.take(spec.requests.unwrap_or(usize::MAX)) {
            let mut request = request.map_err(fault)?;
            if request.arrival >= self.length() {
                break;
            }
            if let Some(span) = spec.span {
                request.offset = request.offset.map(|offset| offset % span.0);
            }
            kept.push(request);
        }
        if kept.is_empty() {
            eprintln!("warning: workload {}: the trace has no requests in this window", spec.name);
        }
        Ok(OfferedLoad::Open(kept))
    }

    fn drawn(
        &self,
        index: u64,
        arrivals: &ArrivalPattern,
        size: Bytes,
        reads: f64,
        wrong: impl Fn(&str) -> OperationError,
    ) -> Result<OfferedLoad, OperationError> {
        if !(0.0..=1.0).contains(&reads) {
            return Err(wrong("reads: expected a share from 0 to 1"));
        }
        // Each workload has a seed of its own, and its directions another.
        let mut seeds = StdRng::seed_from_u64(self.spec.seed);
        let seeds: Vec<[u64; 2]> = (0..=index).map(|_| seeds.random()).collect();
        let [seed, directions] = seeds[seeds.len() - 1];
        let instants = arrivals.instants(seed).map_err(|error| wrong(&format!("arrivals: {error}")))?;
        let mut random = StdRng::seed_from_u64(directions);
        let request = |arrival| {
            let op = if random.random::<f64>() < reads { Op::Read } else { Op::Write };
            Request { arrival, size, op, offset: None, response: None }
        };
        Ok(OfferedLoad::Open(instants.take_while(|at| *at < self.length()).map(request).collect()))
    }
}
