//! Oldest Request First of TailClipper on stock Linux, for services with a thread per request or a pool of threads.
//!
//! Each thread takes a [`Permit`] of the service's [`Gate`] before it works on a request. The gate admits the c oldest and
//! keeps the others waiting; whoever is done hands over directly to the next one. An older request that comes late
//! demotes the thread of the youngest to SCHED_IDLE, where it is proven that the thread can be promoted again. Which
//! request is older is for the caller to say by a [`RequestKey`].
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
//! Requests that are tasks and not threads take an [`AsyncPermit`] of an [`AsyncGate`], under any runtime. It admits the same
//! way and demotes nobody, because tasks share threads.
//!
//! Decisions are those of [`discipline::pool::RequestPool`], a pure state machine whose header states what holds; here are
//! threads, locks and the kernel. Nothing here needs root. Threads and processes that a demoted thread starts inherit SCHED_IDLE for good: start
//! them inside [`Permit::while_blocked`], which promotes the thread before. Make gates after a fork.
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
