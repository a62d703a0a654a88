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

/// A state of the chain and what it sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarkovState {
    /// The probability of a request in a step.
    pub per_step: f64,
    /// The mean of its exponential work, seconds of capacity.
    pub mean_work: f64,
}

/// Treatment of the chain's initial state in σ(θ).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefactor {
    /// The published σ = 0, which is not a bound for short intervals.
    Dropped,
    /// The value σ = ln(max h/min h)/θ with h the Perron vector: a bound for every interval and every start.
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

/// Why numbers make no Markov chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkovError {
    /// There is no state, or not one row and column for each.
    Shape,
    /// This row (counted from 0) has a probability outside [0, 1], or does not sum to 1.
    Row(usize),
    /// This state's request probability is outside [0, 1], or its work is negative or not finite.
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
    /// A chain with a step in seconds, where row i of `transitions` says where state i goes next.
    ///
    /// # Errors
    /// When the numbers are not those of a Markov chain.
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
        if let Some(row) = (0..states.len()).find(|&row| !is_distribution(transitions.row(row))) {
            return Err(MarkovError::Row(row));
        }
        if let Some(state) = states.iter().position(|state| !state.is_possible()) {
            return Err(MarkovError::State(state));
        }
        let sends = states.iter().filter(|s| s.per_step > 0.0);
        let theta_end = sends.map(|s| 1.0 / s.mean_work).fold(f64::INFINITY, f64::min);
        Ok(Self { states, transitions, step, prefactor, theta_end })
    }

    /// The states of the chain.
    pub fn states(&self) -> &[MarkovState] {
        &self.states
    }

    /// The matrix E(θ)Q − I; `None` outside the domain.
    pub fn excess(&self, theta: f64) -> Option<SquareMatrix> {
        if !(theta > 0.0 && theta < self.theta_end) {
            return None;
        }
        let growth: Vec<f64> = self.states.iter().map(|state| state.mgf_minus_one(theta)).collect();
        Some(SquareMatrix::from_fn(self.states.len(), |i, j| {
            let q = self.transitions.at(i, j);
            if i == j { growth[i] * q - self.leaving_probability(i) } else { q + growth[i] * q }
        }))
    }

    /// The probability 1 − Q_ii of leaving a state, from the other entries.
    fn leaving_probability(&self, state: usize) -> f64 {
        let row = self.transitions.row(state);
        row.iter().enumerate().filter(|&(j, _)| j != state).map(|(_, q)| q).sum()
    }
}

fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

fn is_distribution(row: &[f64]) -> bool {
    row.iter().all(|&p| is_probability(p)) && (row.iter().sum::<f64>() - 1.0).abs() < 1e-9
}

impl MarkovState {
    fn is_possible(&self) -> bool {
        is_probability(self.per_step) && (0.0..f64::INFINITY).contains(&self.mean_work)
    }

    /// The moment generating function of what the state sends in a step, minus one.
    fn mgf_minus_one(&self, theta: f64) -> f64 {
        let x = theta * self.mean_work;
        if self.per_step == 0.0 { 0.0 } else { self.per_step * x / (1.0 - x) }
    }
}

impl MgfEnvelope for MarkovArrivals {
    fn bound_at(&self, theta: f64) -> Option<MgfBound> {
        let (growth, spread) = growth_above_one(&self.excess(theta)?)?;
        let burst = match self.prefactor {
            Prefactor::Dropped => 0.0,
            Prefactor::Kept => spread / theta,
        };
        MgfBound { rate: growth.ln_1p() / (theta * self.step), burst }.finite()
    }
}
