//! A load file: where the requests of each workload go, and when.
//!
//! Requests come from a trace, from a random process of arrivals, or from a number of outstanding requests that
//! is kept up.

use ::load::{CertificateCheck, ClientHost, DrawnLoad, LoadOptions, LoadTarget, LoadWorkload, OfferedLoad};
use arrivals::ArrivalPattern;
use model::{Op, OperationError, Request};
use operation::files::{check_apart, read_text};
use operation::own_files::{OwnFile, mistaken};
use operation::{Notice, ProgressObserver};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::Value;
use trace::{OpenOptions, SliceOrigin, TraceError};
use units::{Bytes, Nanos};

const HINT: &str = "docs/reference/load.md describes a load file; `tailwright load --help` shows one";

/// A load file that was read.
#[derive(Debug)]
pub struct LoadFile {
    /// Paths in the file are relative to it.
    path: PathBuf,
    spec: LoadSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadSpec {
    duration: Nanos,
    #[serde(default)]
    warm_up: Nanos,
    drain: Option<Nanos>,
    #[serde(default = "default_seed")]
    seed: u64,
    realtime: Option<u32>,
    cpu: Option<usize>,
    #[serde(default)]
    verify_data: bool,
    #[serde(default)]
    workload: Vec<LoadWorkloadSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadWorkloadSpec {
    name: String,
    target: FromText<LoadTarget>,
    tls: Option<TlsSpec>,
    message: Option<MessageSpec>,
    netns: Option<String>,
    bind: Option<IpAddr>,
    #[serde(default = "default_connections")]
    connections: usize,
    requests_per_connection: Option<[u32; 2]>,
    trace: Option<PathBuf>,
    speed: Option<f64>,
    start: Option<Nanos>,
    requests: Option<usize>,
    span: Option<Bytes>,
    arrivals: Option<FromText<ArrivalPattern>>,
    size: Option<Bytes>,
    reads: Option<f64>,
    closed: Option<ClosedLoopSpec>,
}

/// The check of the server's certificate, where it is not that of the system.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsSpec {
    ca_file: Option<PathBuf>,
    #[serde(default)]
    insecure: bool,
}

/// The message of each call of gRPC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageSpec {
    file: Option<PathBuf>,
    hex: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClosedLoopSpec {
    outstanding: u32,
    op: Op,
    size: Bytes,
    #[serde(default)]
    sequential: bool,
}

fn default_seed() -> u64 {
    1
}

fn default_connections() -> usize {
    1
}

/// A value that is written in a grammar of its own.
#[derive(Debug)]
struct FromText<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for FromText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

impl LoadFile {
    /// Reads a load file, with values replaced by settings `PATH=VALUE`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or the file or a setting is not what it should be.
    pub fn read(path: &Path, set: &[String]) -> Result<Self, OperationError> {
        let text = read_text(path, "load file")?;
        // Read once as what it should be: errors have a line only when they are found in the text.
        let spec = toml::from_str(&text).map_err(|error| {
            mistaken(&path.display().to_string(), &text, OwnFile::Load)
                .unwrap_or_else(|| wrong_file(path, &error))
        })?;
        if set.is_empty() {
            return Ok(Self { path: path.to_owned(), spec });
        }
        let mut table: toml::Table = text.parse().map_err(|error| wrong_file(path, &error))?;
        for setting in set {
            let (place, value) = setting.split_once('=').ok_or_else(|| {
                OperationError::input(format_args!("--set {setting}: expected PATH=VALUE"))
                    .hint("such as --set duration=60s or --set workload.mail.speed=2")
            })?;
            match operation::toml_path::set(&mut table, place.trim(), &parse_value(value.trim())) {
                Ok(0) => return Err(wrong_file(path, &format_args!("'{place}': nothing is there"))),
                Ok(_) => {}
                Err(error) => return Err(wrong_file(path, &error)),
            }
        }
        let spec = Value::Table(table).try_into();
        let spec = spec.map_err(|error: toml::de::Error| wrong_file(path, &error))?;
        Ok(Self { path: path.to_owned(), spec })
    }

    /// Refuses to write what comes of the run in the place of the load file or of a trace that it replays.
    ///
    /// # Errors
    ///
    /// When `result` is one of them, by whatever path.
    pub fn refuse_result(&self, result: Option<&Path>) -> Result<(), OperationError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let traces = self.spec.workload.iter().filter_map(|workload| workload.trace.as_ref());
        let mut inputs: Vec<PathBuf> =
            traces.map(|trace| trace::TracePlace::of(&folder.join(trace)).path).collect();
        inputs.push(self.path.clone());
        check_apart(result, inputs.iter().map(|input| Some(input.as_path())))
    }

