//! Arrivals modulated by a Markov chain in discrete time.
//!
//! In a step, a state sends a request with a given probability, of exponential work. With Q the transition
//! matrix and E(θ) the diagonal matrix of the states' moment generating functions per step,
//! E e^{θA(0,n)} = π(EQ)^n 1, so ρ(θ) = ln sp(E(θ)Q)/(θ·step).
//!
//! Thesis Table 4.1 prints ρ = sp(E(θ)Q) and σ = 0: the logarithm and the division by θ are missing, and
//! σ = 0 drops what a start in a busy state adds. The eigenvector gives the σ that is safe for every n
//! and every start; [`Prefactor`] chooses.

use super::bound::{MgfBound, MgfEnvelope};
use super::spectral::{SquareMatrix, growth_above_one};
use std::fmt;

/// What a state sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarkovState {
    /// The probability of a request in a step.
    pub per_step: f64,
    /// The mean of its exponential work, seconds of capacity.
    pub mean_work: f64,
}

/// Whether σ(θ) accounts for where the chain starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefactor {
    /// σ = 0, as published. Not a bound for short intervals.
    Dropped,
    /// σ = ln(max h/min h)/θ with h the Perron vector: a bound for every interval and every start.
    Kept,
}

/// A Markov chain whose states send work.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkovArrivals {
    states: Vec<MarkovState>,
    transitions: SquareMatrix,
    step: f64,
    prefactor: Prefactor,
    theta_end: f64,
}

/// Numbers that are not a Markov chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkovError {
    /// No state, or not one row and column for each.
    Shape,
    /// A probability outside [0, 1], or a row (counted from 0) that does not sum to 1.
    Row(usize),
    /// A state whose request probability is outside [0, 1] or whose work is negative or not finite.
    State(usize),
    /// The step is not positive.
    TimeStep,
}

impl fmt::Display for MarkovError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => {
                f.write_str("a Markov chain needs as many rows and columns as states, at least one")
            }
            Self::Row(row) => write!(f, "row {row} of the transition matrix is not a distribution"),
            Self::State(state) => write!(f, "state {state} sends impossible requests: shorten the step"),
            Self::TimeStep => f.write_str("the step must be positive"),
        }
    }
}

impl std::error::Error for MarkovError {}

impl MarkovArrivals {
    /// `step` in seconds; row i of `transitions` is where state i goes next.
    pub fn new(
        states: Vec<MarkovState>,
        transitions: SquareMatrix,
        step: f64,
        prefactor: Prefactor,
    ) -> Result<Self, MarkovError> {
        if states.is_empty() || transitions.size() != states.len() {
            return Err(MarkovError::Shape);
        }
        if !(step > 0.0 && step.is_finite()) {
            return Err(MarkovError::TimeStep);
        }
        let probability = |p: f64| (0.0..=1.0).contains(&p);
        let distribution =
            |row: &[f64]| row.iter().all(|&p| probability(p)) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-9;
        if let Some(row) = (0..states.len()).find(|&row| !distribution(transitions.row(row))) {
            return Err(MarkovError::Row(row));
        }
        let possible =
            |s: &MarkovState| probability(s.per_step) && (0.0..f64::INFINITY).contains(&s.mean_work);
        if let Some(state) = states.iter().position(|s| !possible(s)) {
            return Err(MarkovError::State(state));
        }
        let sends = states.iter().filter(|s| s.per_step > 0.0);
        let theta_end = sends.map(|s| 1.0 / s.mean_work).fold(f64::INFINITY, f64::min);
        Ok(Self { states, transitions, step, prefactor, theta_end })
    }

    /// The states.
    pub fn states(&self) -> &[MarkovState] {
        &self.states
    }

    /// Where the moment generating function ends, per second of capacity; infinite if nothing is sent.
    pub fn theta_end(&self) -> f64 {
        self.theta_end
    }

    /// E(θ)Q − I; `None` outside the domain.
    pub fn excess(&self, theta: f64) -> Option<SquareMatrix> {
        if !(theta > 0.0 && theta < self.theta_end) {
            return None;
        }
        let growth: Vec<f64> = self.states.iter().map(|state| state.mgf_minus_one(theta)).collect();
        Some(SquareMatrix::from_fn(self.states.len(), |i, j| {
            let q = self.transitions.at(i, j);
            if i == j { growth[i] * q - self.leaving(i) } else { q + growth[i] * q }
        }))
    }

    /// 1 − Q_ii, from the other entries.
    fn leaving(&self, state: usize) -> f64 {
        let row = self.transitions.row(state);
        row.iter().enumerate().filter(|&(j, _)| j != state).map(|(_, q)| q).sum()
    }
}

impl MarkovState {
    fn mgf_minus_one(&self, theta: f64) -> f64 {
        let x = theta * self.mean_work;
        if self.per_step == 0.0 { 0.0 } else { self.per_step * x / (1.0 - x) }
    }
}

impl MgfEnvelope for MarkovArrivals {
    fn at(&self, theta: f64) -> Option<MgfBound> {
        let (growth, spread) = growth_above_one(&self.excess(theta)?)?;
        let burst = match self.prefactor {
            Prefactor::Dropped => 0.0,
            Prefactor::Kept => spread / theta,
        };
        MgfBound { rate: growth.ln_1p() / (theta * self.step), burst }.finite()
    }
}
