//! Arrival processes: plain data that becomes a seeded, endless stream of instants.
//!
//! Processes compose: they superpose, and [`Process::Diurnal`] modulates any other. Streams hold a state of a
//! few words per source; the same value and seed give the same stream in every run of one build (random
//! generators and elementary functions may differ between versions and platforms in their last digits).
//!
//! A crate of its own because the traces that are written and the streams that are simulated are the same
//! processes, and neither side may know the other.
//!
//! Not covered: what arrives (sizes, demands, directions).

mod bmodel;
mod process;

use std::fmt;
use units::Nanos;

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

/// Parameters that describe nothing: which and what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterError(String);

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParameterError {}

impl ParameterError {
    /// `Ok` when `holds`.
    ///
    /// # Errors
    /// Otherwise, with what was expected.
    pub fn require(holds: bool, expected: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(expected())) }
    }

    /// `Ok` when `value` is positive and finite.
    ///
    /// # Errors
    /// Otherwise, with the name of the parameter.
    pub fn positive(name: &str, value: f64) -> Result<(), Self> {
        Self::require(value > 0.0 && value.is_finite(), || {
            format!("expected a positive {name}, found {value}")
        })
    }
}

/// The seed of part `index` of something seeded with `seed`: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
pub fn split_seed(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
