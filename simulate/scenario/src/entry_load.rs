//! The load of an entry, as the file says it: when requests arrive and what each needs.

use crate::file::EntrySpec;
use crate::recorded_calls::RecordedCalls;
use crate::request_kinds::{RandomDelays, RequestKinds};
use crate::scenario_network::fixed_or_random;
use crate::trace_arrivals::read_trace_arrivals;
use arrivals::{ArrivalPattern, TimeDistribution};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{DrawRequest, EntryArrivals, RequestEntry};
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// Most clients of an entry.
const CLIENTS_MAX: u32 = 1_000_000;

/// An entry without its randomness.
pub(crate) struct EntryLoad {
    arrivals: ArrivalRule,
    content: RequestContent,
    window: Option<u32>,
    skew_ns: i64,
    /// The delay between the entry and the first steps, unless it is random.
    delay: Nanos,
}

/// Demands of an entry's requests.
pub(crate) enum RequestContent {
    /// Requests of kinds that the scenario describes, with the delays that are random.
    Kinds(RequestKinds, RandomDelays),
    /// Requests as they were recorded in distributed traces.
    Recorded(Arc<RecordedCalls>),
}

/// When the requests of an entry arrive.
enum ArrivalRule {
    Random(ArrivalPattern),
    Recorded(RecordedArrivals),
    Closed { clients: u32, think: TimeDistribution },
}

/// A measured stream that repeats for ever; a replication begins anywhere in it.
#[derive(Clone)]
struct RecordedArrivals {
    instants: Arc<Vec<Nanos>>,
    period_ns: f64,
    /// The factor by which its rate is multiplied.
    factor: f64,
}

impl EntryLoad {
    pub(crate) fn new(entry: &EntrySpec, content: RequestContent, folder: &Path) -> Result<Self, String> {
        if entry.window == Some(0) {
            return Err("window: expected at least 1".into());
        }
        let delay = entry.delay.as_ref().map(|delay| delay.0.distribution(folder)).transpose()?;
        let (delay, random) = fixed_or_random(delay);
        let content = match content {
            RequestContent::Kinds(kinds, delays) => {
                RequestContent::Kinds(kinds, RandomDelays { entry: random, ..delays })
            }
            RequestContent::Recorded(_) if random.is_some() => {
                return Err("delay: expected a fixed time".into());
            }
            recorded @ RequestContent::Recorded(_) => recorded,
        };
        Ok(Self {
            arrivals: ArrivalRule::new(entry, folder)?,
            content,
            window: entry.window,
            skew_ns: entry.skew.as_ref().map_or(0, |skew| skew.0.0),
            delay,
        })
    }

    /// Mean demand of a request at the steps that are `included`, seconds.
    pub(crate) fn work(&self, included: impl Fn(usize) -> bool) -> f64 {
        match &self.content {
            RequestContent::Kinds(kinds, _) => kinds.work(included),
            RequestContent::Recorded(recorded) => recorded.work(included),
        }
    }

    /// Multiplies the rate of open arrivals.
    pub(crate) fn scale(&mut self, factor: f64) -> Result<(), String> {
        match &mut self.arrivals {
            ArrivalRule::Random(pattern) => {
                *pattern = pattern.scaled(factor).map_err(|error| error.to_string())?;
                pattern.instants(0).map(drop).map_err(|error| error.to_string())
            }
            ArrivalRule::Recorded(recorded) => {
                recorded.factor *= factor;
                Ok(())
            }
            ArrivalRule::Closed { .. } => Err("a load cannot be set where clients wait".into()),
        }
    }

    /// Exponent of the heaviest tail of its service times: infinite if all moments exist.
    pub(crate) fn tail_exponent(&self) -> f64 {
        match &self.content {
            RequestContent::Kinds(kinds, _) => kinds.tail_exponent(),
            RequestContent::Recorded(_) => f64::INFINITY,
        }
    }

