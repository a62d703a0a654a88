//! The densest answer of a device, against all requests one by one.

use model::{Op, Request, Stage};
use units::{ByteRate, Bytes, Nanos, Seconds};
use workload::device::{
    BandwidthRow, DeviceModel, Disk, DiskParameters, NetworkModel, SeekPoint, SsdTable, StorageProfile,
};

/// The densest answer of all sizes from a sector to 64 KiB, one by one.
fn densest_by_size(profile: &StorageProfile) -> f64 {
    let mut densest = 0.0_f64;
    let mut device = profile.work_model();
    for size in 512..=65536 {
        for op in [Op::Read, Op::Write] {
            let request = Request { arrival: Nanos(0), size: Bytes(size), op, offset: None, response: None };
            let answer = NetworkModel::default().work(Stage::NetworkOut, &request).0 as f64;
            densest = densest.max(answer / device.work(&request).0 as f64);
        }
    }
    densest
}

fn rate(bytes_per_s: f64) -> ByteRate {
    ByteRate::from_bytes_per_sec(bytes_per_s).expect("a rate")
}

#[test]
fn no_request_has_a_denser_answer() {
    for rates in [[40e6, 300e6, 500e6], [300e6, 40e6, 500e6], [1e6, 900e6, 20e6], [500e6, 500e6, 500e6]] {
        let sizes = [4096, 16384, 65536];
        let row = |(size, read): (u64, f64)| BandwidthRow {
            request: Bytes(size),
            read: rate(read),
            write: rate(50e6),
        };
        let rows = sizes.into_iter().zip(rates).map(row).collect();
        let profile = StorageProfile::new("ssd", DeviceModel::Ssd(SsdTable::new(rows).expect("a table")));
        let ours = profile.densest_answer(&NetworkModel::default());
        let brute = densest_by_size(&profile);
        assert!(ours >= brute * (1.0 - 1e-6) && ours <= brute * (1.0 + 1e-6), "{rates:?}: {ours} {brute}");
    }
}

#[test]
fn a_disk_is_no_faster_than_its_transfer() {
    let disk = Disk::new(DiskParameters {
        capacity: Bytes(1 << 40),
        seek: vec![SeekPoint { distance: Bytes(0), seek: Seconds(0.0) }],
        rotational_latency: Seconds(0.0),
        read: rate(150e6),
        write: rate(100e6),
        streams: 4,
        sequential_gap: Bytes(0),
    });
    let profile = StorageProfile::new("disk", DeviceModel::Disk(disk.expect("a disk")));
    let ours = profile.densest_answer(&NetworkModel::default());
    let brute = densest_by_size(&profile);
    assert!(ours >= brute * (1.0 - 1e-6) && ours <= brute * (1.0 + 1e-6), "{ours} {brute}");
}
