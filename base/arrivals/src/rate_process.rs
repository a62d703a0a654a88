//! Arrival processes that are given by their rate over time, as plain data.
//!
//! Processes compose: they superpose, and [`RateProcess::Diurnal`] modulates any other.

use crate::ParameterError;

/// An arrival process. Rates are per second and positive, times in seconds and positive.
#[derive(Debug, Clone, PartialEq)]
pub enum RateProcess {
    /// Arrivals with equal gaps.
    Constant {
        /// Mean arrivals per second.
        rate: f64,
    },
    /// The Poisson process, with independent exponential gaps.
    Poisson {
        /// Mean arrivals per second.
        rate: f64,
    },
    /// Markov-modulated Poisson: exponential stays in states with a rate each; every other state is
    /// equally likely to be next. Starts in equilibrium.
    Mmpp {
        /// The states of the chain, at least two.
        states: Vec<MmppState>,
    },
    /// Superposed sources that send at a Poisson rate while on and nothing while off; both times are
    /// Pareto. For shapes below 2 the counts are long-range dependent with H = (3 − shape)/2 (Taqqu,
    /// Willinger and Sherman, "Proof of a fundamental result in self-similar traffic modeling", ACM CCR
    /// 27(2), 1997). Starts in equilibrium.
    OnOff {
        /// Number of independent sources.
        sources: u32,
        /// Arrivals per second of a source that is on.
        rate_on: f64,
        /// Mean time that a source stays on.
        on_s: f64,
        /// Mean time that a source stays off.
        off_s: f64,
        /// Shape of the Pareto distributions, above 1; above 2 the memory is short.
        shape: f64,
    },
    /// b-model: the requests of an interval are split between its halves by `bias` to `1 − bias`, the
    /// larger part at random, down to `levels` halvings (Wang et al., "Data mining meets performance
    /// evaluation: fast algorithms for modeling bursty traffic", ICDE 2002). Intervals repeat
    /// independently.
    BModel {
        /// Mean arrivals per second.
        rate: f64,
        /// The share of the larger half, from 0.5 to below 1. 0.5 is smooth; real disk and web traffic has about
        /// 0.6 to 0.8.
        bias: f64,
        /// Length of the interval that is split.
        interval_s: f64,
        /// Number of halvings, 1 to 40.
        levels: u32,
    },
    /// Another process whose rate is multiplied by `1 + amplitude·sin(2π·(t/period + phase))`. The
    /// modulation stretches time, so it preserves the mean rate and short-term burstiness.
    Diurnal {
        /// The process that is modulated.
        of: Box<Self>,
        /// Length of a cycle.
        period_s: f64,
        /// Largest relative deviation from the mean rate, 0 to below 1.
        amplitude: f64,
        /// Position of time zero in the cycle, 0 to 1.
        phase: f64,
    },
    /// Several processes superposed, independent of each other.
    Sum(Vec<Self>),
}

/// A state of [`RateProcess::Mmpp`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MmppState {
    /// Arrivals per second; may be zero.
    pub rate: f64,
    /// Mean length of a stay, seconds.
    pub stay_s: f64,
}

impl RateProcess {
    /// Mean arrivals per second over a long time.
    pub fn mean_rate(&self) -> f64 {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } | Self::BModel { rate, .. } => *rate,
            Self::Mmpp { states } => {
                // Every state is visited equally often, so the time in each is proportional to its mean
                // stay.
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

    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// Describes the first parameter that is not.
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        match self {
            Self::Constant { rate } | Self::Poisson { rate } => ParameterError::positive("rate", *rate),
            Self::Mmpp { states } => {
                check_states(states)?;
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
}

fn check_states(states: &[MmppState]) -> Result<(), ParameterError> {
    ParameterError::require(states.len() >= 2, || {
        format!("expected at least 2 states, found {}", states.len())
    })?;
    for state in states {
        ParameterError::positive("mean stay in a state", state.stay_s)?;
        ParameterError::require(state.rate >= 0.0 && state.rate.is_finite(), || {
            format!("expected a rate of at least 0, found {}", state.rate)
        })?;
    }
    Ok(())
}
