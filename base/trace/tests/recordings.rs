//! Recordings: read back by workload and client, in bounded space, and after a kill at any byte.

mod common;

use common::Folder;
use model::{Op, RequestOutcome};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use trace::recording::{RecordableRequest, RecordingSettings, RecordingWriter};
use trace::{OpenOptions, SplitKey, TraceErrorKind, files_of, observations, open, owners_of};
use units::{Bytes, Nanos};

/// An instant of the year 2023.
const ORIGIN: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// Returns the request with this number: one each millisecond, of two workloads in turn, answered after
/// at most 20 ms.
fn request(number: u64) -> RecordableRequest<'static> {
    let response = Nanos(MS + number % 7 * 3 * MS);
    let is_mail = number.is_multiple_of(2);
    RecordableRequest {
        arrival: Nanos(ORIGIN + number * MS),
        size: Bytes(512 * (1 + number % 5)),
        op: if number.is_multiple_of(3) { Op::Write } else { Op::Read },
        offset: (!number.is_multiple_of(4)).then_some(number * 4096),
        response,
        waited: Nanos(response.0 / 4),
        workload: if is_mail { "mail" } else { "web" },
        client: Some(if is_mail { "10.0.0.1" } else { "fd00::2" }.parse().expect("an address")),
    }
}

/// Returns the numbers of requests in the order of their answers.
fn by_answer(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_by_key(|number| (request(*number).arrival + request(*number).response, *number));
    numbers
}

fn settings() -> RecordingSettings {
    let flush_every = Nanos(10 * MS);
    RecordingSettings { flush_every, segment_time: Nanos(500 * MS), ..RecordingSettings::default() }
}

/// Records these requests, each when it is answered.
fn record(folder: &Path, numbers: &[u64]) {
    let mut writer = RecordingWriter::create(folder, settings()).expect("the folder is ours");
    let mut now = Nanos::ZERO;
    for number in numbers {
        let request = request(*number);
        now = request.arrival + request.response - Nanos(ORIGIN);
        writer.write(&request, now).expect("there is room");
    }
    assert_eq!(writer.finish(now).expect("there is room"), numbers.len() as u64);
}

/// Returns the arrivals of a trace in milliseconds, or its error.
fn arrivals(name: &Path) -> Result<Vec<u64>, TraceErrorKind> {
    let reader = open(name, &OpenOptions::default()).expect("it is there");
    let mut arrivals = Vec::new();
    for request in reader {
        match request {
            Ok(request) => arrivals.push(request.arrival.0 / MS),
            Err(error) => {
                return Err(match error.kind() {
                    TraceErrorKind::SeveralWorkloads { first, second } => {
                        TraceErrorKind::SeveralWorkloads { first: first.clone(), second: second.clone() }
                    }
                    TraceErrorKind::NoSuchWorkload { name, known } => {
                        TraceErrorKind::NoSuchWorkload { name: name.clone(), known: known.clone() }
                    }
                    _ => TraceErrorKind::Truncated(error.to_string()),
                });
            }
        }
    }
    Ok(arrivals)
}

fn named(path: &Path, selection: &str) -> PathBuf {
    PathBuf::from(format!("{}#{selection}", path.display()))
}

#[test]
fn each_workload_and_client_is_a_trace() {
    let folder = Folder::new();
    let path = folder.file("recording");
    record(&path, &by_answer(3000));
    assert!(files_of(&named(&path, "mail")).unwrap().len() >= 6, "a segment for each half of a second");
    let all: Vec<u64> = (0..3000).collect();
    assert_eq!(arrivals(&named(&path, "*")).unwrap(), all);
    let mail: Vec<u64> = (0..1500).map(|n| 2 * n).collect();
    for name in ["mail", "client=10.0.0.1"] {
        assert_eq!(arrivals(&named(&path, name)).unwrap(), mail, "{name}");
    }
    let web = arrivals(&named(&path, "web")).unwrap();
    assert_eq!((web[0], web.len()), (0, 1500), "a trace counts from its first request");
    let several = arrivals(&path).expect_err("two workloads");
    assert!(matches!(several, TraceErrorKind::SeveralWorkloads { .. }));
    let nobody = arrivals(&named(&path, "main")).expect_err("no such workload");
    let known = matches!(nobody, TraceErrorKind::NoSuchWorkload { known, .. } if known == "mail, web");
    assert!(known);
    let owners = owners_of(&path, SplitKey::Client, &OpenOptions::default()).unwrap().expect("it has some");
    assert_eq!(
        owners.requests.into_iter().collect::<Vec<_>>(),
        [("10.0.0.1".into(), 1500), ("fd00::2".into(), 1500)]
    );
}

