//! Generates the demo's workloads: kinds found on shared storage, each with its own burstiness, scaled at
//! random.

use model::OperationError;
use operation::ProgressObserver;
use operation::files::write_result;
use operation::parallel::in_parallel;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fmt::Write as _;
use std::path::Path;
use trace::generate::{MmppState, RateProcess, SizeMix, Synthetic};
use trace::{TraceFormat, TraceWriter};
use units::{ByteRate, Bytes, Nanos, Seconds};
use workload::device::{BandwidthRow, BaseLatency, DeviceModel, SsdTable, StorageProfile};

/// The name of the cluster file in the folder of a demo.
pub const CLUSTER_FILE: &str = "cluster.toml";
pub(super) const TRACE_FOLDER: &str = "traces";
/// The name that the plan of a demo has beside its cluster file.
pub const PLAN_FILE: &str = "plan.json";
/// The name that the page about that plan has.
pub const REPORT_FILE: &str = "plan.html";
const PROFILE_FILE: &str = "ssd-profile.json";
/// Length of the traces.
const DURATION: Nanos = Nanos(300_000_000_000);

/// A kind of workload as one finds it on shared storage.
struct DemoKind {
    name: &'static str,
    /// Its arrivals at a scale; 1 is the usual load.
    process: fn(f64) -> RateProcess,
    /// Sizes of requests in KiB, with weights.
    sizes: &'static [(u64, f64)],
    read_share: f64,
    /// SLO latencies to choose from, milliseconds.
    slos_ms: &'static [u32],
}

fn database(scale: f64) -> RateProcess {
    let quiet = MmppState { rate: 40.0 * scale, stay_s: 8.0 };
    let busy = MmppState { rate: 900.0 * scale, stay_s: 0.8 };
    RateProcess::Mmpp { states: vec![quiet, busy] }
}

fn mail(scale: f64) -> RateProcess {
    RateProcess::OnOff { sources: 8, rate_on: 90.0 * scale, on_s: 0.4, off_s: 5.0, shape: 1.6 }
}

fn web(scale: f64) -> RateProcess {
    RateProcess::BModel { rate: 50.0 * scale, bias: 0.68, interval_s: 60.0, levels: 16 }
}

fn logs(scale: f64) -> RateProcess {
    RateProcess::Diurnal {
        of: Box::new(RateProcess::Poisson { rate: 50.0 * scale }),
        period_s: 120.0,
        amplitude: 0.7,
        phase: 0.2,
    }
}

fn backup(scale: f64) -> RateProcess {
    RateProcess::OnOff { sources: 1, rate_on: 80.0 * scale, on_s: 1.5, off_s: 30.0, shape: 1.9 }
}

fn analytics(scale: f64) -> RateProcess {
    let scan = RateProcess::OnOff { sources: 2, rate_on: 150.0 * scale, on_s: 0.8, off_s: 20.0, shape: 1.7 };
    RateProcess::Sum(vec![RateProcess::Poisson { rate: 4.0 * scale }, scan])
}

fn boot(scale: f64) -> RateProcess {
    let idle = MmppState { rate: 5.0, stay_s: 20.0 };
    let storm = MmppState { rate: 1200.0 * scale, stay_s: 0.7 };
    RateProcess::Mmpp { states: vec![idle, storm] }
}

const KINDS: [DemoKind; 7] = [
    DemoKind {
        name: "database",
        process: database,
        sizes: &[(8, 0.8), (64, 0.2)],
        read_share: 0.7,
        slos_ms: &[100, 150],
    },
    DemoKind {
        name: "mail",
        process: mail,
        sizes: &[(4, 0.6), (16, 0.3), (128, 0.1)],
        read_share: 0.45,
        slos_ms: &[150, 250],
    },
    DemoKind {
        name: "web",
        process: web,
        sizes: &[(16, 0.7), (64, 0.3)],
        read_share: 0.95,
        slos_ms: &[150, 250],
    },
    DemoKind {
        name: "logs",
        process: logs,
        sizes: &[(4, 0.5), (32, 0.5)],
        read_share: 0.05,
        slos_ms: &[50, 100],
    },
    DemoKind {
        name: "backup",
        process: backup,
        sizes: &[(512, 0.5), (1024, 0.5)],
        read_share: 0.1,
        slos_ms: &[1000],
    },
    DemoKind {
        name: "analytics",
        process: analytics,
        sizes: &[(128, 0.4), (256, 0.6)],
        read_share: 0.9,
        slos_ms: &[500, 1000],
    },
    DemoKind {
        name: "boot",
        process: boot,
        sizes: &[(16, 0.5), (64, 0.5)],
        read_share: 0.9,
        slos_ms: &[250, 500],
    },
];

/// A workload of the demo.
struct DemoWorkload {
    name: String,
    slo_ms: u32,
    stream: Synthetic,
}

/// A cluster that the demo generates.
pub(super) struct DemoCluster {
    workloads: Vec<DemoWorkload>,
    seed: u64,
}

