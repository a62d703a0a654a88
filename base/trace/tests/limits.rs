//! Token buckets of requests in place of a trace.

use model::{Op, Request};
use std::path::Path;
use trace::{OpenOptions, TraceError, TraceErrorKind, TraceFormat, TracePosition, read_bytes};
use units::Nanos;

/// Detected format and requests.
fn read(content: &[u8]) -> Result<(TraceFormat, Vec<Request>), TraceError> {
    let reader = read_bytes(content.to_vec(), Path::new("example"), &OpenOptions::default())?;
    let format = reader.format();
    Ok((format, reader.collect::<Result<_, _>>()?))
}

/// The most work in any interval that begins with an arrival, by length: every pair of requests is looked at.
fn most_within(requests: &[Request], work: impl Fn(&Request) -> u64, length_ns: u64) -> u64 {
    let within = |first: usize| {
        let from = requests[first].arrival.0;
        let rest = requests[first..].iter();
        rest.take_while(|request| request.arrival.0 - from <= length_ns).map(&work).sum()
    };
    (0..requests.len()).map(within).max().unwrap_or(0)
}

#[test]
fn limits_become_the_traffic_that_uses_them_up() {
    let text =
        "op,size_bytes,rate_per_s,burst_requests\nread,65536,500,200\nread,65536,2000,20\nwrite,4096,50,1\n";
    let (format, requests) = read(text.as_bytes()).unwrap();
    assert_eq!(format, TraceFormat::Limits);
    let reads = |request: &Request| u64::from(request.op == Op::Read);
    let writes = |request: &Request| u64::from(request.op == Op::Write);
    for length_ms in [0u64, 1, 10, 90, 120, 121, 300, 400] {
        let allowed = |rate: u64, burst: u64| burst + rate * length_ms / 1000;
        let length_ns = length_ms * 1_000_000;
        assert_eq!(most_within(&requests, reads, length_ns), allowed(500, 200).min(allowed(2000, 20)));
        assert_eq!(most_within(&requests, writes, length_ns), allowed(50, 1));
    }
    // Twice the 400 ms in which 200 requests come back, but a second at least.
    let last = requests.last().expect("there are some");
    assert_eq!((last.arrival, requests.len()), (Nanos(1_000_000_000), 550));
    let slow = "op,size_bytes,rate_per_s,burst_requests\nwrite,512,0.5,3\n";
    let arrivals: Vec<u64> =
        read(slow.as_bytes()).unwrap().1.iter().map(|r| r.arrival.0 / 1_000_000).collect();
    assert_eq!(arrivals, [0, 0, 0, 2000, 4000, 12_000]);
}

#[test]
fn limits_that_are_none_are_refused() {
    let header = "op,size_bytes,rate_per_s,burst_requests";
    for row in [
        "read,65536,500",
        "read,65536,0,1",
        "read,65536,500,0",
        "read,65536,0.0001,1",
        "seek,1,1,1",
        "read,1,1,1,1",
    ] {
        let error = read(format!("{header}\nwrite,1,1,1\n{row}\n").as_bytes()).unwrap_err();
        assert_eq!(error.position(), TracePosition::Line(3), "{error}");
        assert!(error.to_string().contains("expected read or write, a size"), "{error}");
        // Without the row the traffic would have less work, so a lenient reader has none of it either.
        let options = OpenOptions { lenient: true, ..OpenOptions::default() };
        let content = format!("{header}\nwrite,1,1,1\n{row}\n").into_bytes();
        let mut reader = read_bytes(content, Path::new("example"), &options).unwrap();
        assert!(matches!(reader.next().unwrap().unwrap_err().kind(), TraceErrorKind::Empty));
    }
    for row in ["read,1,6000000,1", "read,1,0.001,18446744073709551615", "read,1,18446744073709551,1"] {
        let error = read(format!("{header}\n{row}\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("within 5 million requests"), "{error}");
    }
    assert!(matches!(read(header.as_bytes()).unwrap_err().kind(), TraceErrorKind::Empty));
}
