//! Latencies and stages in the text format of Prometheus, in a file that is replaced about every second while requests
//! come: for the textfile collector of its node exporter, or whoever else reads files.

use crate::observation::counter_families::{FAMILIES, GrownCounters};
use crate::observation::finding::Finding;
use crate::observation::finding_families::{FINDING_HELP, finding_gauges, finding_labels, written_label};
use crate::observation::live_metrics::SKIPPED_RUNS_HELP;
use model::OperationError;
use observe::{CounterReport, ObservedRequest, STAGE_NAMES, STAGES};
use operation::files::{write_repeated, write_repeated_now};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the file is called in errors.
const WHAT: &str = "metrics";

/// The time between two writes.
const INTERVAL: Duration = Duration::from_secs(1);

/// Upper ends of the buckets of latencies, in nanoseconds: 1, 2 and 5 times powers of ten, from 1 µs to 10 s.
const BUCKETS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// A file with counters since the observation began.
pub(super) struct MetricsFile {
    path: PathBuf,
    ports: BTreeMap<u16, PortCounters>,
    /// Runs of the programs in the kernel that it skipped.
    skipped_runs: u64,
    kernel: GrownCounters,
    /// The families of the finding, at the end of the observation.
    finding: String,
    /// When writing was last tried, and when it succeeded.
    tried: Instant,
    written: Instant,
}

/// What is counted for a port.
#[derive(Debug, Default)]
struct PortCounters {
    count: u64,
    latency_ns: u128,
    /// Requests up to each of [`BUCKETS`] and above the one before.
    buckets: [u64; BUCKETS.len()],
    stages_ns: [u128; STAGES],
    request_bytes: u128,
    answer_bytes: u128,
}

impl MetricsFile {
    /// A file with zeros for these ports.
    pub(super) fn create(path: &Path, ports: impl IntoIterator<Item = u16>) -> Result<Self, OperationError> {
        let ports: BTreeMap<u16, PortCounters> =
            ports.into_iter().map(|port| (port, PortCounters::default())).collect();
        let now = Instant::now();
        let file = Self {
            path: path.to_owned(),
            kernel: GrownCounters::new(ports.keys()),
            ports,
            skipped_runs: 0,
            finding: String::new(),
            tried: now,
            written: now,
        };
        file.write()?;
        let now = Instant::now();
        Ok(Self { tried: now, written: now, ..file })
    }

    /// Counts a request, and writes when the last time was long enough ago. Who reads a pipe may be away for a moment, and is
    /// not waited for: meanwhile events would be lost.
    pub(super) fn take(&mut self, request: &ObservedRequest) -> Result<(), OperationError> {
        self.ports.entry(request.port).or_default().add(request);
        if self.tried.elapsed() < INTERVAL {
            return Ok(());
        }
        self.tried = Instant::now();
        if write_repeated_now(&self.path, &self.text(), WHAT, self.written)? {
            self.written = Instant::now();
        }
        Ok(())
    }

    /// Notes how many runs of the programs in the kernel were skipped until now.
    pub(super) fn note_skipped_runs(&mut self, runs: u64) {
        self.skipped_runs = runs;
    }

    /// Notes the growth of counters of the kernel since the observation began.
    pub(super) fn note_counters(&mut self, report: &CounterReport) {
        self.kernel.note(report);
    }

    /// Notes the answer of the observation.
    pub(super) fn note_finding(&mut self, finding: &Finding) {
        self.finding = finding_text(finding);
    }

    /// Writes what was counted, and the answer if there is one.
    pub(super) fn write(&self) -> Result<(), OperationError> {
        write_repeated(&self.path, &(self.text() + &self.finding), WHAT)
    }

    fn text(&self) -> String {
        text(&self.ports, self.skipped_runs) + &kernel_text(&self.kernel)
    }
}

impl PortCounters {
    fn add(&mut self, request: &ObservedRequest) {
        let latency = request.latency_from_stack();
        self.count += 1;
        self.latency_ns += u128::from(latency);
        if let Some(count) = self.buckets.get_mut(BUCKETS.partition_point(|end| *end < latency)) {
            *count += 1;
        }
        for (sum, time) in self.stages_ns.iter_mut().zip(request.stages()) {
            *sum += u128::from(time);
        }
        self.request_bytes += u128::from(request.request_bytes);
        self.answer_bytes += u128::from(request.answer_bytes);
    }
}

