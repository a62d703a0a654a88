//! The gate with real threads: permits are never leaked, and no thread stays demoted.

mod admission;
mod preemption;
mod rights;
mod sentinel;

use machine::scheduling::{SchedulingPolicy, scheduling};
use schedule::{ConcurrencyLimit, Gate, GatePreemption, GateSettings};
use std::num::NonZeroU32;
use std::time::Duration;

/// Longer than any finite wait.
const LONG: Duration = Duration::from_secs(120);

fn fixed(limit: u32) -> ConcurrencyLimit {
    ConcurrencyLimit::Fixed(NonZeroU32::new(limit).expect("at least 1"))
}

/// Returns settings with a limit, without patience.
fn settings(limit: u32, preemption: GatePreemption) -> GateSettings {
    GateSettings { limit: fixed(limit), preemption, patience: None, ..GateSettings::default() }
}

fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn policy(thread: u32) -> SchedulingPolicy {
    scheduling(thread).expect("the thread is there").policy
}

/// Checks that the gate is empty and has lost no request.
fn assert_empty(gate: &Gate) {
    let now = gate.statistics();
    let present = now.waiting + now.serving + now.demoted + now.blocked + now.overdue + now.asleep;
    assert_eq!((present, now.entered), (0, now.left), "{now:?}");
    assert_eq!((now.demotions, now.refused_changes), (now.promotions, 0), "{now:?}");
}
