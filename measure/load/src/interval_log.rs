//! Interval logs of HdrHistogram, which its tools plot and merge.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use model::Observations;
use std::fmt::Debug;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};
use units::Nanos;

/// Precision of a histogram: values are kept to three significant digits, the usual choice of the tools.
const SIGNIFICANT_DIGITS: u8 = 3;

/// Writes the latencies of one workload's answered requests, in nanoseconds from their intended times, as a log of
/// format V2 (compressed) with a histogram for each interval of intended time. `start` is the instant from which
/// observations count.
///
/// # Errors
/// When `out` cannot be written.
///
/// # Panics
/// When the interval is zero.
pub fn write_intervals(
    out: &mut dyn Write,
    observations: &Observations,
    workload: u32,
    interval: Nanos,
    start: SystemTime,
) -> io::Result<()> {
    assert!(interval > Nanos::ZERO, "an interval has a length");
    let mut out = out;
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    let name = &observations.workloads[workload as usize];
    builder.add_comment(&format!("[Latency of workload {name} in nanoseconds, from intended times]"));
    builder.with_start_time(start);
    builder.with_base_time(start);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    let mut histogram = Histogram::<u64>::new(SIGNIFICANT_DIGITS).expect("three digits are possible");
    let own = observations.requests.iter().filter(|request| request.workload == workload);
    let mut answered =
        own.filter_map(|request| Some((request.intended.0 / interval.0, request.latency()?.0))).peekable();
    while let Some((index, latency)) = answered.next() {
        // A histogram cannot hold zero.
        histogram.record(latency.max(1)).map_err(write_error)?;
        if answered.peek().is_none_or(|(next, _)| *next != index) {
            let since = Duration::from_nanos(index * interval.0);
            log.write_histogram(&histogram, since, Duration::from_nanos(interval.0), None)
                .map_err(write_error)?;
            histogram.reset();
        }
    }
    Ok(())
}

/// The errors of the histogram crate have no common type.
fn write_error(error: impl Debug) -> io::Error {
    io::Error::other(format!("{error:?}"))
}
