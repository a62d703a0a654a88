//! Demotes threads to SCHED_IDLE and promotes them again, after proving that promotion works.
//!
//! Without CAP_SYS_NICE and with RLIMIT_NICE at its default of 0, a thread can become SCHED_IDLE and never
//! leave it again (EPERM). So no thread is demoted before a scratch thread has gone both ways. The proof
//! holds for the user and the limit under which it was made; if they change it is repeated. A thread that is
//! not scheduled by an ordinary policy proves nothing about others, because threads inherit their creator's
//! policy: its result is not kept.

use crate::entry_cell::{EntryCell, LevelChange};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling, set_scheduling};
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Credentials that the right to promote threads depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SchedulingRights {
    user: u32,
    nice_limit: Option<u64>,
}

impl SchedulingRights {
    fn now() -> Self {
        Self { user: geteuid().as_raw(), nice_limit: getrlimit(Resource::Nice).current }
    }
}

/// Lowest nice value that a demoted thread was restored to, or the reason for failure.
type PromotionProof = Result<i32, String>;

/// Proof of this process, with the rights under which it was made.
static PROOF: RwLock<Option<(SchedulingRights, PromotionProof)>> = RwLock::new(None);

/// Returns the proof for the process's present rights. It never blocks on the lock: the child of a fork
/// inherits the lock as the parent's threads held it.
pub(crate) fn promotion_proof() -> PromotionProof {
    let rights = SchedulingRights::now();
    let known = PROOF.try_read().ok().and_then(|proof| proof.clone().filter(|(of, _)| *of == rights));
    if let Some((_, result)) = known {
        return result;
    }
    let result = prove();
    if is_ordinary()
        && let Ok(mut proof) = PROOF.try_write()
    {
        *proof = Some((rights, result.clone()));
    }
    result
}

/// Demotes a scratch thread and promotes it again.
fn prove() -> PromotionProof {
    let scratch = std::thread::Builder::new().name("gate-proof".to_owned()).spawn(demote_and_promote);
    let scratch = scratch.map_err(|error| format!("a thread to try it on could not be started: {error}"))?;
    scratch.join().unwrap_or_else(|_| Err("the thread to try it on failed".to_owned()))
}

fn demote_and_promote() -> PromotionProof {
    let number = own_number();
    let failed = |what: &str, error: std::io::Error| {
        format!(
            "a thread cannot be {what}: {error}; allow it by the capability SYS_NICE or RLIMIT_NICE of at least 20 \
             (`LimitNICE=20` of systemd, `ulimit -e 20`)"
        )
    };
    let before = scheduling(number).map_err(|error| failed("asked how it is scheduled", error))?;
    let before = with_least_nice(number, before);
    let Some(demoted) = demoted(before) else {
        return Err(format!("threads of this process are not ordinary ones: {before}"));
    };
    set_scheduling(number, &demoted).map_err(|error| failed("demoted to SCHED_IDLE", error))?;
    set_scheduling(number, &before).map_err(|error| failed("promoted again from SCHED_IDLE", error))?;
    match scheduling(number) {
        Ok(after) if (after.policy, after.nice) == (before.policy, before.nice) => Ok(before.nice),
        after => Err(format!("a thread that was promoted is scheduled as {after:?}, expected {before}")),
    }
}

/// Gives the calling thread the lowest nice value that this process may set: −20 with CAP_SYS_NICE, otherwise
/// the limit of RLIMIT_NICE. Threads with this nice value or a higher one can be demoted.
fn with_least_nice(number: u32, before: ThreadScheduling) -> ThreadScheduling {
    let of_limit = 20 - getrlimit(Resource::Nice).current.map_or(40, |limit| limit.min(40) as i32);
    let lower = [-20, of_limit].into_iter().filter(|nice| *nice < before.nice);
    let wanted = lower.map(|nice| ThreadScheduling { nice, ..before });
    wanted.into_iter().find(|wanted| set_scheduling(number, wanted).is_ok()).unwrap_or(before)
}

/// Returns true if the calling thread, and thus its new threads, can be demoted.
fn is_ordinary() -> bool {
    scheduling(own_number()).is_ok_and(|now| demoted(now).is_some())
}

/// Returns the TID of the calling thread.
pub(crate) fn own_number() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Returns the CPU time of the calling thread, nanoseconds, at least 1.
pub(crate) fn own_cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs().max(1)
}

/// Returns the scheduling of a demoted thread; `None` for threads without an ordinary policy, which are left
/// alone.
fn demoted(before: ThreadScheduling) -> Option<ThreadScheduling> {
    let is_ordinary = matches!(before.policy, SchedulingPolicy::Other | SchedulingPolicy::Batch);
    is_ordinary.then_some(ThreadScheduling { policy: SchedulingPolicy::Idle, slice_ns: 0, ..before })
}

/// Changes levels of threads with sched_setattr(2).
#[derive(Debug, Default)]
pub(crate) struct KernelLevels {
    has_failed: AtomicBool,
}

impl KernelLevels {
    /// Returns true if a promotion failed or the proof no longer holds: no further thread may be demoted.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn try_to_demote(&self, cell: &EntryCell) -> Option<ThreadScheduling> {
        let Ok(least_nice) = promotion_proof() else {
            self.has_failed.store(true, Ordering::Relaxed);
            return None;
        };
        // The TID of a cell from before a fork belongs to a thread of the parent.
        if !cell.is_of_this_process() {
            return None;
        }
        let before = scheduling(cell.number).ok().filter(|before| before.nice >= least_nice)?;
        set_scheduling(cell.number, &demoted(before)?).ok()?;
        Some(before)
    }
}

impl LevelChange for KernelLevels {
    fn demote(&self, cell: &EntryCell) -> bool {
        if self.has_failed() {
            return false;
        }
        let before = self.try_to_demote(cell);
        *cell.before.lock().unwrap_or_else(PoisonError::into_inner) = before;
        before.is_some()
    }

    fn promote(&self, cell: &EntryCell) -> bool {
        let before = cell.before.lock().unwrap_or_else(PoisonError::into_inner).take();
        // After a fork the child has one thread, whose TID equals its PID.
        let number = if cell.is_of_this_process() { cell.number } else { std::process::id() };
        let is_done = before.is_some_and(|before| set_scheduling(number, &before).is_ok());
        if !is_done {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a forked child whose parent's other thread was writing the proof.
    #[test]
    fn a_proof_that_another_thread_is_writing_is_made_anew() {
        let _held = PROOF.write();
        assert_eq!(promotion_proof(), prove());
    }

    /// Runs on a thread of the checker, since cells contain its locks.
    #[test]
    fn a_thread_of_the_parent_is_not_demoted_after_a_fork() {
        let round = || {
            let number = own_number();
            let before = scheduling(number).expect("the thread is there");
            let levels = KernelLevels::default();
            let cell = EntryCell::of_the_parent(number);
            assert!(!levels.demote(&cell) && cell.is_outdated());
            assert_eq!(scheduling(number).expect("the thread is there"), before);
        };
        shuttle::check_random(round, 1);
    }
}
