//! Real traces, if present: the readers against known properties of the files.

use std::path::PathBuf;
use trace::{self as trace, OpenOptions, TraceError, TraceFormat, TraceWriter, stats};

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
        assert_eq!(reader.format(), TraceFormat::ArrivalHex, "{}", path.display());
        let requests: Vec<_> = reader.collect::<Result<_, _>>().expect("reads");
        let first = requests[0].arrival;
        let last = requests[requests.len() - 1].arrival;
        let span_s = (last - first).as_secs();
        assert!((500.0..=605.0).contains(&span_s), "{}: {span_s} s", path.display());
        assert!(requests.iter().all(|r| r.size.0 > 0 && r.offset.is_none()));
    }
}

#[test]
fn an_nvme_log_with_other_column_names_is_read_as_csv() {
    let Some(path) = testkit::shared("data/windows_boot_nvme/io.csv.gz") else { return };
    let reader = trace::open(&path, &OpenOptions::default()).expect("opens");
    assert_eq!(reader.format(), TraceFormat::Csv);
    let requests: Vec<_> = reader.collect::<Result<_, _>>().expect("reads");
    assert_eq!(requests.len(), 172_287);
    let first = requests[0];
    assert_eq!((first.arrival.0, first.size.0, first.offset), (1_079_943_800, 512, Some(0)));
    assert_eq!(first.response.map(|r| r.0), Some(87_200));
    // The squared variation that its publisher states, about 467.
    let stats = stats::collect(requests.iter().copied().map(Ok::<_, TraceError>)).expect("sorted");
    let scv = stats.expect("not empty").interarrival_scv.expect("many requests");
    assert!((scv - 467.0).abs() < 1.0, "{scv}");
    assert_eq!(requests.iter().filter(|r| r.op == model::Op::Read).count(), 156_028);
}

/// Rates and dispersions of the whole against sums over all bins made by hand.
#[test]
fn statistics_of_a_real_trace_equal_their_definitions() {
    let Some(path) = testkit::shared("traces/trace0036.csv.gz") else { return };
    let read = || trace::open(&path, &OpenOptions::default()).expect("opens");
    let stats = stats::collect(read()).expect("reads").expect("not empty");
    let arrivals: Vec<u64> = read().map(|request| request.expect("reads").arrival.0).collect();
    let first = arrivals[0];
    for at in &stats.binned_counts {
        let bins = usize::try_from((arrivals[arrivals.len() - 1] - first) / at.bin_length.0).expect("few");
        let mut counts = vec![0.0; bins];
        for arrival in &arrivals {
            let bin = usize::try_from((arrival - first) / at.bin_length.0).expect("few");
            if let Some(count) = counts.get_mut(bin) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / bins as f64;
        let variance =
            counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / (bins - 1) as f64;
        let peak = counts.iter().fold(0.0f64, |most, &count| most.max(count));
        assert!(
            (at.dispersion.expect("many bins") - variance / mean).abs() < 1e-9 * variance / mean,
            "{at:?}"
        );
        assert!((at.peak_to_mean.expect("many bins") - peak / mean).abs() < 1e-9, "{at:?}");
    }
}

#[test]
fn real_traces_survive_the_native_format() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in shared_traces().into_iter().step_by(10) {
        let read = |path| trace::open(path, &OpenOptions::default()).expect("opens");
        let copy = folder.path().join("copy.parquet");
        let mut writer = TraceWriter::create(&copy, TraceFormat::Parquet).expect("creates");
        read(&path).for_each(|request| writer.write(&request.expect("reads")).expect("writes"));
        writer.finish().expect("finishes");
        assert!(read(&path).map(Result::unwrap).eq(read(&copy).map(Result::unwrap)), "{}", path.display());
    }
}