    /// The names of its workloads, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.spec.workload.iter().map(|workload| workload.name.as_str())
    }

    /// What holds for all workloads of the run.
    pub fn options(&self) -> LoadOptions {
        let LoadSpec { duration, warm_up, seed, realtime, cpu, verify_data, .. } = self.spec;
        let drain = self.spec.drain.unwrap_or(LoadOptions::default().drain);
        LoadOptions { warm_up, duration, drain, seed, realtime, cpu, verify_data }
    }

    /// The workloads with the requests of their traces or processes.
    ///
    /// # Errors
    ///
    /// When a workload is not what it should be, or its trace cannot be read.
    pub fn workloads(&self, observer: &dyn ProgressObserver) -> Result<Vec<LoadWorkload>, OperationError> {
        if self.spec.duration == Nanos::ZERO {
            return Err(wrong_file(&self.path, &"duration: expected a time above zero, such as 10s"));
        }
        let mut workloads = Vec::new();
        for (index, spec) in (0..).zip(&self.spec.workload) {
            let target = self.target(spec)?;
            let offered = self.offered_load(index, spec, message_size(&target), observer)?;
            workloads.push(LoadWorkload {
                name: spec.name.clone(),
                target,
                client: ClientHost { netns: spec.netns.clone(), bind: spec.bind },
                connections: spec.connections,
                requests_per_connection: spec.requests_per_connection.map(|[least, most]| least..=most),
                offered,
            });
        }
        Ok(workloads)
    }

    /// The target with its certificates and its message.
    fn target(&self, spec: &LoadWorkloadSpec) -> Result<LoadTarget, OperationError> {
        let mut whole = spec.target.0.clone();
        let inner = match &mut whole {
            LoadTarget::Tls { check, target, .. } => {
                if let Some(tls) = &spec.tls {
                    *check = self.certificate_check(spec, tls)?;
                }
                &mut **target
            }
            _ if spec.tls.is_some() => {
                let schemes = "tls is about targets https://, grpcs:// and memcached+tls://";
                return Err(self.wrong(spec, schemes));
            }
            plain => plain,
        };
        match (inner, &spec.message) {
            (LoadTarget::Grpc { message, .. }, Some(given)) => *message = self.message(spec, given)?,
            (_, Some(_)) => return Err(self.wrong(spec, "message is about targets grpc:// and grpcs://")),
            (_, None) => {}
        }
        Ok(whole)
    }

    fn certificate_check(
        &self,
        spec: &LoadWorkloadSpec,
        tls: &TlsSpec,
    ) -> Result<CertificateCheck, OperationError> {
        match (&tls.ca_file, tls.insecure) {
            (Some(file), false) => Ok(CertificateCheck::Authorities(self.beside(file))),
            (None, true) => Ok(CertificateCheck::Nothing),
            (None, false) => Ok(CertificateCheck::System),
            (Some(_), true) => Err(self.wrong(spec, "tls: expected one of: ca_file; insecure")),
        }
    }

    fn message(&self, spec: &LoadWorkloadSpec, given: &MessageSpec) -> Result<Vec<u8>, OperationError> {
        match (&given.file, &given.hex) {
            (Some(file), None) => {
                let path = self.beside(file);
                std::fs::read(&path).map_err(|error| {
                    let what = format!("message: {} cannot be read: {error}", path.display());
                    self.wrong(spec, &what)
                })
            }
            (None, Some(hex)) => parse_hex(hex).ok_or_else(|| {
                self.wrong(
                    spec,
                    "message: hex: expected two hexadecimal digits per byte, such as \"0a03 626f62\"",
                )
            }),
            _ => Err(self.wrong(spec, "message: expected one of: file; hex")),
        }
    }

    /// A path in the load file, which is relative to it.
    fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    fn offered_load(
        &self,
        index: u64,
        spec: &LoadWorkloadSpec,
        default_size: Option<Bytes>,
        observer: &dyn ProgressObserver,
    ) -> Result<OfferedLoad, OperationError> {
        let of_trace =
            [spec.speed.is_some(), spec.start.is_some(), spec.requests.is_some(), spec.span.is_some()];
        if spec.trace.is_none() && of_trace.contains(&true) {
            return Err(self.wrong(spec, "speed, start, requests and span are about a trace"));
        }
        if spec.arrivals.is_none() && (spec.size.is_some() || spec.reads.is_some()) {
            return Err(self.wrong(spec, "size and reads go with arrivals"));
        }
        match (&spec.trace, &spec.arrivals, spec.closed) {
            (Some(trace), None, None) => {
                let requests = self.replayed(trace, spec)?;
                if requests.is_empty() {
                    let name = &spec.name;
                    observer.notice(Notice::Warning(format!(
                        "workload {name}: the trace has no requests in this window"
                    )));
                }
                Ok(OfferedLoad::Open(requests))
            }
            (None, Some(FromText(arrivals)), None) => {
                let size = spec.size.or(default_size);
                let size = size.ok_or_else(|| self.wrong(spec, "arrivals need a size"))?;
                Ok(OfferedLoad::Drawn(self.drawn(index, arrivals, size, spec)?))
            }
            (None, None, Some(ClosedLoopSpec { outstanding, op, size, sequential })) => {
                Ok(OfferedLoad::Closed { in_flight: outstanding, op, size, sequential })
            }
            _ => Err(self.wrong(spec, "expected one of: trace; arrivals and size; closed")),
        }
    }

    /// Time from the start of the run to its end.
    fn length(&self) -> Nanos {
        self.spec.warm_up + self.spec.duration
    }

    /// The requests of a trace within the run.
    fn replayed(&self, trace: &Path, spec: &LoadWorkloadSpec) -> Result<Vec<Request>, OperationError> {
        let speed = spec.speed.unwrap_or(1.0);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(self.wrong(spec, "speed: expected a positive number"));
        }
        if spec.span == Some(Bytes(0)) {
            return Err(self.wrong(spec, "span: expected at least one byte"));
        }
        let unreadable = |error: TraceError| OperationError::input(&error).hint(error.hint());
        let path = self.beside(trace);
        let requests = trace::open(&path, &OpenOptions::default()).map_err(unreadable)?;
        let requests = trace::slice(requests, spec.start.unwrap_or_default(), None, SliceOrigin::Rebase);
        let requests = trace::scale_time(requests, 1.0 / speed);
        let mut kept = Vec::new();
        for request in requests.take(spec.requests.unwrap_or(usize::MAX)) {
            let mut request = request.map_err(unreadable)?;
            if request.arrival >= self.length() {
                break;
            }
            if let Some(span) = spec.span {
                request.offset = request.offset.map(|offset| offset % span.0);
            }
            kept.push(request);
        }
        Ok(kept)
    }

    /// Requests of a random process within the run.
    fn drawn(
        &self,
        index: u64,
        arrivals: &ArrivalPattern,
        size: Bytes,
        spec: &LoadWorkloadSpec,
    ) -> Result<DrawnLoad, OperationError> {
        let reads = spec.reads.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&reads) {
            return Err(self.wrong(spec, "reads: expected a share from 0 to 1"));
        }
        // Each workload has a seed of its own, and its directions another.
        let mut seeds = StdRng::seed_from_u64(self.spec.seed);
        let seeds: Vec<[u64; 2]> = (0..=index).map(|_| seeds.random()).collect();
        let [seed, direction_seed] = seeds[seeds.len() - 1];
        let arrivals = arrivals.clone();
        let until = self.length();
        let load = DrawnLoad { arrivals, seed, reads, direction_seed, size, until };
        match load.requests() {
            Ok(_) => Ok(load),
            Err(error) => Err(self.wrong(spec, &format!("arrivals: {error}"))),
        }
    }

    fn wrong(&self, spec: &LoadWorkloadSpec, what: &str) -> OperationError {
        let path = self.path.display();
        let name = &spec.name;
        OperationError::input(format_args!("{path}: workload {name}: {what}")).hint(HINT)
    }
}

fn wrong_file(path: &Path, error: &dyn Display) -> OperationError {
    OperationError::input(format_args!("{}: {}", path.display(), error.to_string().trim_end())).hint(HINT)
}

/// The size of requests that all send the same message.
fn message_size(target: &LoadTarget) -> Option<Bytes> {
    match target.inside_tls() {
        LoadTarget::Grpc { message, .. } => Some(Bytes(message.len() as u64)),
        _ => None,
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<char> = text.chars().filter(|character| !character.is_whitespace()).collect();
    let value = |digit: &char| digit.to_digit(16).and_then(|value| u8::try_from(value).ok());
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(value(high)? << 4 | value(low)?),
            _ => None,
        })
        .collect()
}

/// A value as it stands in a load file, where quotes may be left out.
fn parse_value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<toml::Table>().ok();
    let value = parsed.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}