    /// Returns true if neither arrivals nor demands nor delays are random.
    pub(crate) fn is_deterministic(&self) -> bool {
        let is_periodic = matches!(&self.arrivals, ArrivalRule::Random(pattern) if pattern.is_periodic());
        let has_equal_requests = match &self.content {
            RequestContent::Kinds(kinds, delays) => kinds.is_constant() && delays.is_empty(),
            RequestContent::Recorded(_) => false,
        };
        is_periodic && has_equal_requests
    }

    /// Arrivals per second; 0 where clients wait for answers.
    pub(crate) fn rate(&self) -> f64 {
        match &self.arrivals {
            ArrivalRule::Random(pattern) => pattern.mean_rate(),
            ArrivalRule::Recorded(recorded) => {
                recorded.instants.len() as f64 / recorded.period_ns * 1e9 * recorded.factor
            }
            ArrivalRule::Closed { .. } => 0.0,
        }
    }

    /// The entry with the randomness of the next seeds.
    pub(crate) fn entry(&self, seeds: &mut StdRng) -> RequestEntry {
        let arrival_seed = seeds.random();
        let content_seed = seeds.random();
        let draw: Box<dyn DrawRequest> = match &self.content {
            RequestContent::Kinds(kinds, delays) => Box::new(kinds.drawer(content_seed, delays)),
            RequestContent::Recorded(recorded) => Box::new(recorded.drawer(content_seed)),
        };
        RequestEntry {
            arrivals: self.arrivals.begin(arrival_seed),
            draw,
            window: self.window,
            skew_ns: self.skew_ns,
            delay: self.delay,
        }
    }
}

impl ArrivalRule {
    fn new(entry: &EntrySpec, folder: &Path) -> Result<Self, String> {
        match (&entry.arrivals, &entry.trace, entry.clients, &entry.think) {
            (Some(pattern), None, None, None) => Ok(Self::Random(pattern.0.clone())),
            (None, Some(path), None, None) => RecordedArrivals::read(&folder.join(path)).map(Self::Recorded),
            (None, None, Some(clients), Some(think)) if (1..=CLIENTS_MAX).contains(&clients) => {
                Ok(Self::Closed { clients, think: think.0.distribution(folder)? })
            }
            (None, None, Some(_), Some(_)) => Err(format!("clients: expected 1 to {CLIENTS_MAX}")),
            _ => Err("expected one of: arrivals; trace; clients and think".into()),
        }
    }

    fn begin(&self, seed: u64) -> EntryArrivals {
        match self {
            Self::Random(pattern) => {
                EntryArrivals::Open(pattern.instants(seed).expect("checked when it was read"))
            }
            Self::Recorded(recorded) => EntryArrivals::Open(Box::new(recorded.clone().instants(seed))),
            Self::Closed { clients, think } => {
                let sampler = think.sampler();
                let mut random = StdRng::seed_from_u64(seed);
                let think = std::iter::repeat_with(move || sampler.draw(&mut random));
                EntryArrivals::Closed { clients: *clients, think: Box::new(think) }
            }
        }
    }
}

impl RecordedArrivals {
    fn read(path: &Path) -> Result<Self, String> {
        let instants = read_trace_arrivals(path).map_err(|error| error.message)?;
        let span = instants.last().zip(instants.first()).map_or(0, |(last, first)| (*last - *first).0);
        if span == 0 {
            return Err(format!("{}: expected requests at two instants at least", path.display()));
        }
        // The gap from the last to the first is the mean of the others between different instants.
        let gaps = instants.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
        let period_ns = span as f64 * (gaps + 1.0) / gaps;
        Ok(Self { instants: Arc::new(instants), period_ns, factor: 1.0 })
    }

    /// The instants from a random request on, which arrives at 0.
    fn instants(self, seed: u64) -> impl Iterator<Item = Nanos> {
        let count = self.instants.len();
        let start = StdRng::seed_from_u64(seed).random_range(0..count);
        (start..).map(move |index| {
            let since = (self.instants[index % count] - self.instants[0]).0 as f64;
            let first = (self.instants[start] - self.instants[0]).0 as f64;
            let instant = (index / count) as f64 * self.period_ns + since - first;
            // Not negative, because the start is the first; a float beyond u64 becomes the largest.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let instant = (instant / self.factor) as u64;
            Nanos(instant)
        })
    }
}
