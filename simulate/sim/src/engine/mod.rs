//! Discrete-event simulation of stations, chains and feed-forward graphs under any queueing discipline.
//!
//! A [`QueueingNetwork`] says what is simulated, [`RequestEntry`] values bring requests with demands that are drawn
//! before they enter, [`SimulationEngine::run`] plays them and returns [`Measures`]. Times are integer nanoseconds. Equal
//! inputs give equal measures, bit by bit. [`replicate`] runs several and says how sure the figures are.
//!
//! **Order of simultaneous events**, by which every run is repeatable: first departures and ends of slices, the
//! station with the highest index first and its workers in order; then what becomes able to be served by time alone
//! (tokens that are due), the station with the highest index first; then other work that takes workers away or gives
//! them back; then deliveries after network delays, by station and then as they were sent; then requests that reach the
//! first steps and new arrivals, by entry.
//! Within one event, the worker that became free takes the next item first; then the request moves on, and if
//! that is without delay, arrives at the next station within the same event.
//!
//! Memory is that of the requests inside; what is measured goes into [`Histogram`]s. Nothing is allocated per
//! event unless more requests are inside than ever before. [`SimulationEngine::run_logged`] keeps every request of the
//! window.
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
