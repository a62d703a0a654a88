//! The sentinel: a thread that looks, while somebody waits, which of the threads in service sleep without having said so.
//!
//! What a look changes is for [`discipline::pool::RequestPool::look`] to say; here is how the kernel is asked. A thread sleeps
//! if two looks in a row find it sleeping: one that was admitted and is not yet awake, or waits shortly for a lock, seldom is.
//! The sentinel is an ordinary thread, so that it is not kept from taking the gate's lock, or from giving it back, by
//! those in service. It pauses at least fifty times as long as a look took of a CPU, so that it has at most 2 % of a CPU however many
//! threads it looks at, and it sleeps while nobody waits and nobody was set aside.
//!
//! Not covered: what a thread sleeps for. A thread of a request that waits for a lock of another one sleeps like one that
//! waits for a disk.

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

/// The shortest time between two looks.
const EVERY_MIN: Duration = Duration::from_micros(100);
/// How many times as long as a look takes of a CPU the pause after it is, at least.
const PAUSE_PER_LOOK: u32 = 50;

/// The sentinel of a gate, if it has one.
#[derive(Debug)]
pub(crate) struct Sentinel {
    every: Option<Duration>,
    /// Why it cannot look; `None` where it can.
    lacks: Option<String>,
    pub(crate) watch: Watch,
}

impl Sentinel {
    /// One that looks so often, if it was asked for and the kernel says which threads sleep.
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

    /// The time between two looks, if it can look.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every.filter(|_| self.lacks.is_none())
    }
}

/// Whether the kernel says of the calling thread that it does not sleep.
fn probe() -> Result<(), String> {
    match thread_state::is_asleep(own_number()) {
        Ok(false) => Ok(()),
        Ok(true) => Err("/proc/self/task says of a running thread that it sleeps".to_owned()),
        Err(error) => {
            Err(format!("which threads sleep cannot be read in /proc/self/task: {error}; mount /proc"))
        }
    }
}

/// How long it pauses after a look that took so much CPU time.
pub(crate) fn pause(every: Duration, look: Duration) -> Duration {
    every.max(look.saturating_mul(PAUSE_PER_LOOK))
}

/// Those that the last look found sleeping.
#[derive(Debug, Default)]
pub(crate) struct SeenAsleep {
    seen: Vec<(PooledRequest, Arc<EntryCell>)>,
}

impl SeenAsleep {
    /// Looks once; false when there is nobody to look at.
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