fn text(ports: &BTreeMap<u16, PortCounters>, skipped_runs: u64) -> String {
    let mut text = String::new();
    family(
        &mut text,
        "tailwright_request_duration_seconds",
        "histogram",
        "Latency T6 - T1 of answered requests.",
    );
    for (port, counters) in ports {
        let mut below = 0;
        for (end, count) in BUCKETS.iter().zip(counters.buckets) {
            below += count;
            let end = seconds(u128::from(*end));
            sample(
                &mut text,
                "request_duration_seconds_bucket",
                &format!("port=\"{port}\",le=\"{end}\""),
                below,
            );
        }
        let labels = format!("port=\"{port}\",le=\"+Inf\"");
        sample(&mut text, "request_duration_seconds_bucket", &labels, counters.count);
        let labels = format!("port=\"{port}\"");
        sample(&mut text, "request_duration_seconds_sum", &labels, seconds(counters.latency_ns));
        sample(&mut text, "request_duration_seconds_count", &labels, counters.count);
    }
    family(&mut text, "tailwright_stage_seconds_total", "counter", "Time that requests spent in a stage.");
    for (port, counters) in ports {
        for (stage, sum) in STAGE_NAMES.iter().zip(counters.stages_ns) {
            let labels = format!("port=\"{port}\",stage=\"{stage}\"");
            sample(&mut text, "stage_seconds_total", &labels, seconds(sum));
        }
    }
    family(&mut text, "tailwright_request_bytes_total", "counter", "Bytes of answered requests.");
    for (port, counters) in ports {
        sample(&mut text, "request_bytes_total", &format!("port=\"{port}\""), counters.request_bytes);
    }
    family(&mut text, "tailwright_answer_bytes_total", "counter", "Bytes of answers.");
    for (port, counters) in ports {
        sample(&mut text, "answer_bytes_total", &format!("port=\"{port}\""), counters.answer_bytes);
    }
    family(&mut text, "tailwright_skipped_runs_total", "counter", &format!("{SKIPPED_RUNS_HELP}."));
    writeln!(text, "tailwright_skipped_runs_total {skipped_runs}").expect("a text takes everything");
    text
}

fn kernel_text(kernel: &GrownCounters) -> String {
    let mut text = String::new();
    for row in &FAMILIES {
        let name = format!("{}{}_total", row.name, if row.is_time() { "_seconds" } else { "" });
        family(&mut text, &name, "counter", &format!("{}.", row.help));
        for (subject, value) in kernel.series(row) {
            let labels = row.label.map(|label| format!("{{{}}}", written_label(&(label, subject))));
            writeln!(text, "{name}{} {value}", labels.unwrap_or_default()).expect("a text takes everything");
        }
    }
    text
}

fn finding_text(finding: &Finding) -> String {
    let mut text = String::new();
    family(&mut text, "tailwright_tail_finding", "gauge", &format!("{FINDING_HELP}."));
    let labels = finding_labels(finding).each_ref().map(written_label).join(",");
    writeln!(text, "tailwright_tail_finding{{{labels}}} 1").expect("a text takes everything");
    for gauge in finding_gauges(finding) {
        let Some(value) = gauge.value else { continue };
        family(&mut text, gauge.name, "gauge", &format!("{}.", gauge.help));
        writeln!(text, "{} {value}", gauge.name).expect("a text takes everything");
    }
    text
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a text takes everything");
}

fn sample(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    writeln!(text, "tailwright_{name}{{{labels}}} {value}").expect("a text takes everything");
}

