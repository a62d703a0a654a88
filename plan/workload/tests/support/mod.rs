//! Arrivals for tests and benchmarks: the real traces where they are present, and seeded synthetic ones.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod definition;
pub(crate) mod sweep;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::Read;
use std::path::Path;
use units::{Nanos, Work};
use workload::burst::StageArrival;

/// One real trace at one stage.
pub(crate) struct RealTrace {
    pub(crate) name: String,
    pub(crate) storage: Vec<StageArrival>,
    pub(crate) network_in: Vec<StageArrival>,
}

/// All real traces in order of name; `None` where they are absent.
pub(crate) fn real_traces() -> Option<Vec<RealTrace>> {
    let dir = testkit::shared("traces")?;
    let profile = Bandwidths::read(&dir.join("ssd-profile.json"));
    let mut paths: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "gz"));
    paths.sort();
    Some(paths.iter().map(|path| read_trace(path, &profile)).collect())
}

fn read_trace(path: &Path, profile: &Bandwidths) -> RealTrace {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let mut storage = Vec::new();
    let mut network_in = Vec::new();
    for line in text.lines() {
        let fields: Vec<_> = line.split(',').collect();
        let at = Nanos(fields[0].parse().unwrap());
        let size = u64::from_str_radix(fields[1].trim_start_matches("0x"), 16).unwrap();
        let write = fields[2].trim() == "DiskWrite";
        let seconds = size as f64 / profile.at(size as f64, write);
        storage.push(StageArrival { at, work: Work::from_base_units(seconds * 1e9) });
        // Milli-bytes: 200 + 1.1·size with the data, 200 + 0.025·size against it.
        network_in
            .push(StageArrival { at, work: Work(200_000 + if write { 1100 * size } else { 25 * size }) });
    }
    RealTrace { name: path.file_name().unwrap().to_string_lossy().into_owned(), storage, network_in }
}

/// Size, read bandwidth, write bandwidth.
struct Bandwidths(Vec<[f64; 3]>);

impl Bandwidths {
    fn read(path: &Path) -> Self {
        let profile: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let row = |v: &serde_json::Value| {
            ["requestSize", "readBandwidth", "writeBandwidth"].map(|key| v[key].as_f64().unwrap())
        };
        Self(profile["bandwidthTable"].as_array().unwrap().iter().map(row).collect())
    }

    fn at(&self, size: f64, write: bool) -> f64 {
        let column = 1 + usize::from(write);
        let after = self.0.partition_point(|row| row[0] <= size);
        if after == 0 || after == self.0.len() {
            return self.0[after.saturating_sub(1)][column];
        }
        let a = &self.0[after - 1];
        let b = &self.0[after];
        a[column] + (b[column] - a[column]) * (size - a[0]) / (b[0] - a[0])
    }
}

/// Bursty arrivals, about 200 a second: idle times and batches of heavy-tailed length, a few sizes.
pub(crate) fn synthetic(count: usize, seed: u64) -> Vec<StageArrival> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut at = 0.0_f64;
    let mut burst = 0.0_f64;
    let mut arrival = || {
        if burst < 1.0 {
            burst = random.random::<f64>().max(1e-6).powf(-0.8);
            at += -random.random::<f64>().max(1e-12).ln() * 2e7;
        }
        burst -= 1.0;
        at += -random.random::<f64>().max(1e-12).ln() * 2e5;
        let work = [150_000.0, 475_000.0, 1_100_000.0][random.random_range(0..3)];
        StageArrival { at: Nanos::from_secs(at / 1e9).unwrap(), work: Work::from_base_units(work) }
    };
    (0..count).map(|_| arrival()).collect()
}

/// The traces one after another, `times` over, a second apart.
pub(crate) fn concatenated(traces: &[Vec<StageArrival>], times: usize) -> Vec<StageArrival> {
    let mut all = Vec::new();
    let mut start = 0;
    for _ in 0..times {
        for trace in traces {
            let origin = trace[0].at.0;
            all.extend(
                trace.iter().map(|a| StageArrival { at: Nanos(a.at.0 - origin + start), work: a.work }),
            );
            start += trace[trace.len() - 1].at.0 - origin + 1_000_000_000;
        }
    }
    all
}
