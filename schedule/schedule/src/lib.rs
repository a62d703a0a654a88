//! TailClipper's Oldest Request First on stock Linux, for services with a thread per request or a pool of
//! threads.
//!
//! Each thread takes a [`Permit`] of the service's [`Gate`] before it works on a request. The gate admits
//! the c oldest and keeps the others waiting; a request that is done hands over directly to the next one.
//! An older request that arrives late demotes the thread of the youngest to SCHED_IDLE, if it is proven
//! that the thread can be promoted again. The caller defines the age of requests by a [`RequestKey`].
//!
//! ```
//! use schedule::{Gate, GateSettings, RequestKey};
//! let gate = Gate::new(GateSettings::default());
//! let permit = gate.enter(RequestKey(1_700_000_000_000_000_000));
//! let answer = permit.while_blocked(|| 42);   // a call that waits for something other than a CPU
//! drop(permit);                               // the next request goes on
//! assert_eq!(answer, 42);
//! ```
//!
//! Requests that are tasks and not threads take an [`AsyncPermit`] of an [`AsyncGate`], under any
//! runtime. It admits by the same rule but demotes no thread, because tasks share threads.
//!
//! [`discipline::pool::RequestPool`] makes the decisions, a pure state machine whose documentation states
//! the invariants; this crate adds threads, locks and the kernel. Nothing here needs root. Threads and
//! processes that a demoted thread starts inherit SCHED_IDLE permanently: start them inside
//! [`Permit::while_blocked`], which promotes the thread before. Create gates after a fork.
#![warn(missing_docs)]

mod async_gate;
#[cfg(test)]
mod async_interleavings;
mod async_permit;
#[cfg(test)]
mod async_simulation;
mod cancellation;
mod entry_cell;
mod entry_refusal;
mod gate;
mod handover;
mod held;
#[cfg(test)]
mod interleavings;
mod kernel;
mod measured_limit;
mod report;
mod sentinel;
mod service_variation;
mod settings;
mod shared_async_gate;
mod shared_gate;
mod sync;
mod task_admission;
mod wake_list;
mod watch;

pub use async_gate::{AsyncGate, EntryFuture};
pub use async_permit::{AsyncPermit, PermitHandle};
pub use cancellation::EntryCancellation;
pub use discipline::RequestKey;
pub use discipline::serve::PoolOrder;
pub use entry_refusal::EntryRefusal;
pub use gate::{Gate, Permit};
pub use report::{AdmissionReport, GateStatistics, PreemptionReport, SentinelReport};
pub use service_variation::{ServiceVariation, automatic_limit};
pub use settings::{AsyncGateSettings, ConcurrencyLimit, GatePreemption, GateSettings};
