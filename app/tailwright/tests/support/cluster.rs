//! Small clusters whose devices are simple enough to check by hand.

use super::Folder;

/// Bytes per second of the storage of test clusters, for reads and writes of any size.
pub(crate) const STORAGE_BYTES_PER_S: f64 = 100e6;
/// Bytes per second of their network.
pub(crate) const NETWORK_BYTES_PER_S: f64 = 125e6;

/// One request of a test trace.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) arrival_ns: u64,
    pub(crate) size: u64,
    pub(crate) read: bool,
}

/// A bursty trace of `count` requests: batches with pauses, from a linear congruential generator.
pub(crate) fn trace(seed: u64, count: usize) -> Vec<Request> {
    let mut state = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(3_037_000_493);
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut at = draw(1_000_000_000);
    let mut requests = Vec::new();
    for _ in 0..count {
        at += if draw(20) == 0 { draw(2_000_000_000) } else { draw(3_000_000) };
        requests.push(Request { arrival_ns: at, size: 4096 << draw(6), read: draw(10) < 6 });
    }
    requests
}

fn csv(requests: &[Request]) -> String {
    let line = |r: &Request| {
        let op = if r.read { "DiskRead" } else { "DiskWrite" };
        format!("{},0x{:08x},{op}\n", r.arrival_ns, r.size)
    };
    requests.iter().map(line).collect()
}

/// A folder with a cluster file, the same as a table of SLOs, a device profile and traces.
pub(crate) struct Cluster {
    pub(crate) folder: Folder,
    pub(crate) traces: Vec<Vec<Request>>,
}

pub(crate) const PROFILE: &str =
    r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 100e6, "writeBandwidth": 100e6}]}"#;

impl Cluster {
    /// `count` workloads w0, w1, … with SLOs of 100, 200 or 400 ms on at most `servers` servers.
    pub(crate) fn new(count: usize, servers: usize) -> Self {
        let folder = Folder::new();
        let traces: Vec<Vec<Request>> = (0..count).map(|w| trace(w as u64, 300)).collect();
        let cluster = Self { folder, traces };
        cluster.folder.write("ssd.json", PROFILE);
        for (w, trace) in cluster.traces.iter().enumerate() {
            cluster.folder.write(&format!("w{w}.csv"), &csv(trace));
        }
        cluster.describe(&(0..count).collect::<Vec<_>>(), servers);
        cluster
    }

    /// Writes cluster.toml and slos.csv with these of the workloads.
    pub(crate) fn describe(&self, workloads: &[usize], servers: usize) {
        let mut toml = format!(
            "[[server]]\nclass = \"ssd\"\ncount = {servers}\nstorage = \"ssd.json\"\nnetwork = \"125MB/s\"\n"
        );
        let mut slos = "order,workload,trace,slo_percentile,slo_latency_s,note\n".to_owned();
        for &w in workloads {
            let ms = 100 << (w % 3);
            toml +=
                &format!("[[workload]]\nname = \"w{w}\"\ntrace = \"w{w}.csv\"\nslo = \"99.9% < {ms}ms\"\n");
            slos += &format!("{w},w{w},w{w}.csv,99.9,{},x\n", f64::from(ms) / 1e3);
        }
        self.folder.write("cluster.toml", &toml);
        self.folder.write("slos.csv", &slos);
    }
}
