//! What comes in at an entry, as the file says it: when requests arrive and what each needs.

use crate::file::EntrySpec;
use crate::kinds::{Delays, Kinds};
use crate::replay::Recording;
use arrivals::{ArrivalPattern, DistributionFamily, TimeDistribution};
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{DrawRequest, EntryArrivals, RequestEntry};
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

const CLIENTS_MAX: u32 = 1_000_000;

type Result<T> = std::result::Result<T, String>;

/// An entry without its randomness.
pub(crate) struct Source {
    arrivals: Coming,
    load: Load,
    window: Option<u32>,
    skew_ns: i64,
    /// Unless it is random.
    delay: Nanos,
}

/// What requests are.
pub(crate) enum Load {
    Kinds(Kinds, Delays),
    Replay(Arc<Recording>),
}

enum Coming {
    Random(ArrivalPattern),
    Recorded(Recorded),
    Closed { clients: u32, think: TimeDistribution },
}

/// A measured stream that repeats for ever; a replication begins anywhere in it.
#[derive(Clone)]
struct Recorded {
    instants: Arc<Vec<Nanos>>,
    period_ns: f64,
    /// Its rate is multiplied by this.
    factor: f64,
}

impl Source {
    pub(crate) fn new(entry: &EntrySpec, load: Load, folder: &Path) -> Result<Self> {
        if entry.window == Some(0) {
            return Err("window: expected at least 1".into());
        }
        let delay = entry.delay.as_ref().map(|delay| delay.0.law(folder)).transpose()?;
        let (delay, random) = split(delay);
        let load = match load {
            Load::Kinds(kinds, delays) => Load::Kinds(kinds, Delays { entry: random, ..delays }),
            Load::Replay(_) if random.is_some() => return Err("delay: expected a fixed time".into()),
            replay @ Load::Replay(_) => replay,
        };
        Ok(Self {
            arrivals: Coming::new(entry, folder)?,
            load,
            window: entry.window,
            skew_ns: entry.skew.as_ref().map_or(0, |skew| skew.0.0),
            delay,
        })
    }

    /// Mean demand of a request at these steps, seconds.
    pub(crate) fn work(&self, at: impl Fn(usize) -> bool) -> f64 {
        match &self.load {
            Load::Kinds(kinds, _) => kinds.work(at),
            Load::Replay(recording) => recording.work(at),
        }
    }

    /// Multiplies the rate of open arrivals.
    pub(crate) fn scale(&mut self, factor: f64) -> Result<()> {
        match &mut self.arrivals {
            Coming::Random(arrival) => {
                *arrival = arrival.scaled(factor).map_err(|error| error.to_string())?;
                arrival.instants(0).map(drop).map_err(|error| error.to_string())
            }
            Coming::Recorded(recorded) => {
                recorded.factor *= factor;
                Ok(())
            }
            Coming::Closed { .. } => Err("a load cannot be set where clients wait".into()),
        }
    }

    /// Arrivals per second; 0 where clients wait for answers.
    pub(crate) fn rate(&self) -> f64 {
        match &self.arrivals {
            Coming::Random(arrival) => arrival.mean_rate(),
            Coming::Recorded(recorded) => {
                recorded.instants.len() as f64 / recorded.period_ns * 1e9 * recorded.factor
            }
            Coming::Closed { .. } => 0.0,
        }
    }

    pub(crate) fn entry(&self, seeds: &mut StdRng) -> RequestEntry {
        let (arrivals, drawn) = (seeds.random(), seeds.random());
        let draw: Box<dyn DrawRequest> = match &self.load {
            Load::Kinds(kinds, delays) => Box::new(kinds.drawer(drawn, delays)),
            Load::Replay(recording) => Box::new(recording.drawer(drawn)),
        };
        RequestEntry {
            arrivals: self.arrivals.begin(arrivals),
            draw,
            window: self.window,
            skew_ns: self.skew_ns,
            delay: self.delay,
        }
    }
}

