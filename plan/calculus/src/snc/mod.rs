//! Stochastic network calculus: latency at a percentile from bounds on moment generating functions
//! (thesis chapter 4 and Appendix A).
//!
//! An arrival process A has the bound ρ(θ), σ(θ) when E e^{θA(m,n)} ≤ e^{θ(ρ(θ)(n−m) + σ(θ))} for every
//! interval, a service process S when E e^{−θS(m,n)} is bounded so (its ρ is negative). Five operators
//! make processes of processes: aggregation, leftover, output, convolution, and latency, which ends an
//! expression. Each has a form for independent operands and one, by Hölder's inequality, for dependent
//! ones. [`ArrivalProcess`] and [`ServiceProcess`] know the independent sources behind them, and the
//! operators choose the independent form exactly when the sources are disjoint.
//!
//! Work is seconds of a stage's capacity and rates are fractions of it, per second of time and not per
//! step: the step of discrete time is a parameter of the evaluation. A θ outside the domain of a bound,
//! an unstable queue and NaN are `None`, never a number.
//!
//! Not covered: where the parameters of a process come from (traces), schedulers better than "all others
//! of the same priority go first", and bounds that use the correlation over time (martingales).

mod aggregate;
mod bound;
mod expression;
mod latency;
mod markov;
mod minimise;
mod network;
mod queue;
mod spectral;
mod table;

pub use aggregate::{aggregate_by_clique, aggregate_in_groups, independent_groups};
pub use bound::{MgfBound, MgfEnvelope, PoissonBatches, SizeLaw, TokenBucket};
pub use expression::{ArrivalProcess, RandomSource, ServiceProcess, TimeStep};
pub use latency::{ExpressionPart, LatencyBound, LatencyQuery};
pub use markov::{MarkovArrivals, MarkovError, MarkovState, Prefactor};
pub use network::{OperatorOrder, TwoColumnError, TwoColumnFlow, TwoColumnNetwork};
pub use queue::{QueueLatency, TabulatedQueue};
pub use spectral::SquareMatrix;
pub use table::{DependentSum, RateTable, ThetaGrid, independent_sum};
