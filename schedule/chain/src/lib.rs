//! Chains of real services on one machine under different schedulings, side by side with their simulation.
//!
//! ```text
//! scenario ──▶ ChainWorkload ──▶ play: tiers as processes, load ──▶ PlayedRequest ──▶ PlayMeasures ──▶ RatioEstimate
//!                    │                                                   ▲
//!                    └──────────▶ predicted_play: the simulator ─────────┘
//! ```
//!
//! A [`ChainWorkload`] has every request drawn in advance: when it arrives, which tiers it visits and how much CPU time
//! it needs at each. All modes of a repetition play the same one, live and simulated, and the same functions measure
//! both. [`run_bench`] interleaves the modes; [`GainSplit`] tells what the limit of requests in service does from
//! what their age does, and [`ClassMeasures`] how many requests of each class are late.
//!
//! A tier is a process ([`run_tier`]) with a thread per connection, on CPUs of its own. It speaks HTTP/1.1, takes the
//! request's start from `baggage`, spends the CPU time that the request names and calls the next tier. Not covered:
//! calls that a tier makes at once and joins (they are made one after the other, in the simulation as well), lost
//! requests and retries, more than one machine.

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
mod played_request;
#[cfg(test)]
mod recursion;
mod report;
mod sender;
mod settings;
mod simulated;
mod spin;
mod tier;
mod topology;
mod waiting_play;
mod workload;

pub use age_order::{TierVisit, younger_share};
pub use bench::{BenchHost, check_playable, no_deadlines, run_bench, scenario_limit};
pub use class_measures::ClassMeasures;
pub use gains::{GainSplit, GainVerdict, RatioEstimate};
pub use grouping::TierGrouping;
pub use kernel_slice::KernelSlices;
pub use measures::PlayMeasures;
pub use mode::ScheduleMode;
pub use played_request::PlayedRequest;
pub use report::{BenchReport, ModeReport, PlaySummary};
pub use settings::BenchSettings;
pub use simulated::predicted_play;
pub use tier::run_tier;
pub use topology::DemoTopology;
pub use waiting_play::{WaitTreatment, predicted_waiting_play};
pub use workload::{ChainClass, ChainEntry, ChainRequest, ChainTier, ChainWorkload, RouteHop, draw_workload};
