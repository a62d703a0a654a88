//! Device profile files: the published one as its authors left it, and what is refused with which words.

use model::{Op, Request};
use proptest::prelude::*;
use units::{ByteRate, Bytes, Nanos, Percentile, Seconds, Work};
use workload::device::{
    BandwidthRow, BaseLatency, BaseLatencyRow, DeviceModel, Disk, DiskParameters, OperationCost, QueueLimits,
    SeekPoint, SsdTable, StorageProfile,
};
use workload::profile_file::profile_hash;

fn request(op: Op, size: u64) -> Request {
    Request { arrival: Nanos::ZERO, size: Bytes(size), op, offset: None, response: None }
}

fn rate(bytes_per_s: f64) -> ByteRate {
    ByteRate::from_bytes_per_sec(bytes_per_s).expect("a positive rate")
}

#[test]
fn published_profile_by_hand() {
    let Some(path) = testkit::shared("traces/ssd-profile.json") else { return };
    let profile = StorageProfile::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
    let DeviceModel::Ssd(table) = profile.device() else { panic!("the published profile is an SSD") };
    assert_eq!(table.rows().len(), 132);
    assert_eq!(
        profile.queue_limits(),
        Some(QueueLimits {
            read_requests_max: 48,
            write_requests_max: 96,
            read_bytes_max: 1_572_864,
            write_bytes_max: 3_145_728,
        })
    );
    assert_eq!(profile.base_latency(Op::Read, Bytes(1)), Seconds(0.0));

    let mut storage = profile.work_model();
    // Computed with exact fractions from the table's entries, rounded up to picoseconds.
    for (op, size, picos) in PUBLISHED_BY_HAND {
        let work = storage.work(&request(op, size)).0;
        assert!((picos..=picos + 1).contains(&work), "{op:?} {size}: {work} for {picos}");
    }
}

/// Operation, bytes, picoseconds.
const PUBLISHED_BY_HAND: [(Op, u64, u64); 8] = [
    // Entries.
    (Op::Read, 512, 104_590_434),
    (Op::Write, 512, 847_192_427),
    (Op::Read, 4096, 154_741_826),
    (Op::Write, 4096, 475_225_611),
    // Between entries, a quarter of the way.
    (Op::Read, 640, 128_281_414),
    (Op::Write, 4224, 573_509_512),
    // Outside.
    (Op::Write, 100, 165_467_271),
    (Op::Read, 1_048_576, 11_141_628_793),
];

fn ssd() -> StorageProfile {
    let row =
        |request, read, write| BandwidthRow { request: Bytes(request), read: rate(read), write: rate(write) };
    let table = SsdTable::new(vec![row(512, 4_895_285.188_773_981, 1.0 / 3.0), row(4096, 1e9, 5e8)]).unwrap();
    StorageProfile::new("nvme0", DeviceModel::Ssd(table))
}

fn disk() -> StorageProfile {
    let parameters = DiskParameters {
        capacity: Bytes(1 << 40),
        seek: vec![SeekPoint { distance: Bytes(1 << 20), seek: Seconds(0.0013) }],
        rotational_latency: Seconds(0.1 / 24.0),
        read: rate(1.5e8),
        write: rate(1.4e8),
        streams: 8,
        sequential_gap: Bytes(65_536),
    };
    StorageProfile::new("sdb", DeviceModel::Disk(Disk::new(parameters).unwrap()))
}

#[test]
fn profiles_survive_their_file() {
    let latency = BaseLatency {
        percentile: Percentile::new(99.9).unwrap(),
        read: Seconds(0.000_123_4),
        write: Seconds(1.0 / 3.0),
        sizes: Vec::new(),
    };
    let limits =
        QueueLimits { read_requests_max: 1, write_requests_max: 2, read_bytes_max: 3, write_bytes_max: 4 };
    for profile in [
        ssd(),
        disk(),
        ssd().with_base_latency(latency).with_queue_limits(limits).with_source("by hand"),
        by_size(),
    ] {
        assert_eq!(StorageProfile::from_json(&profile.to_json()), Ok(profile));
    }
}

/// Reads of 4 KiB seem faster than those of 512 bytes.
fn by_size() -> StorageProfile {
    let measured = [(512, 0.002, 0.001), (4096, 0.001, 0.003), (65_536, 0.004, 0.003)];
    let row = |(request, read, write)| BaseLatencyRow {
        request: Bytes(request),
        read: Seconds(read),
        write: Seconds(write),
    };
    ssd().with_base_latency(BaseLatency::by_size(Percentile::new(99.9).unwrap(), measured.map(row)))
}

