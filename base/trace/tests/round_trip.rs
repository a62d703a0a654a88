//! Written traces read back as the same requests, up to the precision of the format.

mod common;

use common::{Folder, read, requests, write};
use model::Request;
use proptest::prelude::*;
use trace::{OpenOptions, TraceErrorKind, TraceFormat, TraceWriter};
use units::Nanos;

/// Returns what `format` keeps of `requests`, by its documentation.
fn kept(format: TraceFormat, requests: &[Request]) -> Vec<Request> {
    let ticks = |time: Nanos, tick: u64| Nanos(time.0 / tick * tick);
    let first = requests[0].arrival;
    let keep = |request: &Request| {
        let mut kept = *request;
        match format {
            TraceFormat::ArrivalHex => (kept.offset, kept.response) = (None, None),
            TraceFormat::Msr => {
                kept.arrival = ticks(request.arrival, 100) - ticks(first, 100);
                kept.offset = Some(request.offset.unwrap_or(0));
                kept.response = Some(ticks(request.response.unwrap_or(Nanos::ZERO), 100));
            }
            TraceFormat::Spc => {
                kept.offset = Some(request.offset.unwrap_or(0) / 512 * 512);
                kept.response = None;
            }
            TraceFormat::Fio => {
                kept.arrival = ticks(request.arrival, 1000);
                kept.offset = Some(request.offset.unwrap_or(0));
                kept.response = None;
            }
            _ => {}
        }
        kept
    };
    requests.iter().map(keep).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_writable_format_round_trips(requests in requests(1..60)) {
        let folder = Folder::new();
        for format in TraceFormat::ALL.into_iter().filter(|format| format.is_writable()) {
            for ending in ["", ".gz", ".zst"] {
                if format == TraceFormat::Parquet && !ending.is_empty() {
                    continue;
                }
                let path = folder.file(&format!("trace{ending}"));
                prop_assert_eq!(write(&path, format, &requests).unwrap(), requests.len() as u64);
                let reader = trace::open(&path, &OpenOptions::default()).unwrap();
                prop_assert_eq!(reader.format(), format);
                let back: Vec<Request> = reader.collect::<Result<_, _>>().unwrap();
                prop_assert_eq!(back, kept(format, &requests));
            }
        }
    }
}

#[test]
fn values_at_the_edges_survive_in_the_exact_formats() {
    let edge = Request {
        arrival: Nanos(u64::MAX),
        size: units::Bytes(u64::MAX),
        op: model::Op::Write,
        offset: Some(u64::MAX),
        response: Some(Nanos(u64::MAX)),
    };
    let folder = Folder::new();
    for format in [TraceFormat::Csv, TraceFormat::Parquet] {
        let path = folder.file("edge");
        write(&path, format, &[edge]).unwrap();
        assert_eq!(read(&path, &OpenOptions::default()).unwrap(), [edge]);
    }
    let error = write(&folder.file("msr"), TraceFormat::Msr, &[edge]).unwrap_err();
    assert!(matches!(error.kind(), TraceErrorKind::Unsupported(TraceFormat::Msr, _)), "{error}");
}

#[test]
fn many_row_groups_read_back_in_order() {
    let folder = Folder::new();
    let path = folder.file("long.parquet");
    let request = |n: u64| Request {
        arrival: Nanos(n * 10),
        size: units::Bytes(n % 7 * 512),
        op: if n.is_multiple_of(3) { model::Op::Read } else { model::Op::Write },
        offset: (n.is_multiple_of(5)).then_some(n),
        response: (n.is_multiple_of(2)).then_some(Nanos(n)),
    };
    let mut writer = TraceWriter::create(&path, TraceFormat::Parquet).unwrap();
    for n in 0..300_001 {
        writer.write(&request(n)).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 300_001);
    let reader = trace::open(&path, &OpenOptions::default()).unwrap();
    let mut count = 0;
    for (n, back) in reader.enumerate() {
        assert_eq!(back.unwrap(), request(n as u64));
        count += 1;
    }
    assert_eq!(count, 300_001);
}

#[test]
fn nothing_is_left_behind_and_the_old_file_stays_when_writing_fails() {
    let folder = Folder::new();
    let path = folder.file("trace.csv");
    std::fs::write(&path, "precious").unwrap();
    let late = Request {
        arrival: Nanos(5),
        size: units::Bytes(1),
        op: model::Op::Read,
        offset: None,
        response: None,
    };
    let early = Request { arrival: Nanos(4), ..late };
    for format in [TraceFormat::Csv, TraceFormat::Parquet] {
        let error = write(&path, format, &[late, early]).unwrap_err();
        assert!(matches!(error.kind(), TraceErrorKind::Unsorted { .. }), "{error}");
        let error = write(&path, format, &[]).unwrap_err();
        assert!(matches!(error.kind(), TraceErrorKind::Empty), "{error}");
        let mut dropped = TraceWriter::create(&path, format).unwrap();
        dropped.write(&late).unwrap();
        drop(dropped);
        assert_eq!(folder.names(), ["trace.csv"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}

#[test]
fn leftovers_of_killed_writers_go_and_those_of_living_ones_stay() {
    if !std::path::Path::new("/proc/self").exists() {
        return testkit::skip("no /proc to tell which processes live");
    }
    let folder = Folder::new();
    // No process has the largest id; the first process always lives.
    for name in
        [".trace.csv.4294967295-0.partial", ".trace.csv.1-0.partial", ".other.csv.4294967295-7.partial"]
    {
        std::fs::write(folder.file(name), "half").unwrap();
    }
    drop(TraceWriter::create(&folder.file("trace.csv"), TraceFormat::Csv).unwrap());
    assert_eq!(folder.names(), [".other.csv.4294967295-7.partial", ".trace.csv.1-0.partial"]);
}
