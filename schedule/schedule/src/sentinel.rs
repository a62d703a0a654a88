//! The sentinel: a thread that, while requests wait, detects threads in service that sleep without having
//! announced it.
//!
//! [`discipline::pool::RequestPool::look`] defines the effect of a sample; this module asks the kernel. A
//! thread counts as asleep if two consecutive samples find it sleeping: a thread that was admitted and is not
//! yet awake, or that waits briefly for a lock, seldom is. The sentinel is an ordinary thread, so that
//! threads in service cannot keep it from taking or releasing the gate's lock. It pauses at least fifty times
//! as long as a sample took of a CPU, which limits it to 2 % of a CPU for any number of threads. It sleeps
//! while no request waits and none is set aside.
//!
//! Not covered: the reason for sleeping. A thread that waits for a lock of another request sleeps like one
//! that waits for a disk.

use crate::entry_cell::EntryCell;
use crate::handover::Handover;
use crate::kernel::{KernelLevels, own_number};
use crate::report::SentinelReport;
use crate::sync::Arc;
use crate::watch::Watch;
use discipline::pool::PooledRequest;
use machine::{clock, thread_state};
use std::num::NonZeroU32;
use std::time::Duration;

/// Minimum interval between samples.
const EVERY_MIN: Duration = Duration::from_micros(100);
/// Minimum ratio of a pause to the CPU time of the sample before it.
const PAUSE_PER_LOOK: u32 = 50;

/// Sentinel of a gate, if enabled.
#[derive(Debug)]
pub(crate) struct Sentinel {
    every: Option<Duration>,
    /// Reason why it is unavailable; `None` if it is available.
    lacks: Option<String>,
    pub(crate) watch: Watch,
}

impl Sentinel {
    /// Creates a sentinel that samples at this interval, if the kernel reports which threads sleep.
    pub(crate) fn new(every: Option<Duration>) -> Self {
        let lacks = every.and_then(|_| probe().err());
        Self { every: every.map(|every| every.max(EVERY_MIN)), lacks, watch: Watch::named("gate-sentinel") }
    }

    pub(crate) fn report(&self) -> SentinelReport {
        match (self.every, &self.lacks) {
            (None, _) => SentinelReport::Off,
            (Some(_), Some(reason)) => SentinelReport::Unavailable { reason: reason.clone() },
            (Some(_), None) if self.watch.has_failed() => {
                let reason =
                    "its thread could not be started; the limit of threads may be too low".to_owned();
                SentinelReport::Unavailable { reason }
            }
            (Some(every), None) => SentinelReport::Active { every },
        }
    }

    /// Returns the sampling interval, if the sentinel is available.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every.filter(|_| self.lacks.is_none())
    }
}

/// Checks that the kernel reports the calling thread as not sleeping.
fn probe() -> Result<(), String> {
    match thread_state::is_asleep(own_number()) {
        Ok(false) => Ok(()),
        Ok(true) => Err("/proc/self/task says of a running thread that it sleeps".to_owned()),
        Err(error) => {
            Err(format!("which threads sleep cannot be read in /proc/self/task: {error}; mount /proc"))
        }
    }
}

/// Returns the pause after a sample that took `look` of CPU time.
pub(crate) fn pause(every: Duration, look: Duration) -> Duration {
    every.max(look.saturating_mul(PAUSE_PER_LOOK))
}

/// Threads that the last sample found sleeping.
#[derive(Debug, Default)]
pub(crate) struct SeenAsleep {
    seen: Vec<(PooledRequest, Arc<EntryCell>)>,
}

impl SeenAsleep {
    /// Takes a sample. Returns false if there is no thread to sample.
    pub(crate) fn look(&mut self, handover: &Handover<KernelLevels>, workers: NonZeroU32) -> bool {
        let watched = handover.watched();
        let goes_on = !watched.is_empty();
        let sleeps = |cell: &EntryCell| thread_state::is_asleep(cell.number).unwrap_or(false);
        let asleep: Vec<_> = watched.into_iter().filter(|(_, cell)| sleeps(cell)).collect();
        if goes_on {
            let still = asleep.iter().filter(|entry| self.has_seen(entry)).cloned().collect::<Vec<_>>();
            handover.look(clock::now(), &still, workers);
        }
        self.seen = asleep;
        goes_on
    }

    fn has_seen(&self, (request, cell): &(PooledRequest, Arc<EntryCell>)) -> bool {
        self.seen.iter().any(|(seen, of)| seen == request && Arc::ptr_eq(of, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_share_of_a_cpu_is_bounded() {
        let every = Duration::from_millis(1);
        for look in [0, 1, 20, 1000, 50_000].map(Duration::from_micros) {
            assert!(pause(every, look) >= every && pause(every, look) >= 50 * look);
        }
        assert_eq!(pause(every, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn it_says_why_it_does_not_look() {
        assert_eq!(Sentinel::new(None).report(), SentinelReport::Off);
        let every = Duration::from_millis(1);
        assert_eq!(Sentinel::new(Some(every)).report(), SentinelReport::Active { every });
        let shortest = Sentinel::new(Some(Duration::ZERO)).report();
        assert_eq!(shortest, SentinelReport::Active { every: EVERY_MIN });
        let lacking = Sentinel { lacks: Some("no /proc".into()), ..Sentinel::new(Some(every)) };
        assert_eq!(lacking.report(), SentinelReport::Unavailable { reason: "no /proc".into() });
        assert!(lacking.report().to_string().contains("no /proc"));
    }
}
