//! The recording of a disk: its format, and the service times of I/Os that had the disk to themselves.

use crate::context::FigureError;
use crate::data_file::{data_error, read_rows};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::path::Path;
use units::Nanos;

/// The recording, relative to the folder of data.
pub(super) const FILE: &str = "data/windows_boot_nvme/io.csv.gz";
/// Largest difference of equal times, which are recorded to 0.1 µs.
const TIME_RESOLUTION_NS: u64 = 200;
/// Classes with fewer isolated I/Os than this are left out.
const SAMPLES_MIN: usize = 10;

/// An I/O as it was recorded.
pub(super) struct RecordedIo {
    pub(super) arrival: Nanos,
    pub(super) end: Nanos,
    pub(super) response: Nanos,
    pub(super) service: Nanos,
    bytes: u64,
    is_read: bool,
    /// True if no other I/O was at the disk at its arrival or at its completion.
    is_isolated: bool,
}

/// Reads the recording, which is in order of arrival.
///
/// # Errors
/// When the file cannot be read or has another form.
pub(super) fn read(path: &Path) -> Result<Vec<RecordedIo>, FigureError> {
    let ios = read_rows(path, FILE, "nine columns", parse_line)?;
    if ios.is_sorted_by_key(|io| io.arrival) {
        Ok(ios)
    } else {
        Err(data_error(FILE, "expected I/Os by arrival"))
    }
}

/// Parses the columns `t_init_s,t_complete_s,io_us,service_us,bytes,offset,op,qd_init,qd_complete`. The
/// last two are the numbers of other I/Os at the disk at arrival and at completion.
fn parse_line(line: &str) -> Option<RecordedIo> {
    let fields: Vec<&str> = line.split(',').collect();
    let [arrival, end, response, service, bytes, _, op, before, after] = fields[..] else { return None };
    Some(RecordedIo {
        arrival: parse_time(arrival, "s")?,
        end: parse_time(end, "s")?,
        response: parse_time(response, "us")?,
        service: parse_time(service, "us")?,
        bytes: bytes.parse().ok()?,
        is_read: op == "R",
        is_isolated: before == "0" && after == "0",
    })
}

fn parse_time(number: &str, unit: &str) -> Option<Nanos> {
    format!("{number}{unit}").parse().ok()
}

/// The share of I/Os whose recorded service time is the time from the later of arrival and previous completion to
/// completion.
pub(super) fn share_since_previous(ios: &[RecordedIo]) -> f64 {
    let mut by_end: Vec<&RecordedIo> = ios.iter().collect();
    by_end.sort_by_key(|io| io.end);
    let mut previous = Nanos::ZERO;
    let mut same = 0;
    for io in by_end {
        let since = io.end.saturating_sub(io.arrival.max(previous));
        previous = io.end;
        same += usize::from(since.0.abs_diff(io.service.0) <= TIME_RESOLUTION_NS);
    }
    same as f64 / ios.len() as f64
}

/// Direction (true: read), and the power of two of the size.
type IoClass = (bool, u32);

/// Response times of isolated I/Os by class. An isolated I/O does not wait, so its response time is a service time.
pub(super) struct IsolatedIos(BTreeMap<IoClass, Vec<Nanos>>);

impl IsolatedIos {
    /// Collects the isolated I/Os of a recording. `None` when no class of reads or none of writes has enough.
    pub(super) fn collect(ios: &[RecordedIo]) -> Option<Self> {
        let mut classes: BTreeMap<IoClass, Vec<Nanos>> = BTreeMap::new();
        for io in ios.iter().filter(|io| io.is_isolated) {
            classes.entry(class_of(io)).or_default().push(io.response);
        }
        classes.retain(|_, responses| responses.len() >= SAMPLES_MIN);
        let has_reads = classes.keys().any(|class| class.0);
        let has_writes = classes.keys().any(|class| !class.0);
        (has_reads && has_writes).then_some(Self(classes))
    }

    /// Returns the number of isolated I/Os.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// A function that draws a service time for an I/O from its class, or, if that has none, from the next smaller size
    /// or else the next larger one in the same direction.
    pub(super) fn sampler(&self, seed: u64) -> impl FnMut(&RecordedIo) -> Nanos {
        let mut random = StdRng::seed_from_u64(seed);
        move |io| {
            let (read, size) = class_of(io);
            let smaller = self.0.range((read, 0)..=(read, size)).next_back();
            let nearest = smaller.or_else(|| self.0.range((read, size)..=(read, u32::MAX)).next());
            let (_, responses) = nearest.expect("reads and writes have a class");
            responses[random.random_range(0..responses.len())]
        }
    }
}

fn class_of(io: &RecordedIo) -> IoClass {
    (io.is_read, io.bytes.max(1).ilog2())
}