#[test]
fn base_latencies_by_size_never_fall_and_end_with_that_of_any_size() {
    let profile = by_size();
    let of = |op, size| profile.base_latency(op, Bytes(size)).0;
    let reads = [0, 512, 513, 4096, 4097, 65_536, 65_537, u64::MAX].map(|size| of(Op::Read, size));
    assert_eq!(reads, [0.002, 0.002, 0.002, 0.002, 0.004, 0.004, 0.004, 0.004]);
    assert_eq!([512, 513].map(|size| of(Op::Write, size)), [0.001, 0.003]);
    assert_eq!(profile.base_latency_of_any(), Seconds(0.004));
    assert_ne!(profile_hash(&profile), profile_hash(&ssd()));
}

proptest! {
    /// The latency within a device time against a search of all sizes up to 300 bytes.
    #[test]
    fn base_latencies_within_a_device_time_are_those_of_all_requests_that_take_no_longer(
        rows in proptest::collection::btree_map(1..200_u64, (1e6..1e9, 1e6..1e9), 1..5),
        latencies in proptest::collection::btree_map(1..200_u64, (0.0..1.0, 0.0..1.0), 0..5),
        least in 0..3_u64,
        size in 1..300_u64,
        share in 0.9..1.1,
    ) {
        let row = |(request, (read, write))| BandwidthRow {
            request: Bytes(request), read: rate(read), write: rate(write),
        };
        let table = SsdTable::new(rows.into_iter().map(row).collect()).unwrap();
        let row = |(request, (read, write))| BaseLatencyRow {
            request: Bytes(request), read: Seconds(read), write: Seconds(write),
        };
        let percentile = Percentile::new(99.9).unwrap();
        let latency = BaseLatency::by_size(percentile, latencies.into_iter().map(row));
        let profile = StorageProfile::new("x", DeviceModel::Ssd(table))
            .with_operation(OperationCost { request: Nanos(least * 100), key: Nanos(0) })
            .with_base_latency(latency);
        let mut model = profile.work_model();
        let mut time = |op, size| model.work(&request(op, size)).base_units() / 1e9;
        let longest = time(Op::Read, size) * share;
        let mut slowest = 0.0_f64;
        for op in [Op::Read, Op::Write] {
            for size in (1..300).filter(|&size| time(op, size) <= longest) {
                slowest = slowest.max(profile.base_latency(op, Bytes(size)).0);
            }
        }
        prop_assert_eq!(profile.base_latency_within(Seconds(longest)).0, slowest);
    }
}

#[test]
fn base_latencies_that_cannot_be_are_refused_with_their_place() {
    let text = by_size().to_json();
    assert!(text.contains("\"tailwright-device-3\""), "{text}");
    for (from, to, said) in [
        ("tailwright-device-3", "tailwright-device-2", "has the format 'tailwright-device-3'"),
        (
            "\"request_bytes\": 65536,\n        \"read_s\"",
            "\"request_bytes\": 4096,\n        \"read_s\"",
            "size 3 of 3: request_bytes is 4096, expected more than 4096",
        ),
        ("\"write_s\": 0.001", "\"write_s\": -1.0", "size 1 of 3: write_s is -1"),
        (
            "\"write_s\": 0.001",
            "\"write_s\": 0.5",
            "size 1 of 3: write_s is 0.5, expected 0 (the size before) to 0.003 (any size)",
        ),
        (
            "\"request_bytes\": 512,\n        \"read_s\": 0.002",
            "\"request_bytes\": 512,\n        \"read_s\": 0.003",
            "size 2 of 3: read_s is 0.002, expected 0.003 (the size before)",
        ),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let message = StorageProfile::from_json(&text.replace(from, to)).unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
    }
}

