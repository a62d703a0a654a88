//! Load of a server: Poisson arrivals, a recording, or saturation.

use arrivals::ArrivalPattern;
use load::OfferedLoad;
use model::{Op, OperationError, Request};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use units::{Bytes, Nanos};

/// Connections over which requests are sent in turn.
pub(crate) const CONNECTIONS: usize = 32;

/// Maximum rate of requests per second, unless a server is saturated. Generator and observer share a CPU
/// here: at higher rates the generator falls behind and sends bursts of its own.
pub(crate) const RATE_MAX: f64 = 12_000.0;

/// Load of a period.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) arrivals: OfferedArrivals,
    pub(crate) connections: usize,
    /// Requests after which a connection is replaced; `None` keeps connections.
    pub(crate) requests_per_connection: Option<RangeInclusive<u32>>,
    /// Requests are sent in batches, at multiples of this time.
    pub(crate) batch_interval: Option<Duration>,
}

/// When requests are sent.
#[derive(Debug, Clone)]
pub(crate) enum OfferedArrivals {
    /// Poisson arrivals at this rate per second.
    Poisson(f64),
    /// The gaps of a recording, stretched to this mean rate per second.
    Recorded(RecordedGaps, f64),
    /// As many as are answered, with this many in flight.
    Saturating(u32),
}

/// Gaps between the arrivals of a recording, in nanoseconds, from one of its requests on.
#[derive(Debug, Clone)]
pub(crate) struct RecordedGaps(Arc<[u64]>);

impl RecordedGaps {
    /// The gaps of a file.
    pub(crate) fn read(path: &Path) -> Result<Self, OperationError> {
        let unreadable = |error: trace::TraceError| OperationError::input(error);
        let mut arrivals = Vec::new();
        for request in trace::open(path, &trace::OpenOptions::default()).map_err(unreadable)? {
            arrivals.push(request.map_err(unreadable)?.arrival.0);
        }
        Ok(Self(arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect()))
    }

    /// Arrivals of a stretch of `count` gaps that begins at a random one, at a mean rate.
    fn arrivals(&self, per_second: f64, duration: f64, random: &mut StdRng) -> Vec<Nanos> {
        let wanted = usize::try_from(whole(per_second * duration)).expect("a recording has fewer gaps");
        let begin = random.random_range(0..self.0.len());
        let gaps: Vec<u64> = self.0.iter().cycle().skip(begin).take(wanted).copied().collect();
        let total: u128 = gaps.iter().map(|gap| u128::from(*gap)).sum();
        let scale = duration * 1e9 / total.max(1) as f64;
        let mut at = 0u128;
        gaps.iter()
            .map(|gap| {
                at += u128::from(*gap);
                nanoseconds(at as f64 * scale)
            })
            .collect()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn nanoseconds(time: f64) -> Nanos {
    Nanos(whole(time))
}

impl Offered {
    /// Poisson arrivals on connections that are kept.
    pub(crate) fn poisson(per_second: f64) -> Self {
        Self::of(OfferedArrivals::Poisson(per_second))
    }

    /// These arrivals on connections that are kept.
    pub(crate) fn of(arrivals: OfferedArrivals) -> Self {
        Self { arrivals, connections: CONNECTIONS, requests_per_connection: None, batch_interval: None }
    }

    /// The requests of a period: those that read have a share of `reads`.
    pub(crate) fn load(
        &self,
        (reads, size): (f64, u64),
        duration: Duration,
        seed: u64,
    ) -> Result<OfferedLoad, OperationError> {
        let size = Bytes(size);
        let mut random = StdRng::seed_from_u64(seed);
        let end = nanoseconds(duration.as_secs_f64() * 1e9);
        let arrivals: Vec<Nanos> = match &self.arrivals {
            OfferedArrivals::Saturating(in_flight) => {
                let in_flight = *in_flight;
                return Ok(OfferedLoad::Closed { in_flight, op: Op::Read, size, sequential: false });
            }
            OfferedArrivals::Poisson(rate) => {
                let process: ArrivalPattern =
                    format!("poisson({rate}/s)").parse().map_err(OperationError::input)?;
                let instants = process.instants(seed).map_err(OperationError::input)?;
                instants.take_while(|at| *at < end).collect()
            }
            OfferedArrivals::Recorded(gaps, rate) => {
                gaps.arrivals(*rate, duration.as_secs_f64(), &mut random)
            }
        };
        let request = |arrival: Nanos| {
            let op = if random.random_bool(reads) { Op::Read } else { Op::Write };
            Request { arrival: self.sent_at(arrival), size, op, offset: None, response: None }
        };
        Ok(OfferedLoad::Open(arrivals.into_iter().map(request).collect()))
    }

    /// When a request is sent that arrives at an instant: with its batch.
    fn sent_at(&self, arrival: Nanos) -> Nanos {
        match self.batch_interval.map(|interval| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)) {
            Some(interval) if interval > 0 => Nanos(arrival.0.div_ceil(interval) * interval),
            _ => arrival,
        }
    }
}
