//! Speed of reading requests, against a parser that splits lines into strings, on the same bytes in the
//! same run; and the cost of other work on every request. Run with `cargo bench -p trace`.

use model::{Op, Request};
use std::hint::black_box;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Instant;
use trace::generate::{RateProcess, SizeMix, Synthetic};
use trace::{OpenOptions, TraceFormat, TraceWriter, merge, open, read_bytes, stats};
use units::{Bytes, Nanos};

const REQUESTS: usize = 1_000_000;
const ROUNDS: usize = 3;

fn requests() -> Vec<Request> {
    let sizes = SizeMix::new(vec![(Bytes(4096), 3.0), (Bytes(65_536), 1.0), (Bytes(512), 1.0)]).unwrap();
    let process = RateProcess::OnOff { sources: 20, rate_on: 500.0, on_s: 0.1, off_s: 0.9, shape: 1.4 };
    let duration = Nanos(u64::MAX);
    let synthetic = Synthetic { process, sizes, read_share: 0.7, duration, seed: 1 };
    let with_offset = |(n, mut request): (u64, Request)| {
        request.offset = Some(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24 << 9);
        request.response = Some(Nanos(100_000 + n % 1000 * 1000));
        request
    };
    (0..).zip(synthetic.requests().unwrap()).map(with_offset).take(REQUESTS).collect()
}

/// Returns the best time of several rounds, seconds, and the result of the work.
fn time<T>(mut work: impl FnMut() -> T) -> (f64, T) {
    let mut best: Option<(f64, T)> = None;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let result = black_box(work());
        let elapsed = start.elapsed().as_secs_f64();
        if best.as_ref().is_none_or(|(least, _)| elapsed < *least) {
            best = Some((elapsed, result));
        }
    }
    best.expect("at least one round")
}

/// The straightforward parser: one `String` a line, split at commas.
fn naive(format: TraceFormat, content: &[u8]) -> u64 {
    let mut bytes = 0;
    for line in content.lines() {
        let line = line.unwrap();
        let fields: Vec<&str> = line.trim().split(',').collect();
        let op = |read: &str, text: &str| if text == read { Op::Read } else { Op::Write };
        let number = |text: &str| text.parse::<u64>();
        let (arrival, size, op) = match format {
            TraceFormat::ArrivalHex => {
                let size = u64::from_str_radix(fields[1].trim_start_matches("0x"), 16);
                (number(fields[0]), size, op("DiskRead", fields[2]))
            }
            TraceFormat::Msr => {
                (number(fields[0]).map(|t| t.wrapping_mul(100)), number(fields[5]), op("Read", fields[3]))
            }
            TraceFormat::Spc => {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
                let arrival = (fields[4].parse::<f64>().unwrap() * 1e9) as u64;
                (Ok(arrival), number(fields[2]), op("R", fields[3]))
            }
            _ => (number(fields[0]), number(fields[1]), op("read", fields[2])),
        };
        let (Ok(arrival), Ok(size)) = (arrival, size) else { continue };
        black_box((arrival, op));
        bytes += size;
    }
    bytes
}

fn total_bytes(reader: impl Iterator<Item = Result<Request, trace::TraceError>>) -> u64 {
    reader.map(|request| black_box(request.unwrap()).size.0).sum()
}

fn write(path: &Path, format: TraceFormat, requests: &[Request]) {
    let mut writer = TraceWriter::create(path, format).unwrap();
    requests.iter().for_each(|request| writer.write(request).unwrap());
    writer.finish().unwrap();
}

fn print_row(what: &str, seconds: f64, beside: Option<f64>) {
    let rate = REQUESTS as f64 / seconds / 1e6;
    let ratio = beside.map_or(String::new(), |other| format!("{:>8.1}x", other / seconds));
    println!("{what:<34} {rate:>8.1} M/s {ratio}");
}

fn main() {
    let requests = requests();
    let expected: u64 = requests.iter().map(|request| request.size.0).sum();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let options = OpenOptions::default();
    println!("{REQUESTS} requests                       requests/s  faster than String splitting");
    for format in [TraceFormat::ArrivalHex, TraceFormat::Csv, TraceFormat::Msr, TraceFormat::Spc] {
        write(&path, format, &requests);
        let content = std::fs::read(&path).unwrap();
        let (slow, sum) = time(|| naive(format, &content));
        assert_eq!(sum, expected);
        let (fast, sum) = time(|| total_bytes(open(&path, &options).unwrap()));
        assert_eq!(sum, expected);
        print_row(&format!("read {format}"), fast, Some(slow));
    }
    for format in [TraceFormat::Fio, TraceFormat::Parquet] {
        write(&path, format, &requests);
        let (fast, sum) = time(|| total_bytes(open(&path, &options).unwrap()));
        assert_eq!(sum, expected);
        print_row(&format!("read {format}"), fast, None);
    }
    for ending in ["gz", "zst"] {
        let compressed = PathBuf::from(format!("{}.{ending}", path.display()));
        write(&compressed, TraceFormat::ArrivalHex, &requests);
        let content = std::fs::read(&compressed).unwrap();
        let read = || total_bytes(read_bytes(content.clone(), Path::new("bench"), &options).unwrap());
        print_row(&format!("read arrival-hex.{ending}"), time(read).0, None);
    }
    for format in [TraceFormat::Csv, TraceFormat::Parquet] {
        print_row(&format!("write {format}"), time(|| write(&path, format, &requests)).0, None);
    }
    let stream = || requests.iter().copied().map(Ok::<Request, ()>);
    print_row("statistics", time(|| stats::collect(stream()).unwrap().unwrap().count).0, None);
    let parts = || (0..8).map(|part| stream().skip(part).step_by(8)).collect::<Vec<_>>();
    print_row("merge of 8", time(|| merge(parts()).filter(Result::is_ok).count()).0, None);
}
