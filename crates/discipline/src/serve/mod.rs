//! Who is in service on c workers: one trait for all disciplines that give a worker one item at a time.
//!
//! A discipline is told what happens ([`Discipline::arrive`], [`depart`](Discipline::depart),
//! [`expire`](Discipline::expire), [`wake`](Discipline::wake)) and answers with [`Run`]s: which worker takes up which item, and for how long
//! at most. It keeps every item that is not on a worker; the caller keeps what the item is, how much of it is
//! done, and the timers. Instants and durations are integers of one unit that the caller chooses (nanoseconds in
//! Tailwright). After the first items have passed, no operation allocates unless more items wait than ever before.
//!
//! Ties are broken by the order of arrival at this station everywhere, and the idle worker with the lowest number
//! is taken first, so that equal inputs give equal schedules.
//!
//! Not covered: costs of switching and of the decision itself (they belong to the machine, not to the
//! discipline), and sharing without slices ([`crate::Sharing`]).

mod central;
mod enforced;
mod fair;
mod feedback;
mod kind;
mod limited;
mod line;
mod ranked;
mod shares;
mod split;

pub use central::Central;
pub use enforced::Enforced;
pub use fair::{Fair, FairParameters};
pub use feedback::{Feedback, FeedbackClass, FeedbackParameters};
pub use kind::{Any, Built, Kind};
pub use limited::{Count, Entrance, Limited, LimitedParameters, Order};
pub use line::{ByAge, ByDeadline, Lifo, Line, Proportional, RandomOrder};
pub use ranked::{Rank, Ranked};
pub use split::{Choice, Split};

/// A slice without end: the item keeps the worker until it is done or displaced.
pub const UNTIL_DONE: u64 = u64::MAX;

/// What a discipline may know of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The caller's name for it; in use by one item at a time.
    pub id: u32,
    /// Priority level, flow or tenant, from 0.
    pub class: u32,
    /// When it entered the system as a whole: its global arrival time (GAT). Older is smaller.
    pub age: u64,
    /// Work that it brings. Only disciplines that say so look at it.
    pub size: u64,
}

/// An order to a worker: take up `item` and report [`expire`](Discipline::expire) after `slice` of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The worker, from 0.
    pub worker: u32,
    /// What it works on from now. If it is what the worker has already, only the slice starts anew.
    pub item: u32,
    /// Longest service before the discipline is asked again; [`UNTIL_DONE`] for no limit.
    pub slice: u64,
}

/// Decides which worker serves which item.
///
/// The caller carries out all `runs` in order, each replacing what its worker had; a displaced item is in the
/// discipline's keeping. A worker without an order goes on with its item, or is idle if that has just departed.
/// When an item is done in the instant in which its slice ends, only `depart` is called.
pub trait Discipline {
    /// An item arrives.
    fn arrive(&mut self, now: u64, item: Item, runs: &mut Vec<Run>);

    /// The item on `worker` is done.
    fn depart(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>);

    /// The slice of the item on `worker` is over. Without an answer for the worker it goes on until it is done.
    fn expire(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>);

    /// Other work takes `worker`, which gets no orders until it is [`back`](Self::back). An idle worker is taken from
    /// any discipline; one that has an item only where [`Kind::requeues`], and the item is in the discipline's keeping
    /// again. Unless said otherwise, nothing happens: the discipline gives each worker items of its own, which
    /// wait for it.
    fn leave(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    /// A worker that was taken by [`leave`](Self::leave) can work again.
    fn back(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    /// Items that are on no worker.
    fn waiting(&self) -> usize;

    /// When time alone can put an item on a worker: the caller then calls [`wake`](Self::wake), unless something
    /// happens before. Asked after every call.
    fn wake_at(&self) -> Option<u64> {
        None
    }

    /// It is that late.
    fn wake(&mut self, _now: u64, _runs: &mut Vec<Run>) {}
}

#[cfg(test)]
mod drive;
#[cfg(test)]
mod twins;