/// A profile without a cost of operations keeps the first version of the format, which earlier programs read.
#[test]
fn a_cost_of_operations_is_in_the_second_version() {
    assert!(ssd().to_json().contains("\"tailwright-device-1\""));
    let operation = OperationCost { request: Nanos(8123), key: Nanos(207) };
    let profile = ssd().with_operation(operation);
    let text = profile.to_json();
    assert!(text.contains("\"tailwright-device-2\"") && text.contains("\"key_s\": 2.07e-7"), "{text}");
    assert_eq!(StorageProfile::from_json(&text), Ok(profile.clone()));
    assert_ne!(profile.work_key(), ssd().work_key());
    let first = text.replace("tailwright-device-2", "tailwright-device-1");
    let message = StorageProfile::from_json(&first).unwrap_err().to_string();
    assert!(message.contains("has the format 'tailwright-device-2'"), "{message}");
    let negative = text.replace("2.07e-7", "-1e-9");
    let message = StorageProfile::from_json(&negative).unwrap_err().to_string();
    assert!(message.contains("key_s is -0.000000001"), "{message}");
    // No request costs less than an operation, and a larger one is not changed.
    let mut with = profile.work_model();
    let mut without = ssd().work_model();
    assert_eq!(with.work(&request(Op::Read, 1)), Work(8_123_000));
    assert_eq!(with.work(&request(Op::Read, 1 << 20)), without.work(&request(Op::Read, 1 << 20)));
    assert_eq!(with.work(&request(Op::Read, 0)), Work::ZERO);
}

#[test]
fn work_key_tells_work_and_nothing_else() {
    assert_eq!(ssd().work_key(), ssd().with_name("other").with_source("elsewhere").work_key());
    assert_ne!(ssd().work_key(), disk().work_key());
    let read_back = StorageProfile::from_json(&ssd().to_json()).unwrap();
    assert_eq!(read_back.work_key(), ssd().work_key());
}

#[test]
fn unusable_files_are_refused_with_the_place() {
    let own = |device: &str| format!(r#"{{"format":"tailwright-device-1","name":"x","device":{device}}}"#);
    let row = |size: &str, read: &str| {
        format!(r#"{{"request_bytes":{size},"read_bytes_per_s":{read},"write_bytes_per_s":1e6}}"#)
    };
    let table = |rows: &[String]| own(&format!(r#"{{"ssd":{{"bandwidth":[{}]}}}}"#, rows.join(",")));
    for (text, parts) in [
        (String::new(), ["line 1", "EOF"]),
        ("[1]".into(), ["line 1", "device profile"]),
        ("{}".into(), ["tailwright-device-1", "bandwidthTable"]),
        (r#"{"format":"tailwright-device-9"}"#.into(), ["tailwright-device-9", "expected"]),
        (table(&[]), ["empty", "at least one row"]),
        (table(&[row("512", "1e6"), row("512", "1e6")]), ["row 2", "ascending"]),
        (table(&[row("512", "0")]), ["row 1", "read bandwidth is 0"]),
        (table(&[row("512", "-1")]), ["row 1", "above zero"]),
        (table(&[row("512", "1e999")]), ["device profile", "line 1"]),
        (table(&[row("512", "null")]), ["null", "line 1"]),
        (table(&[row("-512", "1e6")]), ["-512", "line 1"]),
        (own(r#"{"tape":{}}"#), ["tape", "ssd"]),
        (r#"{"bandwidthTable":[]}"#.into(), ["empty", "at least one row"]),
        (
            r#"{"bandwidthTable":[{"requestSize":512,"readBandwidth":1}]}"#.into(),
            ["writeBandwidth", "line 1"],
        ),
    ] {
        let message = StorageProfile::from_json(&text).expect_err(&text).to_string();
        for part in parts {
            assert!(message.contains(part), "{text}\n{message}\nlacks {part}");
        }
    }
}

#[test]
fn negative_base_latency_is_refused() {
    let text = ssd().to_json().replace(
        "\"device\"",
        r#""base_latency": {"percentile": "99.9%", "read_s": -1, "write_s": 0}, "device""#,
    );
    let message = StorageProfile::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("read_s is -1"), "{message}");
}

proptest::proptest! {
    /// Reading a damaged file succeeds or fails, but never panics; after a success every size can be
    /// converted.
    #[test]
    fn damaged_files_do_no_harm(disk_file: bool, at: usize, cut: bool, byte in 0x20u8..0x7f, size: u64) {
        let mut text = if disk_file { disk() } else { ssd() }.to_json().into_bytes();
        let at = at % text.len();
        if cut {
            text.truncate(at);
        } else {
            text[at] = byte;
        }
        if let Ok(profile) = StorageProfile::from_json(std::str::from_utf8(&text).unwrap()) {
            let mut model = profile.work_model();
            for offset in [None, Some(0), Some(size), Some(u64::MAX)] {
                let request = Request { offset, ..request(Op::Write, size) };
                proptest::prop_assert!(model.work(&request).0 > 0 || size == 0);
            }
        }
    }
}
