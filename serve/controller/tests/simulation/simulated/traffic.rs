//! Traffic of made-up workloads, and the class of servers that they share.

use model::{Op, Request, ServerClass};
use plan::standing::ServerKind;
use std::sync::LazyLock;
use units::{Bytes, Nanos};
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

pub const CLASS: &str = "ssd";

pub const PROFILE: &str = r#"{ "format": "tailwright-device-1", "name": "ssd", "device": { "ssd": { "bandwidth": [
    { "request_bytes": 4096, "read_bytes_per_s": 60e6, "write_bytes_per_s": 35e6 } ] } } }"#;

pub const MARGIN: f64 = 1.1;

pub fn class() -> ServerClass {
    ServerClass::new(CLASS, 1, "ssd.json".into(), "1Gbps".parse().expect("a rate"))
}

/// The class as the planner sees it.
pub static KIND: LazyLock<ServerKind> = LazyLock::new(|| {
    ServerKind::new(class(), StorageProfile::from_json(PROFILE).expect("a profile"), MARGIN)
});

/// Footprints of some workloads.
pub static FOOTPRINTS: LazyLock<Vec<Footprint>> = LazyLock::new(|| {
    [(10, 50), (25, 100), (60, 300), (120, 500)].map(|(burst, every_ms)| footprint(burst, every_ms)).into()
});

/// `burst` requests at once, every so many milliseconds.
pub fn footprint(burst: u64, every_ms: u64) -> Footprint {
    let mut builder = FootprintBuilder::new(NetworkModel::default(), KIND.profile());
    for at in 0..20_000 / every_ms {
        for number in 0..burst {
            let op = if number % 3 == 0 { Op::Write } else { Op::Read };
            let arrival = Nanos(at * every_ms * 1_000_000);
            let request = Request { arrival, size: Bytes(4096), op, offset: None, response: None };
            builder.push(&request).expect("in order");
        }
    }
    builder.finish().expect("some requests")
}
