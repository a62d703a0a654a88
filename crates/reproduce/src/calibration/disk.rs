//! The recording of a disk: read, and the service of I/Os that were alone.

use super::FILE;
use crate::context::FigureError;
use flate2::read::GzDecoder;
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use units::Nanos;

pub(super) struct Io {
    pub(super) arrival: Nanos,
    pub(super) end: Nanos,
    pub(super) response: Nanos,
    pub(super) service: Nanos,
    bytes: u64,
    read: bool,
    /// Nobody else was there when it came, and when it went.
    alone: bool,
}

/// By arrival.
pub(super) fn read(path: &Path) -> Result<Vec<Io>, FigureError> {
    let file = File::open(path).map_err(|error| fault(&error.to_string()))?;
    let mut ios = Vec::new();
    for (number, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate().skip(1) {
        let line = line.map_err(|error| fault(&error.to_string()))?;
        let wrong = || fault(&format!("line {}: expected nine columns, found '{line}'", number + 1));
        ios.push(io(&line).ok_or_else(wrong)?);
    }
    if ios.is_sorted_by_key(|io| io.arrival) { Ok(ios) } else { Err(fault("expected I/Os by arrival")) }
}

/// `t_init_s,t_complete_s,io_us,service_us,bytes,offset,op,qd_init,qd_complete`.
fn io(line: &str) -> Option<Io> {
    let fields: Vec<&str> = line.split(',').collect();
    let [arrival, end, response, service, bytes, _, op, before, after] = fields[..] else { return None };
    let time = |text: &str, unit| format!("{text}{unit}").parse().ok();
    Some(Io {
        arrival: time(arrival, "s")?,
        end: time(end, "s")?,
        response: time(response, "us")?,
        service: time(service, "us")?,
        bytes: bytes.parse().ok()?,
        read: op == "R",
        alone: before == "0" && after == "0",
    })
}

pub(super) fn fault(message: &str) -> FigureError {
    let error = OperationError::input(format_args!("{FILE}: {message}"));
    error.hint("--data gives the folder with the data that docs/reproduce.md describes").into()
}

/// The share of I/Os whose recorded service is end − the later of arrival and previous end, to 0.2 µs: times are
/// recorded to 0.1 µs.
pub(super) fn since_previous(ios: &[Io]) -> f64 {
    let mut by_end: Vec<&Io> = ios.iter().collect();
    by_end.sort_by_key(|io| io.end);
    let mut previous = Nanos::ZERO;
    let mut same = 0;
    for io in by_end {
        let since = io.end.saturating_sub(io.arrival.max(previous));
        previous = io.end;
        same += usize::from(since.0.abs_diff(io.service.0) <= 200);
    }
    same as f64 / ios.len() as f64
}

/// Reads or not, and the power of two of the size.
type Kind = (bool, u32);

/// Responses of I/Os that were alone, by kind: these are service and nothing else.
pub(super) struct Alone(BTreeMap<Kind, Vec<Nanos>>);

impl Alone {
    /// Kinds with fewer than ten are left out; `None` when reads or writes have none.
    pub(super) fn of(ios: &[Io]) -> Option<Self> {
        let mut kinds: BTreeMap<Kind, Vec<Nanos>> = BTreeMap::new();
        for io in ios.iter().filter(|io| io.alone) {
            kinds.entry(kind(io)).or_default().push(io.response);
        }
        kinds.retain(|_, responses| responses.len() >= 10);
        let some = |read| kinds.keys().any(|kind| kind.0 == read);
        (some(true) && some(false)).then_some(Self(kinds))
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Draws from an I/O's kind; without that from the next smaller size, or else the next larger.
    pub(super) fn sampler(&self, seed: u64) -> impl FnMut(&Io) -> Nanos {
        let mut random = StdRng::seed_from_u64(seed);
        move |io| {
            let (read, size) = kind(io);
            let smaller = self.0.range((read, 0)..=(read, size)).next_back();
            let found = smaller.or_else(|| self.0.range((read, size)..=(read, u32::MAX)).next());
            let (_, responses) = found.expect("reads and writes have some");
            responses[random.random_range(0..responses.len())]
        }
    }
}

fn kind(io: &Io) -> Kind {
    (io.read, io.bytes.max(1).ilog2())
}
