//! Real traces, where they are present: the readers against what is known of the files.

use std::path::PathBuf;
use tailwright_trace::{self as trace, Format, OpenOptions};

fn shared_traces() -> Vec<PathBuf> {
    let Some(folder) = testkit::shared("traces") else { return Vec::new() };
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".csv.gz"));
    files.sort();
    files
}

#[test]
fn every_shared_trace_is_detected_sorted_and_about_ten_minutes_long() {
    for path in shared_traces() {
        let reader = trace::open(&path, &OpenOptions::default()).expect("opens");
        assert_eq!(reader.format(), Format::ArrivalHex, "{}", path.display());
        let requests: Vec<_> = reader.collect::<Result<_, _>>().expect("reads");
        let (first, last) = (requests[0].arrival, requests[requests.len() - 1].arrival);
        let span_s = (last - first).as_secs();
        assert!((500.0..=605.0).contains(&span_s), "{}: {span_s} s", path.display());
        assert!(requests.iter().all(|r| r.size.0 > 0 && r.offset.is_none()));
    }
}

#[test]
fn an_nvme_log_with_other_column_names_is_read_as_csv() {
    let Some(path) = testkit::shared("data/windows_boot_nvme/io.csv.gz") else { return };
    let reader = trace::open(&path, &OpenOptions::default()).expect("opens");
    assert_eq!(reader.format(), Format::Csv);
    let requests: Vec<_> = reader.collect::<Result<_, _>>().expect("reads");
    assert_eq!(requests.len(), 172_287);
    let first = requests[0];
    assert_eq!((first.arrival.0, first.size.0, first.offset), (1_079_943_800, 512, Some(0)));
    assert_eq!(first.response.map(|r| r.0), Some(87_200));
    assert_eq!(requests.iter().filter(|r| r.op == model::Op::Read).count(), 156_028);
}
