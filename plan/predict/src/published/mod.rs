//! SNC-Meister as the thesis has it (chapter 4 and Appendix A), and a variant with one bound per stage, for figures to be
//! comparable.
//!
//! A workload's arrivals are the published fit of a Markov-modulated process ([`workload::mmpp`]) with σ = 0; all others of
//! the same or higher priority go first, also within a priority; dependent groups are merged by the aggregation
//! algorithm of A.4, with Hölder's weights optimised.
//!
//! - [`PublishedSnc`]: the stages are convolved to one queue, what shares it is subtracted after that, and Theorem 1 is
//!   applied once (A.4, Eq. A.5).
//! - [`SncByStage`]: Theorem 1 is applied at each stage, and the latencies are added by a union bound.
//!
//! **Their bounds are exceeded by real traffic**: windows of a second hide shorter bursts, exponential sizes
//! hide batches, and σ = 0 forgets the state that an interval starts in. The fit also depends on where windows are
//! cut, by tens of percent. They are here to be compared with; nothing should be promised by them.

mod by_stage;
mod path;
mod queue;

pub use by_stage::{EpsilonSplit, SncByStage, SncStage, StageSketch};
pub use path::{Convolution, PathLatency, PathSketch, PublishedSnc};

use calculus::snc::{
    MarkovArrivals, MarkovState, Prefactor, RateTable, ServiceProcess, SquareMatrix, ThetaGrid, TimeStep,
};
use model::{CircularTrace, Job, Stage};
use units::Nanos;
use workload::mmpp::{FitOptions, FittedProcess, Fitter};

/// The published fit of some work of a workload's requests, seconds, with windows counted from `silence` before the first.
fn fitted(
    options: FitOptions,
    traffic: &CircularTrace<Job>,
    silence: Nanos,
    work: impl Fn(&Job) -> f64,
) -> Option<FittedProcess> {
    let mut fitter = Fitter::new(options).from_origin(Nanos::ZERO);
    for job in traffic.items() {
        fitter.push(job.arrival + silence, work(job));
    }
    fitter.finish()
}

/// The table of a fit; that of unknown traffic where there is none of the published kind.
fn table(grid: ThetaGrid, fitted: Option<FittedProcess>) -> RateTable {
    match fitted.and_then(|process| markov_arrivals(&process)) {
        Some(arrivals) => RateTable::new(grid, &arrivals),
        None => RateTable::unbounded(grid),
    }
}

/// The arrivals of a fit as the published procedure reads it, with σ = 0. `None` if a state sends more than a request per
/// step.
pub fn markov_arrivals(fitted: &FittedProcess) -> Option<MarkovArrivals> {
    let step = fitted.step.as_secs();
    let transitions = SquareMatrix::from_fn(fitted.states.len(), |i, j| fitted.states[i].next[j]);
    let states = fitted
        .states
        .iter()
        .map(|state| MarkovState { per_step: state.rate * step, mean_work: state.mean_work });
    MarkovArrivals::new(states.collect(), transitions, step, Prefactor::Dropped).ok()
}

/// The step of discrete time, which is that of the fit.
fn time_step(options: &FitOptions) -> TimeStep {
    TimeStep::new(options.step.as_secs()).expect("checked by the fitter")
}

/// The queues of a stage before any traffic is taken from them: on a link also the client's, if it counts.
fn queues(stage: Stage, client_link: bool) -> Vec<ServiceProcess> {
    let server = ServiceProcess::constant(stage.name(), 1.0);
    match stage {
        Stage::NetworkIn | Stage::NetworkOut if client_link => {
            vec![ServiceProcess::constant("client", 1.0), server]
        }
        _ => vec![server],
    }
}

/// Some queues in sequence as one (Theorem 5).
fn convolved(queues: impl IntoIterator<Item = ServiceProcess>) -> Option<ServiceProcess> {
    queues.into_iter().reduce(|path, next| path.convolve(&next))
}