fn seconds(nanoseconds: u128) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::{request, unusual_finding};
    use observe::{KernelCount, QUOTA_THROTTLED_TIME, QUOTA_THROTTLES, UDP_DROPS};

    /// A sample as a reader of the format sees it: name, labels, value.
    type ReadSample = (String, BTreeMap<String, String>, f64);

    /// Reads the format as its specification says: comments, and samples as `name{label="value",…} number`.
    fn read(text: &str) -> Vec<ReadSample> {
        let mut types = BTreeMap::new();
        let mut samples = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(types.insert(name, kind).is_none(), "one type each: {line}");
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                let labels = labels.strip_suffix('}').expect("labels end");
                let family = types.keys().find(|family| name.starts_with(**family));
                assert!(family.is_some(), "a type before the first sample: {line}");
                assert!(
                    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                    "{line}"
                );
                let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
                    let (key, value) = label.split_once('=').expect("a key");
                    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                    (key.to_owned(), value.expect("in quotes").to_owned())
                });
                samples.push((name.to_owned(), labels.collect(), value.parse().expect("a number")));
            }
        }
        assert!(text.ends_with('\n'));
        samples
    }

    fn value(samples: &[ReadSample], name: &str, label: (&str, &str)) -> f64 {
        let has =
            |labels: &BTreeMap<String, String>| labels.get(label.0).is_some_and(|value| value == label.1);
        let found = samples.iter().find(|(found, labels, _)| found == name && has(labels));
        found.unwrap_or_else(|| panic!("{name} {label:?}")).2
    }

    /// Its reader is not waited for while requests come; when it has been away for long, that is a failure.
    #[test]
    fn a_pipe_that_nobody_reads_any_more_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
        assert!(made.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).expect("it is written")
        });
        let mut file = MetricsFile::create(&pipe, [80]).expect("somebody reads it");
        assert!(reader.join().expect("it reads to the end").contains("tailwright_skipped_runs_total"));
        let long_ago = |time| Instant::now().checked_sub(time).expect("the machine has been up for longer");
        file.tried = long_ago(INTERVAL);
        let begun = Instant::now();
        file.take(&request(1, 1, 10)).expect("the reader may be back soon");
        file.tried = long_ago(INTERVAL);
        file.written = long_ago(machine::whole_file::READER_PATIENCE);
        let error = file.take(&request(2, 2, 10)).expect_err("it has been away for long");
        assert!(error.message.contains("nobody reads this pipe"), "{error}");
        assert!(begun.elapsed() < machine::whole_file::READER_PATIENCE, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_reader_of_the_format_finds_all_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live.prom");
        let mut file = MetricsFile::create(&path, [80, 443]).expect("the folder is there");
        assert_eq!(
            value(
                &read(&std::fs::read_to_string(&path).expect("it is there")),
                "tailwright_request_duration_seconds_count",
                ("port", "443")
            ),
            0.0
        );
        for latency in [1_000, 1_001, 40_000, 20_000_000_000] {
            file.take(&request(5, 5, latency)).expect("there is room");
        }
        file.note_skipped_runs(3);
        let count =
            |counter, subject: &str, amount| KernelCount { counter, subject: subject.to_owned(), amount };
        let counts = vec![
            count(&UDP_DROPS, "port 443", 2),
            count(&QUOTA_THROTTLES, "/a", 5),
            count(&QUOTA_THROTTLED_TIME, "/a", 40_000_000),
        ];
        file.note_counters(&CounterReport { counts, ..CounterReport::default() });
        file.note_finding(&unusual_finding());
        file.write().expect("there is room");
        let samples = read(&std::fs::read_to_string(&path).expect("it is there"));
        for (end, count) in
            [("0.000001", 1.0), ("0.000002", 2.0), ("0.00005", 3.0), ("10", 3.0), ("+Inf", 4.0)]
        {
            assert_eq!(
                value(&samples, "tailwright_request_duration_seconds_bucket", ("le", end)),
                count,
                "{end}"
            );
        }
        assert_eq!(value(&samples, "tailwright_request_duration_seconds_sum", ("port", "80")), 20.000042001);
        assert_eq!(value(&samples, "tailwright_stage_seconds_total", ("stage", "read")), 10.000021);
        assert_eq!(value(&samples, "tailwright_answer_bytes_total", ("port", "80")), 400.0);
        let skipped = samples.iter().find(|(name, ..)| name == "tailwright_skipped_runs_total");
        assert_eq!(skipped.map(|(_, labels, value)| (labels.len(), *value)), Some((0, 3.0)));
        for (name, label, expected) in [
            ("tailwright_udp_drops_total", ("port", "443"), 2.0),
            ("tailwright_udp_drops_total", ("port", "80"), 0.0),
            ("tailwright_cpu_quota_throttles_total", ("group", "/a"), 5.0),
            ("tailwright_cpu_quota_throttled_seconds_total", ("group", "/a"), 0.04),
            ("tailwright_tail_finding", ("spent_on", "waits behind hog (4711)"), 1.0),
        ] {
            assert_eq!(value(&samples, name, label), expected, "{name}");
        }
        for (name, expected) in
            [("tailwright_steal_seconds_total", 0.0), ("tailwright_tail_ideal_ratio", 650.0)]
        {
            let found = samples.iter().find(|(found, ..)| found == name);
            assert_eq!(found.map(|(_, _, value)| *value), Some(expected), "{name}");
        }
        let of_80: Vec<f64> = samples
            .iter()
            .filter(|(name, labels, _)| name.ends_with("_bucket") && labels["port"] == "80")
            .map(|(_, _, value)| *value)
            .collect();
        assert!(of_80.is_sorted() && of_80.len() == BUCKETS.len() + 1, "{of_80:?}");
    }
}
