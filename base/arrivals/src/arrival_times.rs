//! The streams behind each [`RateProcess`].
//!
//! Times run in `f64` seconds and round to nanoseconds at the end, which is monotone: within 104 days a double
//! resolves a nanosecond.

use crate::b_model::BModelTimes;
use crate::rounding::saturating_nanos;
use crate::{MmppState, ParameterError, RateProcess, split_seed};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Pareto};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// An endless stream of arrival times that do not decrease.
pub type ArrivalTimes = Box<dyn Iterator<Item = Nanos> + Send>;

/// Endless arrival times in seconds.
type SecondsStream = Box<dyn Iterator<Item = f64> + Send>;

impl RateProcess {
    /// Arrival times from zero on.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn arrivals(&self, seed: u64) -> Result<ArrivalTimes, ParameterError> {
        self.check()?;
        // Times beyond the largest `Nanos` saturate, so the stream stays endless.
        Ok(Box::new(self.times(seed).map(saturating_nanos)))
    }

    /// Arrival times of a process whose parameters have been checked.
    fn times(&self, seed: u64) -> SecondsStream {
        match self {
            Self::Constant { rate } => {
                let gap = 1.0 / rate;
                Box::new((0u64..).map(move |n| n as f64 * gap))
            }
            Self::Poisson { rate } => Box::new(poisson(*rate, seed)),
            Self::Mmpp { states } => Box::new(MmppTimes::new(states, seed)),
            Self::OnOff { sources, rate_on, on_s, off_s, shape } => {
                let source = |index| -> SecondsStream {
                    let seed = split_seed(seed, u64::from(index));
                    Box::new(OnOffTimes::new(*rate_on, *on_s, *off_s, *shape, seed))
                };
                superpose((0..*sources).map(source).collect())
            }
            Self::BModel { rate, bias, interval_s, levels } => {
                Box::new(BModelTimes::new(*rate, *bias, *interval_s, *levels, seed))
            }
            Self::Diurnal { of, period_s, amplitude, phase } => {
                let clock = DiurnalClock { period_s: *period_s, amplitude: *amplitude, phase: *phase };
                Box::new(of.times(seed).map(move |steady| clock.time_of(steady)))
            }
            Self::Sum(parts) => {
                let parts = (0..).zip(parts).map(|(index, part)| part.times(split_seed(seed, index)));
                superpose(parts.collect())
            }
        }
    }
}

fn exponential(random: &mut StdRng) -> f64 {
    Exp1.sample(random)
}

fn poisson(rate: f64, seed: u64) -> impl Iterator<Item = f64> + Send {
    let mut random = StdRng::seed_from_u64(seed);
    let mut now = 0.0;
    std::iter::repeat_with(move || {
        now += exponential(&mut random) / rate;
        now
    })
}

/// Sorted union of sorted streams; ties in the order of `parts`.
fn superpose(mut parts: Vec<SecondsStream>) -> SecondsStream {
    // Times are non-negative, where the bits of a double order as its value.
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::with_capacity(parts.len());
    for (index, part) in parts.iter_mut().enumerate() {
        heap.extend(part.next().map(|time| Reverse((time.to_bits(), index))));
    }
    Box::new(std::iter::from_fn(move || {
        let mut top = heap.peek_mut()?;
        let Reverse((bits, index)) = *top;
        match parts[index].next() {
            Some(next) => *top = Reverse((next.to_bits(), index)),
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
        Some(f64::from_bits(bits))
    }))
}

struct MmppTimes {
    states: Vec<MmppState>,
    state: usize,
    now: f64,
    /// Time at which the current state ends.
    until: f64,
    random: StdRng,
}

impl MmppTimes {
    fn new(states: &[MmppState], seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let total: f64 = states.iter().map(|state| state.stay_s).sum();
        let mut left = random.random::<f64>() * total;
        let state = states.iter().position(|state| {
            left -= state.stay_s;
            left < 0.0
        });
        let state = state.unwrap_or(states.len() - 1);
        let until = exponential(&mut random) * states[state].stay_s;
        Self { states: states.to_vec(), state, now: 0.0, until, random }
    }
}

impl Iterator for MmppTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let rate = self.states[self.state].rate;
            // An exponential gap may be drawn anew at each change of state: it has no memory.
            let next =
                if rate > 0.0 { self.now + exponential(&mut self.random) / rate } else { f64::INFINITY };
            if next < self.until {
                self.now = next;
                return Some(next);
            }
            self.now = self.until;
            let step = self.random.random_range(1..self.states.len());
            self.state = (self.state + step) % self.states.len();
            self.until = self.now + exponential(&mut self.random) * self.states[self.state].stay_s;
        }
    }
}

/// The arrivals of one on-off source.
struct OnOffTimes {
    rate_on: f64,
    on: Pareto<f64>,
    off: Pareto<f64>,
    is_on: bool,
    now: f64,
    /// Time of the source's next change of state.
    until: f64,
    random: StdRng,
}

impl OnOffTimes {
    fn new(rate_on: f64, on_s: f64, off_s: f64, shape: f64, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let is_on = random.random::<f64>() < on_s / (on_s + off_s);
        // In equilibrium the period in progress is length-biased, which lowers the shape by one. A
        // uniform fraction of it remains.
        let mean = if is_on { on_s } else { off_s };
        let biased = Pareto::new(pareto_scale(mean, shape), shape - 1.0).expect("checked: shape above one");
        let length: f64 = biased.sample(&mut random);
        let until = length * random.random::<f64>();
        let on = pareto(on_s, shape);
        let off = pareto(off_s, shape);
        Self { rate_on, on, off, is_on, now: 0.0, until, random }
    }
}

/// The scale of a Pareto distribution with this mean, which is scale · shape / (shape − 1).
fn pareto_scale(mean: f64, shape: f64) -> f64 {
    mean * (shape - 1.0) / shape
}

fn pareto(mean: f64, shape: f64) -> Pareto<f64> {
    Pareto::new(pareto_scale(mean, shape), shape).expect("checked: positive scale and shape")
}

impl Iterator for OnOffTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            if self.is_on {
                let next = self.now + exponential(&mut self.random) / self.rate_on;
                if next < self.until {
                    self.now = next;
                    return Some(next);
                }
            }
            self.now = self.until;
            self.is_on = !self.is_on;
            let period = if self.is_on { &self.on } else { &self.off };
            self.until = self.now + period.sample(&mut self.random);
        }
    }
}

/// Turns the time of a process of steady rate into the time of the modulated one: the inverse of
/// u(t) = t + a·P/2π·(cos 2πφ − cos 2π(t/P + φ)), the integral of the modulation.
#[derive(Debug, Clone, Copy)]
struct DiurnalClock {
    period_s: f64,
    amplitude: f64,
    phase: f64,
}

impl DiurnalClock {
    /// u(t), the time of the steady process at time `t` of the modulated one.
    fn steady_time(self, t: f64) -> f64 {
        let turn = std::f64::consts::TAU;
        let swing = self.amplitude * self.period_s / turn;
        t + swing * ((turn * self.phase).cos() - (turn * (t / self.period_s + self.phase)).cos())
    }

    fn time_of(self, steady: f64) -> f64 {
        // u(t) − t lies within ± a·P/π, and u increases: bisection is safe and ends at one double.
        let swing = self.amplitude * self.period_s / std::f64::consts::PI;
        let mut low = (steady - swing).max(0.0);
        let mut high = steady + swing;
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.steady_time(middle) < steady { low = middle } else { high = middle }
        }
        high
    }
}
