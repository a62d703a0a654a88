//! Whether this machine can play a scenario, and how the load is scheduled beside the tiers.

use crate::tier::ROUND_ROBIN_PRIORITY;
use crate::workload::ChainTier;
use machine::scheduling::{self, SchedulingPolicy, ThreadScheduling};
use model::OperationError;
use std::collections::BTreeSet;
use units::Nanos;

/// The real-time priority of the load, above that of tiers under SCHED_RR.
const LOAD_PRIORITY: u32 = 2;
/// For how long the load runs before others may, where it has no real-time priority: the least that Linux takes, so that it
/// is woken at once (since Linux 6.12).
const LOAD_SLICE_NS: u64 = 100_000;

/// CPUs of its own for each tier.
pub(crate) fn tier_cpus(tiers: &[ChainTier]) -> Result<Vec<BTreeSet<usize>>, OperationError> {
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let allowed = scheduling::cpus(own)
        .map_err(|error| OperationError::machine(format_args!("the CPUs of this process: {error}")))?;
    let wanted: usize = tiers.iter().map(|tier| tier.workers as usize).sum();
    if wanted > allowed.len() {
        let found = allowed.len();
        return Err(OperationError::machine(format_args!(
            "the tiers need {wanted} CPUs of their own, and this process may use {found}"
        ))
        .hint("`taskset -p $$` shows which; `schedule bench --cpus` puts tiers together; `tailwright simulate` needs none"));
    }
    let mut left = allowed.into_iter();
    Ok(tiers.iter().map(|tier| left.by_ref().take(tier.workers as usize).collect()).collect())
}

/// Has this thread run as soon as a request is due, as far as it may, and says how.
pub(crate) fn schedule_load() -> String {
    let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let _ = machine::realtime::exact_timers();
    let fifo = ThreadScheduling::real_time(SchedulingPolicy::Fifo, LOAD_PRIORITY);
    let reset = ThreadScheduling { resets_on_fork: true, ..fifo };
    if scheduling::set_scheduling(own, &reset).is_ok() {
        return fifo.to_string();
    }
    let short =
        ThreadScheduling { slice_ns: LOAD_SLICE_NS, resets_on_fork: true, ..ThreadScheduling::ordinary(0) };
    match scheduling::set_scheduling(own, &short) {
        Ok(()) => format!("ordinary, slices of {}", Nanos(LOAD_SLICE_NS)),
        Err(_) => "ordinary".to_owned(),
    }
}

/// Why this process may not have threads under SCHED_RR, tried by a thread that ends with it.
pub(crate) fn no_round_robin() -> Option<String> {
    let tried = std::thread::spawn(|| {
        let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let wanted = ThreadScheduling::real_time(SchedulingPolicy::RoundRobin, ROUND_ROBIN_PRIORITY);
        scheduling::set_scheduling(own, &wanted)
    });
    let error = tried.join().ok()?.err()?;
    Some(format!("no real-time priority ({error}); `ulimit -r` or the capability SYS_NICE gives it"))
}
