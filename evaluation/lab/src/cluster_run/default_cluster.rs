//! Default cluster of a run: made up, and as large as one small machine can play.

use super::halves::{CLUSTER_FILE, write_text, write_trace};
use crate::device::{LinearServiceTime, SsdModel};
use arrivals::{MmppState, RateProcess};
use model::{Cluster, DEFAULT_SAFETY_MARGIN, OperationError, ServerClass, WorkloadSpec};
use std::path::{Path, PathBuf};
use trace::generate::{SizeMix, Synthetic};
use units::{ByteRate, Bytes, Nanos};

/// Length of the traces, both halves together.
const DURATION: Nanos = Nanos(260_000_000_000);
/// Link bandwidth of every host: several times what the workloads need, and little enough for one machine.
const NETWORK_BYTES_PER_S: f64 = 40e6;
/// The largest best-effort request, and what the copy reads.
const BEST_EFFORT: Bytes = Bytes(16 << 10);
/// Device of each server: slow enough for two CPUs to run it, and all other hosts, with time to spare.
const DEVICE: SsdModel = SsdModel {
    channels: 4,
    read: LinearServiceTime::new(Nanos(2_000_000), 5000),
    write: LinearServiceTime::new(Nanos(3_000_000), 8000),
    bandwidth: None,
};
const SEED: u64 = 1;

/// A synthetic workload.
struct MadeUpWorkload {
    name: &'static str,
    process: RateProcess,
    kib: &'static [(u64, f64)],
    read_share: f64,
    slo: &'static str,
}

fn bursty(quiet: f64, busy: f64, quiet_s: f64, busy_s: f64) -> RateProcess {
    let states = vec![MmppState { rate: quiet, stay_s: quiet_s }, MmppState { rate: busy, stay_s: busy_s }];
    RateProcess::Mmpp { states }
}

/// Bursts last a tenth of a second or so, so that a minute has many of them.
fn workloads() -> Vec<MadeUpWorkload> {
    let steady = RateProcess::Poisson { rate: 150.0 };
    vec![
        MadeUpWorkload {
            name: "database",
            process: bursty(50.0, 300.0, 0.8, 0.15),
            kib: &[(8, 0.8), (64, 0.2)],
            read_share: 0.7,
            slo: "99% < 400ms",
        },
        MadeUpWorkload {
            name: "mail",
            process: bursty(40.0, 250.0, 0.5, 0.1),
            kib: &[(4, 0.6), (16, 0.4)],
            read_share: 0.5,
            slo: "99% < 250ms",
        },
        MadeUpWorkload {
            name: "web",
            process: RateProcess::Poisson { rate: 120.0 },
            kib: &[(16, 0.7), (64, 0.3)],
            read_share: 0.95,
            slo: "99% < 150ms",
        },
        MadeUpWorkload {
            name: "logs",
            process: steady,
            kib: &[(4, 0.5), (32, 0.5)],
            read_share: 0.05,
            slo: "99% < 150ms",
        },
        MadeUpWorkload {
            name: "analytics",
            process: bursty(10.0, 120.0, 0.3, 0.075),
            kib: &[(64, 1.0)],
            read_share: 0.9,
            slo: "99% < 1s",
        },
        MadeUpWorkload {
            name: "boot",
            process: bursty(10.0, 400.0, 0.5, 0.05),
            kib: &[(16, 0.5), (64, 0.5)],
            read_share: 0.9,
            slo: "99% < 1s",
        },
    ]
}

/// Writes the cluster, its device profile and its traces into a folder; returns the path of the cluster file.
///
/// # Errors
/// When a file cannot be written.
pub fn write_default_cluster(folder: &Path) -> Result<PathBuf, OperationError> {
    let mut specs = Vec::new();
    let mut sizes = vec![BEST_EFFORT];
    for (workload, number) in workloads().into_iter().zip(0u64..) {
        let mix: Vec<(Bytes, f64)> =
            workload.kib.iter().map(|(kib, weight)| (Bytes(kib << 10), *weight)).collect();
        sizes.extend(mix.iter().map(|(size, _)| *size));
        let stream = Synthetic {
            process: workload.process,
            sizes: SizeMix::new(mix).expect("sizes are positive"),
            read_share: workload.read_share,
            duration: DURATION,
            seed: SEED + number,
        };
        let trace = PathBuf::from(format!("{}.csv", workload.name));
        write_trace(&folder.join(&trace), stream.requests().expect("parameters are in their ranges"))?;
        let slo = workload.slo.parse().expect("an SLO");
        specs.push(WorkloadSpec::new(workload.name, trace, slo));
    }
    let network = ByteRate::from_bytes_per_sec(NETWORK_BYTES_PER_S).expect("a rate");
    let storage = PathBuf::from("ssd.json");
    write_text(&folder.join(&storage), &DEVICE.profile(&sizes).to_json())?;
    let mut class = ServerClass::new("ssd", specs.len(), storage, network);
    class.best_effort_request = BEST_EFFORT;
    let cluster = Cluster {
        safety_margin: DEFAULT_SAFETY_MARGIN,
        failure_domain: None,
        servers: vec![class],
        hosts: Vec::new(),
        workloads: specs,
    };
    let text = serde_json::to_string_pretty(&cluster).expect("a cluster is plain data");
    write_text(&folder.join(CLUSTER_FILE), &text)?;
    Ok(folder.join(CLUSTER_FILE))
}
