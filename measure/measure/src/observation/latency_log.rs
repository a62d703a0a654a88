//! Latencies as an interval log of HdrHistogram, written while a server is observed.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use model::OperationError;
use observe::{ObservedRequest, RequestPoint};
use operation::files::GrowingFile;
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The time of a line of the log.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Values are kept to three significant digits, the usual choice of the tools.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A log of format V2 (compressed) with T6 − T1 in nanoseconds, and a line for each second in which a request ended.
pub(super) struct LatencyLog {
    file: GrowingFile,
    serializer: V2DeflateSerializer,
    histogram: Histogram<u64>,
    /// The instant of the clock of requests from which seconds count.
    origin: u64,
    second: u64,
}

impl LatencyLog {
    /// Begins a log at this instant, which is `origin` by the clock of requests.
    pub(super) fn create(path: &Path, origin: u64) -> Result<Self, OperationError> {
        let mut file = GrowingFile::create(path, "latency log")?;
        let mut builder = IntervalLogWriterBuilder::new();
        let start = SystemTime::now();
        builder.add_comment("[Latency T6 - T1 in nanoseconds]").with_start_time(start).with_base_time(start);
        let mut serializer = V2DeflateSerializer::new();
        let begun = builder.begin_log_with(&mut file, &mut serializer).map(drop);
        begun.map_err(|error| file.failed(error))?;
        let histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are possible");
        Ok(Self { file, serializer, histogram, origin, second: 0 })
    }

    /// Counts a request. One that is reported late counts in the second that is open.
    pub(super) fn take(&mut self, request: &ObservedRequest) -> Result<(), OperationError> {
        let second = request.at(RequestPoint::Transmitted).saturating_sub(self.origin) / INTERVAL_NS;
        if second > self.second {
            self.write_second()?;
            self.second = second;
        }
        // A histogram cannot hold zero.
        self.histogram.record(request.latency_from_stack().max(1)).map_err(|error| self.file.failed(error))
    }

    /// Completes the file and puts it in its place.
    pub(super) fn finish(mut self) -> Result<(), OperationError> {
        self.write_second()?;
        self.file.finish()
    }

    fn write_second(&mut self) -> Result<(), OperationError> {
        if self.histogram.is_empty() {
            return Ok(());
        }
        let since = Duration::from_secs(self.second);
        let length = Duration::from_nanos(INTERVAL_NS);
        // A writer without headers continues the log.
        let line = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.file, &mut self.serializer)
            .map_err(|error| Box::new(error) as Box<dyn Display>)
            .and_then(|mut log| {
                log.write_histogram(&self.histogram, since, length, None)
                    .map_err(|error| Box::new(error) as Box<dyn Display>)
            });
        line.map_err(|error| self.file.failed(error))?;
        self.histogram.reset();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn readers_of_such_logs_find_every_request() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live.hlog");
        let origin = 77_000_000_000;
        let mut log = LatencyLog::create(&path, origin).expect("the folder is there");
        // Ten requests in each of the seconds 0, 1 and 5, of 1 to 10 ms; and one of no time at all.
        for second in [0, 1, 5] {
            for n in 1..=10 {
                let at = origin + second * INTERVAL_NS + n;
                log.take(&request(at, at, n * 1_000_000)).expect("there is room");
            }
        }
        let at = origin + 5 * INTERVAL_NS;
        log.take(&request(at, at, 0)).expect("there is room");
        assert!(!path.exists(), "whole or not there");
        log.finish().expect("there is room");
        let text = std::fs::read(&path).expect("it is there");
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            if let LogEntry::Interval(entry) = entry.expect("every line is of a log") {
                let bytes = base64_bytes(entry.encoded_histogram());
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
                found.push((entry.start_timestamp().as_secs(), histogram.len(), histogram.max() / 1_000_000));
            }
        }
        assert_eq!(found, [(0, 10, 10), (1, 10, 10), (5, 11, 10)]);
        let head = String::from_utf8(text).expect("a log is text");
        assert!(head.contains("#[StartTime: ") && head.contains("#[BaseTime: "), "{head}");
    }

    /// The bytes of a text in base 64.
    fn base64_bytes(text: &str) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => u32::from(byte - b'A'),
            b'a'..=b'z' => u32::from(byte - b'a') + 26,
            b'0'..=b'9' => u32::from(byte - b'0') + 52,
            b'+' => 62,
            _ => 63,
        };
        let mut bytes = Vec::new();
        for four in text.as_bytes().chunks(4) {
            let padding = four.iter().filter(|byte| **byte == b'=').count();
            let bits =
                four.iter().fold(0, |bits, byte| bits << 6 | if *byte == b'=' { 0 } else { digit(*byte) });
            bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
        }
        bytes
    }
}
