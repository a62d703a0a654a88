//! Real servers as children in network namespaces: started, probed until they are ready, and ended without remains.
//!
//! Each server is the first process of a process namespace of its own, so that killing it kills
//! everything that it started. Its output goes to a log file, whose end is quoted when the server does
//! not become ready. Servers have real-time priority where the machine allows it: otherwise they would
//! wait for other programs, tens of milliseconds on a small virtual machine, and spoil a latency test.

mod catalogue;
mod launch;
mod process;
mod readiness;
mod service;

pub use catalogue::{LAB_SERVERS, LabServer};
pub use process::{
    ServerEnvironment, ServerLifetime, ServerProcess, is_running, kill, may_be_realtime, started_at,
};
pub use service::{EmulatedSsdServer, HttpServer, LabService, MemcachedServer, NbdkitServer, NfsServer};
