//! Network calculus: arrival curves and the latency that strict priority guarantees under them.
//!
//! Everything is normalised by the capacity of the stage it belongs to, as in the thesis (§2.3.1): work
//! is seconds of the stage's full capacity, a rate is a fraction of it. Bounds round outward: a printed
//! bound is never below the exact value of its formula.
//!
//! [`snc`] has the stochastic calculus: latency at a percentile.
//! Reading order: [`ArrivalCurve`] and [`ServiceCurve`] are the curves; [`stage_delay`] and [`path_bound`] the bounds
//! of single limiters; [`PriorityQueue`] those of full curves at one queue; [`network`] those of feed-forward
//! networks.
//!
//! Not covered: where curves come from (traces) and which limits to choose (search).

mod arrival;
pub mod network;
mod priority;
mod queue;
mod service;
pub mod snc;
pub mod tail;

pub use arrival::{ArrivalCurve, CurveError, Vertex};
pub use priority::{PathBound, StageTerm, path_bound, round_up, shaping_delay, stage_delay};
pub use queue::PriorityQueue;
pub use service::{ServiceCurve, horizontal_deviation, output, vertical_deviation};
