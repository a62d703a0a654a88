//! Synthetic request streams: an arrival [`Process`], sizes and directions, a seed.
//!
//! A process is plain data and composes: processes superpose, and [`Process::Diurnal`] modulates any
//! other. Streams are endless iterators that hold a state of a few words per source; the same value and
//! seed give the same stream in every run of one build (random generators and elementary functions may
//! differ between versions and platforms in their last digits).
//!
//! Sizes and directions are drawn independently of arrivals and of each other; generated requests have
//! no offsets and no response times.

mod bmodel;
mod process;

use model::{Op, Request};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fmt;
use units::{Bytes, Nanos};

/// An endless stream of arrival times that do not decrease.
pub type Arrivals = Box<dyn Iterator<Item = Nanos> + Send>;

/// How requests arrive. Rates are per second and positive, times in seconds and positive.
#[derive(Debug, Clone, PartialEq)]
pub enum Process {
    /// Equal gaps.
    Constant {
        /// Arrivals per second.
        rate: f64,
    },
    /// Exponential gaps.
    Poisson {
        /// Arrivals per second.
        rate: f64,
    },
    /// Markov-modulated Poisson: exponential stays in states with a rate each; every other state is
    /// equally likely to be next. Starts in equilibrium.
    Mmpp {
        /// At least two.
        states: Vec<MmppState>,
    },
    /// Superposed sources that send at a Poisson rate while on and nothing while off; both times are
    /// Pareto. For shapes below 2 the counts are long-range dependent with H = (3 − shape)/2 (Taqqu,
    /// Willinger and Sherman, "Proof of a fundamental result in self-similar traffic modeling", ACM CCR
    /// 27(2), 1997). Starts in equilibrium.
    OnOff {
        /// Independent sources.
        sources: u32,
        /// Arrivals per second of a source that is on.
        rate_on: f64,
        /// Mean time on.
        on_s: f64,
        /// Mean time off.
        off_s: f64,
        /// Shape of the Pareto distributions, above 1; above 2 the memory is short.
        shape: f64,
    },
    /// b-model: the requests of an interval are split between its halves by `bias` to `1 − bias`, the
    /// larger part at random, down to `levels` halvings (Wang et al., "Data mining meets performance
    /// evaluation: fast algorithms for modeling bursty traffic", ICDE 2002). Intervals repeat
    /// independently.
    BModel {
        /// Arrivals per second.
        rate: f64,
        /// 0.5 is smooth; real disk and web traffic is about 0.6 to 0.8. From 0.5 to below 1.
        bias: f64,
        /// Length of the interval that is split.
        interval_s: f64,
        /// 1 to 40.
        levels: u32,
    },
    /// Another process whose rate is multiplied by `1 + amplitude·sin(2π·(t/period + phase))`. The
    /// modulation stretches time, so it keeps the mean rate and what is bursty on short scales.
    Diurnal {
        /// What is modulated.
        of: Box<Self>,
        /// Length of a cycle.
        period_s: f64,
        /// 0 to below 1.
        amplitude: f64,
        /// Where in the cycle time zero is, 0 to 1.
        phase: f64,
    },
    /// Several at once, independent of each other.
    Sum(Vec<Self>),
}

/// A state of [`Process::Mmpp`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MmppState {
    /// Arrivals per second; may be zero.
    pub rate: f64,
    /// Mean stay.
    pub stay_s: f64,
}

/// Sizes with their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeMix(Vec<(Bytes, f64)>);

/// Parameters that describe no stream: which and what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerateError(String);

impl fmt::Display for GenerateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GenerateError {}

/// `Err` with what was expected unless `holds`.
fn require(holds: bool, expected: impl FnOnce() -> String) -> Result<(), GenerateError> {
    if holds { Ok(()) } else { Err(GenerateError(expected())) }
}

fn positive(name: &str, value: f64) -> Result<(), GenerateError> {
    require(value > 0.0 && value.is_finite(), || format!("expected a positive {name}, found {value}"))
}

impl SizeMix {
    /// Every request of the same size.
    pub fn fixed(size: Bytes) -> Self {
        Self(vec![(size, 1.0)])
    }

    /// Sizes with weights, which need not add up to one.
    ///
    /// # Errors
    /// When there is no size or a weight is not positive.
    pub fn new(weighted: Vec<(Bytes, f64)>) -> Result<Self, GenerateError> {
        require(!weighted.is_empty(), || "expected at least one size".to_owned())?;
        weighted.iter().try_for_each(|(_, weight)| positive("weight of a size", *weight))?;
        Ok(Self(weighted))
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        self.0.iter().map(|(size, weight)| size.0 as f64 * weight).sum::<f64>() / total
    }

    fn draw(&self, total: f64, random: &mut StdRng) -> Bytes {
        let mut left = random.random::<f64>() * total;
        for (size, weight) in &self.0 {
            left -= weight;
            if left < 0.0 {
                return *size;
            }
        }
        self.0[self.0.len() - 1].0
    }
}

/// A whole synthetic stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    /// When requests arrive.
    pub process: Process,
    /// How large they are.
    pub sizes: SizeMix,
    /// Probability that a request is a read, 0 to 1.
    pub read_share: f64,
    /// Requests arrive before this time.
    pub duration: Nanos,
    /// Same seed, same stream.
    pub seed: u64,
}

impl Synthetic {
    /// The requests.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn requests(&self) -> Result<impl Iterator<Item = Request> + Send + use<>, GenerateError> {
        let share = self.read_share;
        require((0.0..=1.0).contains(&share), || {
            format!("expected a read share from 0 to 1, found {share}")
        })?;
        let arrivals = self.process.arrivals(self.seed)?;
        // Directions and sizes have a generator of their own, so that they do not change the arrivals.
        let mut random = StdRng::seed_from_u64(split_seed(self.seed, u64::MAX));
        let (sizes, duration) = (self.sizes.clone(), self.duration);
        let total = sizes.0.iter().map(|(_, weight)| weight).sum();
        Ok(arrivals.take_while(move |arrival| *arrival < duration).map(move |arrival| Request {
            arrival,
            op: if random.random::<f64>() < share { Op::Read } else { Op::Write },
            size: sizes.draw(total, &mut random),
            offset: None,
            response: None,
        }))
    }
}

/// The seed of part `index` of something seeded with `seed`: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
fn split_seed(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
