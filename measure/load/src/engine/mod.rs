//! The timing thread: sends the requests that are due, receives replies, and sleeps or spins in between.

mod address_picker;
mod clock;
mod connection;
mod context;
mod event_loop;
mod in_flight;
mod poller;
mod reconnect;
mod request_log;
mod workload_state;

pub(crate) use event_loop::{EngineResults, LoadEngine, OpenedWorkload};
pub(crate) use reconnect::{EndedConnection, Reconnected, connect_all, reconnect_lost};