#[test]
fn a_recording_goes_on_after_a_restart() {
    let folder = Folder::new();
    let path = folder.file("recording");
    let answers = by_answer(600);
    record(&path, &answers[..200]);
    record(&path, &answers[200..]);
    assert_eq!(arrivals(&named(&path, "*")).unwrap(), (0..600).collect::<Vec<_>>());
}

#[test]
fn a_recording_is_observations_with_the_time_in_the_proxy() {
    let folder = Folder::new();
    let path = folder.file("recording");
    record(&path, &by_answer(100));
    let read = observations::read(&path).unwrap();
    assert_eq!(read.stages, ["proxy", "server"]);
    assert_eq!(read.requests.len(), 100);
    for ((number, row), stages) in (0..).zip(&read.requests).zip(read.stage_times.chunks(2)) {
        let expected = request(number);
        assert_eq!(stages, [expected.waited, expected.response - expected.waited]);
        assert_eq!(row.intended, Nanos(number * MS));
        assert_eq!(row.outcome, RequestOutcome::Done(row.intended + expected.response));
        assert_eq!(row.sent, row.intended);
        assert_eq!(read.workloads[row.workload as usize], expected.workload);
    }
}

#[test]
fn files_of_observations_are_traces() {
    let folder = Folder::new();
    let recording = folder.file("recording");
    record(&recording, &by_answer(100));
    let mut observed = observations::read(&recording).unwrap();
    observed.requests[8].outcome = RequestOutcome::Lost;
    let path = folder.file("run.parquet");
    observations::write(&path, &observed).unwrap();
    assert!(arrivals(&path).is_err(), "two workloads");
    let mail: Vec<_> =
        open(&named(&path, "mail"), &OpenOptions::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(mail.len(), 50);
    assert_eq!((mail[3].arrival, mail[3].response), (Nanos(6 * MS), Some(request(6).response)));
    assert_eq!(mail[4].response, None, "nobody has answered it");
    assert_eq!(arrivals(&named(&path, "*")).unwrap().len(), 100);
    assert!(arrivals(&named(&path, "x")).is_err());
    // A plain trace does not give the owners of its requests.
    let plain = folder.file("plain.csv");
    std::fs::write(&plain, "arrival_ns,size_bytes,op\n1,2,read\n").unwrap();
    let error = open(&named(&plain, "mail"), &OpenOptions::default()).expect_err("a csv has no workloads");
    assert!(error.to_string().contains("csv does not say"), "{error}");
}

/// Returns the number of requests left of a truncated segment.
fn left_of(segment: &[u8], folder: &Folder) -> usize {
    let path = folder.file("cut");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("00000001.csv.zst"), segment).unwrap();
    let reader = open(&named(&path, "*"), &OpenOptions::default()).unwrap();
    // The only possible error is an empty trace.
    let read: Result<Vec<_>, _> = reader.collect();
    read.map_or_else(
        |error| matches!(error.kind(), TraceErrorKind::Empty).then_some(0).unwrap(),
        |all| all.len(),
    )
}

#[test]
fn a_kill_at_any_byte_loses_the_open_frame_and_no_more() {
    let folder = Folder::new();
    let path = folder.file("recording");
    record(&path, &by_answer(120));
    let segment = std::fs::read(path.join("00000001.csv.zst")).unwrap();
    let mut before = 0;
    let mut largest_step = 0;
    for len in 0..=segment.len() {
        let left = left_of(&segment[..len], &folder);
        assert!(left >= before, "more bytes, fewer requests at {len}");
        largest_step = largest_step.max(left - before);
        before = left;
    }
    assert_eq!(before, 120);
    assert!(largest_step <= 30, "a frame has ten milliseconds of answers: {largest_step}");
}

#[test]
fn a_segment_that_was_cut_off_is_followed_by_the_next_one() {
    let folder = Folder::new();
    let path = folder.file("recording");
    let answers = by_answer(400);
    record(&path, &answers[..200]);
    let first = path.join("00000001.csv.zst");
    let whole = std::fs::read(&first).unwrap();
    std::fs::write(&first, &whole[..whole.len() - 5]).unwrap();
    record(&path, &answers[200..]);
    let mut reader = open(&named(&path, "*"), &OpenOptions::default()).unwrap();
    let count = reader.by_ref().map(Result::unwrap).count();
    assert!((375..400).contains(&count), "{count}");
    assert!(reader.remarks()[0].contains("end early"), "{:?}", reader.remarks());
}

