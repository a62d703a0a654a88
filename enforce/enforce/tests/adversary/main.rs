//! Hostile clients cannot break the proxy's promises to others. The judge counts at the server, behind a
//! device of a known speed; latencies are compared with those of the same client alone, in the same
//! round.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(dead_code, reason = "the benchmark uses the rest")]

mod bounds;
mod caller;
mod device;
mod ground;
mod identity;
mod latency;
mod limits;
mod oracle;
mod priority;
#[path = "../proxy/mod.rs"]
mod proxy;
mod scripts;
mod server;
mod speech;
mod trial;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time uses the machine.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone_on_the_machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