/// A delay as a fixed time and, if it is random, its law.
pub(crate) fn split(delay: Option<TimeDistribution>) -> (Nanos, Option<TimeDistribution>) {
    match delay {
        None => (Nanos::ZERO, None),
        Some(law) => match law.family() {
            DistributionFamily::Constant(time) => (Nanos::from_secs(time.0).unwrap_or(Nanos(u64::MAX)), None),
            _ => (Nanos::ZERO, Some(law)),
        },
    }
}

impl Coming {
    fn new(entry: &EntrySpec, folder: &Path) -> Result<Self> {
        match (&entry.arrivals, &entry.trace, entry.clients, &entry.think) {
            (Some(arrival), None, None, None) => Ok(Self::Random(arrival.0.clone())),
            (None, Some(path), None, None) => Recorded::read(&folder.join(path)).map(Self::Recorded),
            (None, None, Some(clients), Some(think)) if (1..=CLIENTS_MAX).contains(&clients) => {
                Ok(Self::Closed { clients, think: think.0.law(folder)? })
            }
            (None, None, Some(_), Some(_)) => Err(format!("clients: expected 1 to {CLIENTS_MAX}")),
            _ => Err("expected one of: arrivals; trace; clients and think".into()),
        }
    }

    fn begin(&self, seed: u64) -> EntryArrivals {
        match self {
            Self::Random(arrival) => {
                EntryArrivals::Open(arrival.instants(seed).expect("checked when it was read"))
            }
            Self::Recorded(recorded) => EntryArrivals::Open(Box::new(recorded.clone().instants(seed))),
            Self::Closed { clients, think } => {
                let (sampler, mut random) = (think.sampler(), StdRng::seed_from_u64(seed));
                let think = std::iter::repeat_with(move || sampler.draw(&mut random));
                EntryArrivals::Closed { clients: *clients, think: Box::new(think) }
            }
        }
    }
}

impl Recorded {
    fn read(path: &Path) -> Result<Self> {
        let instants = arrivals_of(path).map_err(|fault| fault.message)?;
        let span = instants.last().zip(instants.first()).map_or(0, |(last, first)| (*last - *first).0);
        if span == 0 {
            return Err(format!("{}: expected requests at two instants at least", path.display()));
        }
        // The gap from the last to the first is the mean of the others.
        let period_ns = span as f64 * instants.len() as f64 / (instants.len() - 1) as f64;
        Ok(Self { instants: Arc::new(instants), period_ns, factor: 1.0 })
    }

    fn instants(self, seed: u64) -> impl Iterator<Item = Nanos> {
        let count = self.instants.len();
        let start = StdRng::seed_from_u64(seed).random_range(0..count);
        (start..).map(move |index| {
            let since = (self.instants[index % count] - self.instants[0]).0 as f64;
            let first = (self.instants[start] - self.instants[0]).0 as f64;
            let at = (index / count) as f64 * self.period_ns + since - first;
            // Not negative: the start is the first; a float beyond u64 becomes the largest.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at = (at / self.factor) as u64;
            Nanos(at)
        })
    }
}

/// When the requests of a trace arrive, all at once.
///
/// # Errors
/// When it cannot be read or is empty.
pub fn arrivals_of(path: &Path) -> std::result::Result<Vec<Nanos>, OperationError> {
    let all = arrivals(path)?.collect::<std::result::Result<Vec<_>, _>>()?;
    if all.is_empty() { Err(empty(path)) } else { Ok(all) }
}

/// When the requests of a trace arrive, one by one.
///
/// # Errors
/// When it cannot be read; an error ends the stream.
pub fn arrivals(
    path: &Path,
) -> std::result::Result<
    impl Iterator<Item = std::result::Result<Nanos, OperationError>> + use<>,
    OperationError,
> {
    let unreadable = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
    let reader = trace::open(path, &trace::OpenOptions::default()).map_err(unreadable)?;
    Ok(reader.map(move |request| request.map(|request| request.arrival).map_err(unreadable)))
}

/// What is said of a trace without requests.
pub fn empty(path: &Path) -> OperationError {
    OperationError::input(format_args!("{}: the trace is empty", path.display()))
        .hint("give a trace with requests, or --arrivals")
}
