//! Discrete-event simulation of stations, chains and feed-forward graphs under any queueing discipline.
//!
//! A [`QueueingNetwork`] describes the system, and [`RequestEntry`] values supply requests with demands
//! that are drawn before they enter. [`SimulationEngine::run`] simulates them and returns [`Measures`].
//! Times are integer nanoseconds. Equal inputs give equal measures, bit by bit. [`replicate`] runs
//! several replications and computes confidence intervals.
//!
//! **Order of simultaneous events**, by which every run is repeatable. First departures and ends of
//! slices, the station with the highest index first and its workers in order. Then items that become
//! eligible by time alone (tokens that are due), the station with the highest index first. Then other
//! work that takes workers away or gives them back. Then deliveries after network delays, by station and
//! in sending order. Then requests that reach the first steps, and new arrivals, by entry.
//! Within one event, the worker that became free takes the next item first; then the request moves on,
//! and without a delay arrives at the next station within the same event.
//!
//! Memory is proportional to the requests inside; measurements go into [`Histogram`]s. Nothing is
//! allocated per event unless more requests are inside than ever before. [`SimulationEngine::run_logged`]
//! keeps every request of the window.
//!
//! Not covered: networks in which requests return to an earlier step, losses and retries.

mod collector;
mod completion_order;
mod delay_line;
mod drawing;
mod entry;
mod entry_point;
mod error;
mod histogram;
mod interference;
mod logged_request;
mod measures;
mod network;
mod plan;
mod replicate;
mod report;
mod requests;
mod simulation;
mod station;
mod timer_layout;
mod timers;
mod window;

pub(crate) use completion_order::OrderTracker;
pub use confidence::{Estimate, t_quantile};
pub use entry::{DELAY_ONLY, DrawRequest, EntryArrivals, RequestDraft, RequestEntry, SKIP};
pub use error::{InvalidSimulationError, SimulationError};
pub use histogram::Histogram;
pub use logged_request::LoggedRequest;
pub use measures::{Measures, SLOWDOWN_UNIT, StationMeasures};
pub use network::{Interference, NetworkStation, NetworkStep, QueueingNetwork};
pub use plan::{LatencyStatistic, PrecisionGoal, SimulationPlan};
pub use replicate::{ReplicationWatch, Unwatched, replicate, replicate_watched};
pub use report::{ReplicationVerdict, SimulationReport};
pub use simulation::SimulationEngine;
pub use window::MeasurementWindow;
