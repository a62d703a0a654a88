//! Checks that this machine can play a scenario, and scheduling of the load beside the tiers.

use crate::tier::ROUND_ROBIN_PRIORITY;
use crate::workload::ChainTier;
use machine::scheduling::{self, SchedulingPolicy, ThreadScheduling, own_thread};
use model::OperationError;
use std::collections::BTreeSet;
use units::Nanos;

/// Real-time priority of the load, above that of tiers under SCHED_RR.
const LOAD_PRIORITY: u32 = 2;
/// Slice of the load if it cannot have real-time priority: Linux's minimum, which makes it preempt others
/// on wakeup (since Linux 6.12).
const LOAD_SLICE_NS: u64 = 100_000;

/// Assigns CPUs to each tier.
pub(crate) fn tier_cpus(tiers: &[ChainTier]) -> Result<Vec<BTreeSet<usize>>, OperationError> {
    let allowed = scheduling::cpus(own_thread())
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

/// Scheduling of this thread as the load, so that it runs as soon as a request is due. Dropping it
/// restores the thread's former scheduling.
pub(crate) struct LoadTurn {
    before: Option<ThreadScheduling>,
    /// Description of the scheduling.
    pub(crate) scheduling: String,
}

impl LoadTurn {
    pub(crate) fn begin() -> Self {
        let own = own_thread();
        // If either fails, the lateness shows in the load's lag.
        let _ = machine::realtime::exact_timers();
        let before = scheduling::scheduling(own).ok();
        let fifo = ThreadScheduling::real_time(SchedulingPolicy::Fifo, LOAD_PRIORITY);
        if scheduling::set_scheduling(own, &fifo).is_ok() {
            return Self { before, scheduling: fifo.to_string() };
        }
        let nice = before.map_or(0, |before| before.nice);
        let short = ThreadScheduling { slice_ns: LOAD_SLICE_NS, ..ThreadScheduling::ordinary(nice) };
        let scheduling = match scheduling::set_scheduling(own, &short) {
            Ok(()) => format!("ordinary, slices of {}", Nanos(LOAD_SLICE_NS)),
            Err(_) => "ordinary".to_owned(),
        };
        Self { before, scheduling }
    }
}

impl Drop for LoadTurn {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = scheduling::set_scheduling(own_thread(), before);
        }
    }
}

/// Returns the reason why this process may not use SCHED_RR, by a test on a thread that then ends.
pub(crate) fn no_round_robin() -> Option<String> {
    let tried = std::thread::spawn(|| {
        let wanted = ThreadScheduling::real_time(SchedulingPolicy::RoundRobin, ROUND_ROBIN_PRIORITY);
        scheduling::set_scheduling(own_thread(), &wanted)
    });
    let error = tried.join().ok()?.err()?;
    Some(format!("no real-time priority ({error}); `ulimit -r` or the capability SYS_NICE gives it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_scheduling_back() {
        let before = scheduling::scheduling(own_thread()).unwrap();
        let turn = LoadTurn::begin();
        let during = scheduling::scheduling(own_thread()).unwrap();
        assert!(
            during.policy == SchedulingPolicy::Fifo || turn.scheduling.starts_with("ordinary"),
            "{during}"
        );
        drop(turn);
        assert_eq!(scheduling::scheduling(own_thread()).unwrap(), before);
    }

    #[test]
    fn tiers_have_cpus_of_their_own() {
        let tier = |workers| ChainTier { name: "a".into(), workers };
        let one = tier_cpus(&[tier(1)]).unwrap();
        assert!(one.len() == 1 && one[0].len() == 1);
        let error = tier_cpus(&[tier(1), tier(100_000)]).unwrap_err();
        assert!(error.message.contains("100001 CPUs") && error.hint.is_some(), "{error:?}");
        if let Ok(two) = tier_cpus(&[tier(1), tier(1)]) {
            assert!(two[0].is_disjoint(&two[1]));
        }
    }
}
