//! Who had a CPU while threads of observed servers waited for it.

use super::recent_search::first_from;
use crate::event::KernelEvent;
use crate::thread_name::thread_name;
use std::collections::{BTreeMap, VecDeque};

/// The most occupants that are kept of a CPU.
const KEPT_MAX: usize = 4096;

/// Who had a CPU while a worker waited for it, as the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OccupyingThread {
    /// The number of the process.
    pub process: u32,
    /// The name of the thread, up to the first zero.
    pub comm: [u8; 16],
}

/// A process that had a CPU while a worker waited for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InterferingProcess {
    /// The name of its thread: up to 15 bytes, which the process chooses; control characters are replaced.
    pub name: String,
    /// The number of the process.
    pub process: u32,
}

impl From<OccupyingThread> for InterferingProcess {
    fn from(OccupyingThread { process, comm }: OccupyingThread) -> Self {
        Self { name: thread_name(&comm), process }
    }
}

/// Who had a CPU for a time.
#[derive(Debug, Clone)]
struct CpuOccupant {
    from: u64,
    until: u64,
    /// Nobody when it is 0: the CPU was idle, but for interrupts.
    process: u32,
    /// As the kernel has it.
    name: [u8; 16],
    is_unseen: bool,
    interrupt_ns: u64,
    softirq_ns: u64,
    stolen_ns: u64,
}

/// What is kept of a CPU.
#[derive(Debug, Default)]
struct CpuHistory {
    occupants: VecDeque<CpuOccupant>,
    /// Occupants until then are forgotten.
    forgotten: u64,
}

/// A part of the time that somebody waited for a CPU.
#[derive(Debug)]
pub(super) struct OccupiedTime<'a> {
    pub(super) process: u32,
    name: &'a [u8; 16],
    /// Whether it is not known who had it.
    pub(super) is_unseen: bool,
    /// The whole part, with interrupts.
    pub(super) total: u64,
    /// What interrupts of devices, softirqs and the hypervisor have of it.
    pub(super) interrupt: u64,
    pub(super) softirq: u64,
    pub(super) stolen: u64,
}

impl OccupiedTime<'_> {
    /// Whether softirqs have a thread of their own for what they leave, and this is it.
    pub(super) fn is_softirq_thread(&self) -> bool {
        self.name.starts_with(b"ksoftirqd/")
    }

    /// Who had the CPU.
    pub(super) fn interferer(&self) -> OccupyingThread {
        OccupyingThread { process: self.process, comm: *self.name }
    }
}

/// The occupants of all CPUs.
#[derive(Debug, Default)]
pub(super) struct CpuOccupancy(BTreeMap<u16, CpuHistory>);

impl CpuOccupancy {
    /// Takes a report of an occupant.
    pub(super) fn handle(&mut self, event: &KernelEvent) {
        let schedule = event.schedule;
        let CpuHistory { occupants, forgotten } = self.0.entry(schedule.cpu).or_default();
        if occupants.len() >= KEPT_MAX {
            *forgotten = occupants.pop_front().map_or(*forgotten, |first| first.until);
        }
        // Reports of a CPU are about one time after the other.
        let from = occupants.back().map_or(0, |last| last.until).max(event.earlier);
        occupants.push_back(CpuOccupant {
            from,
            until: event.time.max(from),
            process: event.process,
            name: schedule.name,
            is_unseen: schedule.is_unseen,
            interrupt_ns: u64::from(schedule.interrupt_ns),
            softirq_ns: u64::from(schedule.softirq_ns),
            stolen_ns: u64::from(schedule.stolen_ns),
        });
    }

    /// The first moment of a time for which an occupant is known: the end of the time without one, and its beginning
    /// where older ones are forgotten.
    pub(super) fn first_known(&self, cpu: u16, from: u64, until: u64) -> u64 {
        let Some(history) = self.0.get(&cpu) else { return until };
        let first = first_from(&history.occupants, |occupant| occupant.until <= from);
        let first = history.occupants.get(first).map_or(until, |occupant| occupant.from.clamp(from, until));
        if history.forgotten > from { from } else { first }
    }

    /// Who had a CPU in a time; of what is left, these reports say nothing.
    pub(super) fn in_time(&self, cpu: u16, from: u64, until: u64) -> impl Iterator<Item = OccupiedTime<'_>> {
        let occupants = self.0.get(&cpu).map(|history| &history.occupants);
        let first = occupants.map_or(0, |all| first_from(all, |occupant| occupant.until <= from));
        let overlapping = occupants.into_iter().flat_map(move |all| all.range(first..));
        overlapping.take_while(move |occupant| occupant.from < until).map(move |occupant| {
            let total = occupant.until.min(until) - occupant.from.max(from);
            let whole = occupant.until - occupant.from;
            let interrupt = share(occupant.interrupt_ns, total, whole);
            let softirq = share(occupant.softirq_ns, total, whole).min(total - interrupt);
            let stolen = share(occupant.stolen_ns, total, whole).min(total - interrupt - softirq);
            let CpuOccupant { process, ref name, is_unseen, .. } = *occupant;
            OccupiedTime { process, name, is_unseen, total, interrupt, softirq, stolen }
        })
    }
}

/// The part of `amount` that a part of the time has, as if it was spread evenly; at most the part itself.
pub(super) fn share(amount: u64, part: u64, whole: u64) -> u64 {
    if amount == 0 || part == whole {
        return amount.min(part);
    }
    let whole = whole.max(1);
    // Most products fit, and dividing 128 bits takes far longer.
    let even = match amount.checked_mul(part) {
        Some(product) => product / whole,
        None => u64::try_from(u128::from(amount) * u128::from(part) / u128::from(whole)).unwrap_or(u64::MAX),
    };
    even.min(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The quick ways come to what exact arithmetic does.
        #[test]
        fn shares_are_exact(amount: u64, part: u64, whole: u64, small in 0u64..1000) {
            for (amount, part, whole) in
                [(amount, part, whole), (small, part, whole), (amount >> 32, part >> 34, whole >> 34), (amount, part, part), (small, small, 0)]
            {
                let even = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
                let expected = if part == 0 { 0 } else { u64::try_from(even).map_or(part, |even| even.min(part)) };
                prop_assert_eq!(share(amount, part, whole), expected);
            }
        }
    }
}