impl DemoCluster {
    /// `count` workloads, the kinds in turn, at random scales.
    pub(super) fn new(seed: u64, count: u32) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let workloads = (0..count as usize).map(|number| demo_workload(number, &mut random)).collect();
        Self { workloads, seed }
    }

    /// The files that the demo writes, relative to its folder; those of its plan included.
    pub(super) fn files(&self) -> Vec<String> {
        let mut files = vec![CLUSTER_FILE.into(), PROFILE_FILE.into(), PLAN_FILE.into(), REPORT_FILE.into()];
        files.extend(self.workloads.iter().map(DemoWorkload::file));
        files
    }

    /// Writes cluster, profile and traces.
    pub(super) fn write(&self, dir: &Path, observer: &dyn ProgressObserver) -> Result<(), OperationError> {
        write_result(&dir.join(PROFILE_FILE), &profile().to_json(), "demo")?;
        write_result(&dir.join(CLUSTER_FILE), &self.toml(), "demo")?;
        self.write_traces(dir, observer)
    }

    /// Writes the traces, on all cores.
    fn write_traces(&self, dir: &Path, observer: &dyn ProgressObserver) -> Result<(), OperationError> {
        in_parallel(observer, "generating", &self.workloads, |workload| workload.write(dir)).map(drop)
    }

    fn toml(&self) -> String {
        let mut text = format!(
            "# A generated cluster: `tailwright demo --seed {} --workloads {}`.\n# Change it and run \
             `tailwright plan {CLUSTER_FILE}`.\n\n[[server]]\nclass = \"ssd\"\ncount = {}\nstorage = \"{PROFILE_FILE}\"\n\
             network = \"1Gbps\"\n",
            self.seed,
            self.workloads.len(),
            self.workloads.len()
        );
        for workload in &self.workloads {
            let _ = write!(
                text,
                "\n[[workload]]\nname = \"{}\"\ntrace = \"{}\"\nslo = \"99.9% < {}ms\"\n",
                workload.name,
                workload.file(),
                workload.slo_ms
            );
        }
        text
    }
}

fn demo_workload(number: usize, random: &mut StdRng) -> DemoWorkload {
    let kind = &KINDS[number % KINDS.len()];
    // Between half and one and a half times.
    let scale = 0.5 + random.random::<f64>();
    let slo_ms = kind.slos_ms[random.random_range(0..kind.slos_ms.len())];
    let sizes = kind.sizes.iter().map(|(kib, weight)| (Bytes(kib << 10), *weight)).collect();
    let mut stream = Synthetic {
        process: (kind.process)(scale),
        sizes: SizeMix::new(sizes).expect("sizes of the kinds are sound"),
        read_share: kind.read_share,
        duration: DURATION,
        seed: random.random(),
    };
    // A workload whose first burst comes after the end of the trace is none.
    while stream.requests().expect("parameters of the kinds are sound").nth(1).is_none() {
        stream.seed = stream.seed.wrapping_add(1);
    }
    DemoWorkload { name: format!("{}-{}", kind.name, number / KINDS.len() + 1), slo_ms, stream }
}

impl DemoWorkload {
    fn file(&self) -> String {
        format!("{TRACE_FOLDER}/{}.csv.gz", self.name)
    }

    fn write(&self, dir: &Path) -> Result<(), OperationError> {
        let wrong = |error: trace::TraceError| OperationError::machine(&error).hint(error.hint());
        let mut writer = TraceWriter::create(&dir.join(self.file()), TraceFormat::Csv).map_err(wrong)?;
        for request in self.stream.requests().expect("parameters of the kinds are sound") {
            writer.write(&request).map_err(wrong)?;
        }
        writer.finish().map_err(wrong)?;
        Ok(())
    }
}

/// Returns true if a demo, possibly one with more workloads, creates a file of this name.
pub(super) fn is_demo_file(name: &str) -> bool {
    if [CLUSTER_FILE, PROFILE_FILE, PLAN_FILE, REPORT_FILE].contains(&name) {
        return true;
    }
    let trace = name.strip_prefix(TRACE_FOLDER).and_then(|name| name.strip_prefix('/'));
    let Some(trace) = trace.and_then(|name| name.strip_suffix(".csv.gz")) else { return false };
    trace.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Returns a made-up SSD profile; no device was measured for it.
fn profile() -> StorageProfile {
    // KiB, and MB/s of reads and of writes.
    let mut rows = Vec::new();
    for (kib, read, write) in [
        (4, 60.0, 35.0),
        (8, 95.0, 60.0),
        (16, 140.0, 90.0),
        (64, 210.0, 140.0),
        (256, 260.0, 180.0),
        (1024, 280.0, 200.0),
    ] {
        let [read, write] = [read, write]
            .map(|mb: f64| ByteRate::from_bytes_per_sec(mb * 1e6).expect("rates of the table are positive"));
        rows.push(BandwidthRow { request: Bytes(kib << 10), read, write });
    }
    let table = SsdTable::new(rows).expect("the table ascends");
    let percentile = "99.9".parse().expect("a percentile");
    StorageProfile::new("demo-ssd", DeviceModel::Ssd(table))
        .with_source(
            "Invented for `tailwright demo`: plausible for a SATA SSD behind a storage stack, not measured.",
        )
        .with_base_latency(BaseLatency {
            percentile,
            read: Seconds(0.0015),
            write: Seconds(0.002),
            sizes: Vec::new(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_workload_is_without_requests() {
        for workload in DemoCluster::new(5, 1000).workloads {
            assert!(workload.stream.requests().unwrap().nth(1).is_some(), "{}", workload.name);
        }
    }

    #[test]
    fn only_names_of_a_demo_are_replaced() {
        let demo = DemoCluster::new(3, 9);
        assert!(demo.files().iter().all(|file| is_demo_file(file)));
        for other in ["notes.txt", "traces/../../secret.csv.gz", "/etc/passwd", "traces/mine.csv", ""] {
            assert!(!is_demo_file(other), "{other}");
        }
    }

    #[test]
    fn the_profile_reads_back() {
        let text = profile().to_json();
        assert_eq!(StorageProfile::from_json(&text).unwrap(), profile());
        assert_eq!(profile().base_latency(model::Op::Read, Bytes(1)), Seconds(0.0015));
    }
}
