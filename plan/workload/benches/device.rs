//! Requests per second turned into work: the stepped model with its lookup beside the plain table, and the
//! network. Sizes are whole sectors as real traces have them, or arbitrary bytes.

use model::{Op, Request, Stage};
use std::hint::black_box;
use std::time::Instant;
use units::{ByteRate, Bytes, Nanos, Work};
use workload::device::{BandwidthRow, DeviceModel, NetworkModel, SsdTable, StorageProfile};

const REQUESTS: u64 = 4_000_000;

/// 128 rows of 512 bytes to 64 KiB, like the published profile.
fn table() -> SsdTable {
    let rate = |sector: u64, best: f64| {
        ByteRate::from_bytes_per_sec(best * sector as f64 / (sector as f64 + 20.0)).expect("positive")
    };
    let row = |sector| BandwidthRow {
        request: Bytes(512 * sector),
        read: rate(sector, 1e8),
        write: rate(sector, 6e7),
    };
    SsdTable::new((1..=128).map(row).collect()).expect("ascending sizes")
}

fn requests(grain: u64) -> Vec<Request> {
    // A multiplicative generator: sizes up to 128 KiB in no pattern that a branch predictor learns.
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut request = |at| Request {
        arrival: Nanos(at),
        size: Bytes((1 + next() % (131_072 / grain)) * grain),
        op: if next() % 3 == 0 { Op::Write } else { Op::Read },
        offset: None,
        response: None,
    };
    (0..REQUESTS).map(&mut request).collect()
}

/// Nanoseconds per request of the fastest of five passes.
fn time(requests: &[Request], mut work: impl FnMut(&Request) -> Work) -> f64 {
    let mut pass = || {
        let start = Instant::now();
        black_box(requests.iter().map(&mut work).sum::<Work>());
        start.elapsed().as_secs_f64() * 1e9 / requests.len() as f64
    };
    (0..5).map(|_| pass()).fold(f64::MAX, f64::min)
}

fn main() {
    let table = table();
    let network = NetworkModel::default();
    let mut model = StorageProfile::new("bench", DeviceModel::Ssd(table.clone())).work_model();
    println!("{:<18}{:>12}{:>12}{:>8}{:>12}", "sizes", "table ns", "model ns", "ratio", "network ns");
    for (name, grain) in [("whole sectors", 512), ("arbitrary bytes", 1)] {
        let requests = requests(grain);
        let plain = time(&requests, |request| table.work(request.op, request.size));
        let stepped = time(&requests, |request| model.work(request));
        let wire = time(&requests, |request| network.work(Stage::NetworkOut, request));
        println!("{name:<18}{plain:>12.2}{stepped:>12.2}{:>8.1}{wire:>12.2}", plain / stepped);
    }
}
