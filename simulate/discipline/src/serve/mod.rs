//! Service on c workers: one trait for all disciplines that give a worker one item at a time.
//!
//! The caller reports events to a discipline ([`arrive`](Discipline::arrive), [`depart`](Discipline::depart),
//! [`expire`](Discipline::expire), [`wake`](Discipline::wake)). The discipline answers with [`Assignment`]s:
//! a worker, its item, and the maximum service time. It keeps every item that is not on a worker. The caller
//! keeps the item's content and progress, and the timers. Instants and durations are integers of one unit
//! that the caller chooses (nanoseconds in Tailwright). In the steady state no operation allocates memory
//! unless more items wait than ever before.
//!
//! Ties are broken by the order of arrival at this station everywhere, and the idle worker with the lowest
//! number is taken first, so that equal inputs give equal schedules.
//!
//! Costs of switches and of the decision itself are not modelled: they belong to the machine and not to the
//! discipline.
//! Sharing without slices is [`crate::ProcessorSharing`].

mod any_discipline;
mod central_queue;
mod device_channels;
mod enforced_device;
mod enforced_discipline;
mod fair_scheduler;
mod feedback_scheduler;
mod limited_sharing;
mod packet_link;
mod preemptive_ranked;
mod queue_per_worker;
mod spec;
mod start_time_fair_queue;
mod waiting_line;

pub use any_discipline::{AnyDiscipline, BuiltDiscipline};
pub use central_queue::CentralQueue;
pub use enforced_device::{EnforcedDevice, EnforcedDeviceParameters};
pub use enforced_discipline::EnforcedDiscipline;
pub use fair_scheduler::{FairScheduler, FairSchedulerParameters};
pub use feedback_scheduler::{FeedbackClass, FeedbackParameters, FeedbackScheduler};
pub use limited_sharing::{LimitScope, LimitedSharing, LimitedSharingParameters, PoolEntrance, PoolOrder};
pub use packet_link::{PacketClass, PacketLink, PacketLinkParameters};
pub use preemptive_ranked::{PreemptiveRank, PreemptiveRanked};
pub use queue_per_worker::{QueueChoice, QueuePerWorker};
pub use spec::DisciplineSpec;
pub use waiting_line::{
    EarliestDeadlineFirst, Lifo, OldestFirst, ProportionalShare, RandomOrder, WaitingLine,
};

use crate::enforce::DeviceAccess;

/// A slice without end: the item keeps the worker until it is done or displaced.
pub(crate) const UNTIL_DONE: u64 = u64::MAX;

/// Item of an assignment that takes the worker's item away and gives it none.
pub const NO_ITEM: u32 = u32::MAX;

/// Properties of an item that a discipline may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueItem {
    /// Caller's identifier of the item, unique at this station.
    pub id: u32,
    /// Priority level, flow or tenant, counted from 0.
    pub class: u32,
    /// Instant at which the item entered the whole system: its global arrival time (GAT). Smaller is older.
    pub age: u64,
    /// Work of the item. Used only by disciplines that say so.
    pub size: u64,
    /// Access to a storage device; `None` means a read of `size` bytes. Used only by enforcers.
    pub access: Option<DeviceAccess>,
}

/// Instruction to a worker: take up `item`, and report [`expire`](Discipline::expire) after `slice` of
/// service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// Number of the worker, counted from 0.
    pub worker: u32,
    /// Item that it works on from now on, or [`NO_ITEM`]. For the worker's current item, only the slice
    /// starts anew.
    pub item: u32,
    /// Maximum service until the discipline is called again; `UNTIL_DONE` for no limit.
    pub slice: u64,
}

/// Decides which worker serves which item.
///
/// The caller carries out all assignments in order; each replaces its worker's item, and the discipline
/// keeps the displaced item. A worker without an assignment continues with its item, or is idle if that
/// has just departed. When an item is done in the instant in which its slice ends, only `depart` is
/// called.
pub trait Discipline {
    /// Notes that an item arrives.
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>);

    /// Notes that the item on `worker` is done.
    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>);

    /// Ends the slice of the item on `worker`. Without an assignment the worker continues until the item
    /// is done.
    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>);

    /// Notes that other work takes `worker`, which gets no assignments before
    /// [`return_worker`](Self::return_worker). An idle worker can be taken from any discipline. A busy one
    /// can be taken only if [`DisciplineSpec::requeues`]; the discipline then keeps its item again. The
    /// default does nothing, for disciplines whose workers have items of their own, which wait for them.
    fn take_worker(&mut self, _now: u64, _worker: u32, _assignments: &mut Vec<Assignment>) {}

    /// Notes that a worker that was taken by [`take_worker`](Self::take_worker) can work again.
    fn return_worker(&mut self, _now: u64, _worker: u32, _assignments: &mut Vec<Assignment>) {}

    /// Returns the number of items that are on no worker.
    fn waiting(&self) -> usize;

    /// Returns the instant at which the passage of time alone can put an item on a worker. The caller then
    /// calls [`wake`](Self::wake) unless an event happens before. Must be read anew after every call.
    fn wake_at(&self) -> Option<u64> {
        None
    }

    /// Advances the clock of the discipline.
    fn wake(&mut self, _now: u64, _assignments: &mut Vec<Assignment>) {}
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod test_driver;
