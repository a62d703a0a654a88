//! Network calculus: arrival curves and the latency that strict priority guarantees under them.
//!
//! Everything is normalised by the capacity of the stage it belongs to, as in the thesis (§2.3.1): work
//! is seconds of the stage's full capacity, a rate is a fraction of it. Bounds round outward: a printed
//! bound is never below the exact value of its formula.
//!
//! Reading order: [`ArrivalCurve`] and [`ServiceCurve`] are the curves; [`stage_delay`] and [`path_bound`] the bounds
//! of single limiters; [`PriorityQueue`] those of full curves at one queue; [`network`] those of feed-forward
//! networks. [`snc`] has the stochastic calculus, latency at a percentile from moment generating functions; [`tail`]
//! bounds the tail of sums of streams whose laws are known.
//!
//! [`limiters()`] has the token buckets that hold a workload to its curve, and [`EnforcedClass`] what real servers add.
//!
//! Not covered: where curves come from (traces) and which limits to choose (search).

mod arrival;
mod device;
mod enforced;
mod limiters;
pub mod network;
mod priority;
mod queue;
mod rounding;
mod service;
pub mod snc;
pub mod tail;

pub use arrival::{ArrivalCurve, CurveError, CurveVertex};
pub use device::DeviceQueue;
pub use enforced::EnforcedClass;
pub use limiters::{enforceable_limiters, limiters};
pub use priority::{PathBound, StageLoad, StageTerm, path_bound, shaping_delay, stage_delay};
pub use queue::PriorityQueue;
pub use rounding::round_up;
pub use service::ServiceCurve;
pub(crate) use service::horizontal_deviation;
pub(crate) use service::output_curve;
