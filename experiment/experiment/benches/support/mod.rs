//! Shared parts of the benchmarks with live servers and of a test: server and client in network namespaces,
//! the papers' servers, knobs set for a period, and measurements.
//!
//! The server has CPU 0, unless a plan says otherwise. The client, the wire between both, and this
//! program have CPU 1. Output of the server's device is received there, so that CPU 0 does only the work
//! of the server's machine.
#![allow(dead_code, reason = "each program uses its parts")]

pub(crate) mod figures;
pub(crate) mod fix;
pub(crate) mod offered;
pub(crate) mod others;
pub(crate) mod period;
pub(crate) mod rounds;
pub(crate) mod server;
pub(crate) mod site;

/// The CPU of the server.
pub(crate) const SERVER_CPU: usize = 0;
/// The CPU of everything else.
pub(crate) const CLIENT_CPU: usize = 1;

/// A CPU as a hexadecimal mask.
pub(crate) fn mask(cpu: usize) -> String {
    format!("{:x}", 1 << cpu)
}
