//! Loads for tests.

use discipline::serve::DisciplineSpec;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{DrawRequest, NetworkStation, QueueingNetwork, RequestDraft, RequestEntry};
use units::Nanos;

/// Mean service time, nanoseconds: long, so that rounding to whole ones is of no consequence.
pub(crate) const SERVICE: f64 = 1e6;

pub(crate) fn nanos(value: f64) -> Nanos {
    Nanos::from_secs(value / 1e9).unwrap()
}

pub(crate) fn exponential(random: &mut StdRng, mean: f64) -> f64 {
    -mean * (1.0 - random.random_range(0.0f64..1.0)).ln()
}

/// Instants of a Poisson process.
pub(crate) fn poisson(seed: u64, gap: f64) -> impl Iterator<Item = Nanos> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut now = 0.0;
    std::iter::repeat_with(move || {
        now += exponential(&mut random, gap);
        nanos(now)
    })
}

/// A demand in mean service times.
pub(crate) type Law = fn(&mut StdRng) -> f64;

/// Poisson arrivals at `rate` per mean service time; every demand is drawn by `law`.
pub(crate) fn entry(seed: u64, rate: f64, law: Law) -> RequestEntry {
    let mut random = StdRng::seed_from_u64(seed ^ 0xD5);
    entry_of(seed, rate, move |draft: &mut RequestDraft<'_>| {
        draft.demands.iter_mut().for_each(|demand| *demand = nanos(SERVICE * law(&mut random)));
    })
}

/// Poisson arrivals at `rate` per mean service time.
pub(crate) fn entry_of(seed: u64, rate: f64, draw: impl DrawRequest + 'static) -> RequestEntry {
    RequestEntry::open(poisson(seed, SERVICE / rate), draw)
}

pub(crate) fn single(workers: u32, discipline: DisciplineSpec) -> QueueingNetwork {
    QueueingNetwork::chain(vec![NetworkStation::new("server", workers, discipline)])
}
