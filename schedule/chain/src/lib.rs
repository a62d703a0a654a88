//! Chains of real services on one machine in different scheduling modes, side by side with their
//! simulation.
//!
//! ```text
//! scenario ──▶ ChainWorkload ──▶ play: tiers as processes, load ──▶ PlayedRequest ──▶ PlayMeasures ──▶ RatioEstimate
//!                    │                                                   ▲
//!                    └──────────▶ predicted_play: the simulator ─────────┘
//! ```
//!
//! A [`ChainWorkload`] has every request drawn in advance: its arrival, the tiers that it visits and its
//! CPU time at each. All modes of a repetition play the same workload, live and simulated, and the same
//! functions measure both. [`run_bench`] interleaves the modes. [`GainSplit`] separates the effect of the
//! limit of requests in service from that of age, and [`ClassMeasures`] counts late requests by class.
//!
//! A tier is a process ([`run_tier`]) with a thread per connection, on its own CPUs. It speaks HTTP/1.1,
//! reads the request's start from `baggage`, spends the CPU time that the request states and calls the
//! next tier. Not covered: concurrent calls of a tier that it joins (they are made in sequence, in the
//! simulation as well), lost requests and retries, more than one machine.

mod age_order;
mod bench;
mod class_measures;
mod gains;
mod grouping;
mod http;
mod kernel_slice;
mod machine_fit;
mod measures;
mod mode;
mod play;
#[cfg(test)]
mod recursion;
mod report;
mod sender;
mod settings;
mod simulated;
mod spin;
mod tier;
mod topology;
mod workload;

pub use age_order::{TierVisit, younger_share};
pub use bench::{BenchHost, check_playable, no_deadlines, run_bench, scenario_limit};
pub use class_measures::ClassMeasures;
pub use gains::{GainSplit, GainVerdict, RatioEstimate};
pub use grouping::TierGrouping;
pub use kernel_slice::KernelSlices;
pub use measures::PlayMeasures;
pub use mode::ScheduleMode;
pub use report::{BenchReport, ModeReport, PlaySummary, UnplayedMode};
pub use settings::BenchSettings;
pub use sim::pool_tiers::{PlayedRequest, RouteHop, WaitTreatment};
pub use simulated::{predicted_play, predicted_waiting_play};
pub use tier::run_tier;
pub use topology::DemoTopology;
pub use workload::{ChainClass, ChainEntry, ChainRequest, ChainTier, ChainWorkload, draw_workload};