#[test]
fn damage_is_said_with_its_segment() {
    let folder = Folder::new();
    let path = folder.file("recording");
    record(&path, &by_answer(100));
    let first = path.join("00000001.csv.zst");
    let mut bytes = std::fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(&first, &bytes).unwrap();
    let read: Result<Vec<_>, _> = open(&named(&path, "*"), &OpenOptions::default()).unwrap().collect();
    let error = read.expect_err("a checksum is wrong");
    assert!(error.to_string().contains("00000001.csv.zst"), "{error}");
    let lenient = OpenOptions { lenient: true, ..OpenOptions::default() };
    assert!(open(&named(&path, "*"), &lenient).unwrap().all(|request| request.is_ok()));
}

#[test]
fn disk_space_is_bounded_for_as_long_as_it_lasts() {
    let folder = Folder::new();
    let path = folder.file("recording");
    let disk_max = RecordingSettings::DISK_MIN;
    let settings = RecordingSettings { disk_max, segment_time: Nanos(u64::MAX), ..settings() };
    let mut writer = RecordingWriter::create(&path, settings).expect("the folder is ours");
    let numbers = by_answer(120_000);
    for (count, number) in (0..).zip(&numbers) {
        let request = request(*number);
        writer.write(&request, request.arrival + request.response - Nanos(ORIGIN)).expect("there is room");
        if count % 20_000 == 0 {
            let held: u64 =
                files_of(&path).unwrap().iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
            assert!(held <= disk_max.0, "{held} bytes");
        }
    }
    writer.finish(Nanos(u64::MAX / 2)).unwrap();
    let left = arrivals(&named(&path, "*")).unwrap();
    let span = left.last().unwrap() - left[0];
    // The oldest segment begins in the middle of answers that are up to 20 ms apart.
    let without_gaps = span + 1 - 20..=span + 1;
    assert!(without_gaps.contains(&(left.len() as u64)), "{} requests in {span} ms", left.len());
    assert!(left.len() < 120_000, "the oldest are gone");
}

#[test]
fn places_that_cannot_be_written_are_said_before() {
    let folder = Folder::new();
    std::fs::write(folder.file("file"), "x").unwrap();
    for name in ["file", "file/below"] {
        let error = RecordingWriter::create(&folder.file(name), settings()).expect_err("it is a file");
        assert!(error.to_string().contains(name) && !error.hint().is_empty(), "{error}");
    }
    std::fs::create_dir(folder.file("empty")).unwrap();
    let error = open(&folder.file("empty"), &OpenOptions::default()).expect_err("nothing is there");
    assert!(error.to_string().contains("without the segments of a recording"), "{error}");
}

#[test]
fn a_folder_has_one_writer_at_a_time() {
    let folder = Folder::new();
    let path = folder.file("recording");
    let mut first = RecordingWriter::create(&path, settings()).expect("the folder is ours");
    let error = RecordingWriter::create(&path, settings()).expect_err("it has a writer");
    assert!(error.hint().contains("another folder"), "{error}: {}", error.hint());
    first.finish(Nanos::ZERO).unwrap();
    drop(first);
    record(&path, &by_answer(10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn arbitrary_segments_never_panic(
        content in proptest::collection::vec(any::<u8>(), 0..300),
        text in "(arrival_unix_ns,size_bytes,op,offset,response_ns,waited_ns,workload,client\n)?([0-9]{1,20},[0-9]{1,3},(read|write|x),[0-9]{0,3},[0-9]{1,20},[0-9],(a|b|%2|%2C),\n){0,6}",
    ) {
        let folder = Folder::new();
        for content in [content, text.into_bytes()] {
            std::fs::create_dir_all(folder.file("r")).unwrap();
            std::fs::write(folder.file("r/00000001.csv.zst"), &content).unwrap();
            drop(observations::read(&folder.file("r")));
            for name in ["", "#*", "#a"] {
                let name = PathBuf::from(format!("{}{name}", folder.file("r").display()));
                for lenient in [false, true] {
                    let options = OpenOptions { lenient, ..OpenOptions::default() };
                    if let Ok(reader) = open(&name, &options) {
                        reader.take_while(Result::is_ok).for_each(drop);
                    }
                }
            }
        }
    }
}
