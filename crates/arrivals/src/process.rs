//! The streams behind each [`Process`]. Times run in `f64` seconds and round to nanoseconds at the end,
//! which is monotone: within 104 days a double resolves a nanosecond.

use super::bmodel::BModelTimes;
use super::{Arrivals, MmppState, ParameterError, Process, split_seed};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Pareto};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// Endless arrival times in seconds.
type Times = Box<dyn Iterator<Item = f64> + Send>;

impl Process {
    /// Mean arrivals per second over a long time.
    pub fn mean_rate(&self) -> f64 {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } | Self::BModel { rate, .. } => *rate,
            Self::Mmpp { states } => {
                // Every state is visited equally often, so time is shared by the stays.
                let stays: f64 = states.iter().map(|state| state.stay_s).sum();
                states.iter().map(|state| state.rate * state.stay_s).sum::<f64>() / stays
            }
            Self::OnOff { sources, rate_on, on_s, off_s, .. } => {
                f64::from(*sources) * rate_on * on_s / (on_s + off_s)
            }
            Self::Diurnal { of, .. } => of.mean_rate(),
            Self::Sum(parts) => parts.iter().map(Self::mean_rate).sum(),
        }
    }

    /// The same process with every rate multiplied by `factor`; its time scales stay.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        match &mut self {
            Self::Constant { rate } | Self::Poisson { rate } | Self::BModel { rate, .. } => *rate *= factor,
            Self::Mmpp { states } => states.iter_mut().for_each(|state| state.rate *= factor),
            Self::OnOff { rate_on, .. } => *rate_on *= factor,
            Self::Diurnal { of, .. } => **of = std::mem::replace(&mut **of, Self::Sum(vec![])).scaled(factor),
            Self::Sum(parts) => {
                *parts = std::mem::take(parts).into_iter().map(|part| part.scaled(factor)).collect();
            }
        }
        self
    }

    /// Arrival times from zero on.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn arrivals(&self, seed: u64) -> Result<Arrivals, ParameterError> {
        self.check()?;
        // Beyond the end of time an endless stream stays at its end.
        let round = |time: f64| Nanos::from_secs(time).unwrap_or(Nanos(u64::MAX));
        Ok(Box::new(self.times(seed).map(round)))
    }

    fn check(&self) -> Result<(), ParameterError> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => ParameterError::positive("rate", *rate),
            Self::Mmpp { states } => {
                ParameterError::require(states.len() >= 2, || {
                    format!("expected at least 2 states, found {}", states.len())
                })?;
                let valid = |rate: f64| rate >= 0.0 && rate.is_finite();
                for state in states {
                    ParameterError::positive("mean stay in a state", state.stay_s)?;
                    ParameterError::require(valid(state.rate), || {
                        format!("expected a rate of at least 0, found {}", state.rate)
                    })?;
                }
                ParameterError::positive("mean rate", self.mean_rate())
            }
            Self::OnOff { sources, rate_on, on_s, off_s, shape } => {
                ParameterError::require(*sources > 0, || "expected at least 1 source, found 0".to_owned())?;
                ParameterError::positive("rate while on", *rate_on)?;
                ParameterError::positive("mean time on", *on_s)?;
                ParameterError::positive("mean time off", *off_s)?;
                ParameterError::require(*shape > 1.0 && shape.is_finite(), || {
                    format!("expected a shape above 1, found {shape}")
                })
            }
            Self::BModel { rate, bias, interval_s, levels } => {
                ParameterError::positive("rate", *rate)?;
                ParameterError::positive("interval", *interval_s)?;
                ParameterError::require((0.5..1.0).contains(bias), || {
                    format!("expected a bias from 0.5 to below 1, found {bias}")
                })?;
                ParameterError::require((1..=40).contains(levels), || {
                    format!("expected 1 to 40 levels, found {levels}")
                })
            }
            Self::Diurnal { of, period_s, amplitude, phase } => {
                ParameterError::positive("period", *period_s)?;
                ParameterError::require((0.0..1.0).contains(amplitude), || {
                    format!("expected an amplitude from 0 to below 1, found {amplitude}")
                })?;
                ParameterError::require((0.0..=1.0).contains(phase), || {
                    format!("expected a phase from 0 to 1, found {phase}")
                })?;
                of.check()
            }
            Self::Sum(parts) => {
                ParameterError::require(!parts.is_empty(), || {
                    "expected at least one process to superpose".to_owned()
                })?;
                parts.iter().try_for_each(Self::check)
            }
        }
    }

    /// Assumes that [`Self::check`] has passed.
    fn times(&self, seed: u64) -> Times {
        match self {
            Self::Constant { rate } => {
                let gap = 1.0 / rate;
                Box::new((0u64..).map(move |n| n as f64 * gap))
            }
            Self::Poisson { rate } => Box::new(poisson(*rate, seed)),
            Self::Mmpp { states } => Box::new(MmppTimes::new(states, seed)),
            Self::OnOff { sources, rate_on, on_s, off_s, shape } => {
                let source = |index| -> Times {
                    let seed = split_seed(seed, u64::from(index));
                    Box::new(SourceTimes::new(*rate_on, *on_s, *off_s, *shape, seed))
                };
                superpose((0..*sources).map(source).collect())
            }
            Self::BModel { rate, bias, interval_s, levels } => {
                Box::new(BModelTimes::new(*rate, *bias, *interval_s, *levels, seed))
            }
            Self::Diurnal { of, period_s, amplitude, phase } => {
                let clock = DiurnalClock { period_s: *period_s, amplitude: *amplitude, phase: *phase };
                Box::new(of.times(seed).map(move |work| clock.time_of(work)))
            }
            Self::Sum(parts) => {
                let part = |(index, part): (u64, &Self)| part.times(split_seed(seed, index));
                superpose((0..).zip(parts).map(part).collect())
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
fn superpose(mut parts: Vec<Times>) -> Times {
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
    /// When the current state is left.
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
            let at = if rate > 0.0 { self.now + exponential(&mut self.random) / rate } else { f64::INFINITY };
            if at < self.until {
                self.now = at;
                return Some(at);
            }
            self.now = self.until;
            let step = self.random.random_range(1..self.states.len());
            self.state = (self.state + step) % self.states.len();
            self.until = self.now + exponential(&mut self.random) * self.states[self.state].stay_s;
        }
    }
}

/// One on-off source.
struct SourceTimes {
    rate_on: f64,
    on: Pareto<f64>,
    off: Pareto<f64>,
    is_on: bool,
    now: f64,
    until: f64,
    random: StdRng,
}

impl SourceTimes {
    fn new(rate_on: f64, on_s: f64, off_s: f64, shape: f64, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        // Mean of a Pareto distribution: scale · shape / (shape − 1).
        let scale = |mean: f64| mean * (shape - 1.0) / shape;
        let pareto = |mean| Pareto::new(scale(mean), shape).expect("checked: positive scale and shape");
        let is_on = random.random::<f64>() < on_s / (on_s + off_s);
        // In equilibrium the period in progress is length-biased, which lowers the shape by one, and a
        // uniform part of it is left.
        let mean = if is_on { on_s } else { off_s };
        let biased = Pareto::new(scale(mean), shape - 1.0).expect("checked: shape above one");
        let length: f64 = biased.sample(&mut random);
        let until = length * random.random::<f64>();
        Self { rate_on, on: pareto(on_s), off: pareto(off_s), is_on, now: 0.0, until, random }
    }
}

impl Iterator for SourceTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            if self.is_on {
                let at = self.now + exponential(&mut self.random) / self.rate_on;
                if at < self.until {
                    self.now = at;
                    return Some(at);
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
    fn work_at(self, t: f64) -> f64 {
        let turn = std::f64::consts::TAU;
        let swing = self.amplitude * self.period_s / turn;
        t + swing * ((turn * self.phase).cos() - (turn * (t / self.period_s + self.phase)).cos())
    }

    fn time_of(self, work: f64) -> f64 {
        // u(t) − t lies within ± a·P/π, and u increases: bisection is safe and ends at one double.
        let swing = self.amplitude * self.period_s / std::f64::consts::PI;
        let (mut low, mut high) = ((work - swing).max(0.0), work + swing);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.work_at(middle) < work { low = middle } else { high = middle }
        }
        high
    }
}
