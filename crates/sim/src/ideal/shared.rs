//! One queue that workers take from in another order than FIFO.

use super::{Item, OutOfOrder};
use crate::source::Demand;
use rand::RngExt as _;
use rand::rngs::StdRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

type Waiting = Vec<(usize, Demand)>;

/// Takes any of the waiting requests, equally likely; the last one fills its place.
pub(super) fn any(mut random: StdRng) -> impl FnMut(&mut Waiting) -> Option<(usize, Demand)> {
    move |queue| {
        if queue.is_empty() {
            return None;
        }
        let index = random.random_range(0..queue.len());
        Some(queue.swap_remove(index))
    }
}

/// `take` chooses among the waiting requests, which come in at the back.
pub(super) fn run(
    demands: impl Iterator<Item = Item>,
    workers: usize,
    mut take: impl FnMut(&mut Waiting) -> Option<(usize, Demand)>,
    mut started: impl FnMut(usize, Demand, Nanos),
) -> Result<(), OutOfOrder> {
    let mut waiting = Waiting::new();
    // When each busy worker will be free.
    let mut busy: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
    let mut depart = |waiting: &mut Waiting, busy: &mut BinaryHeap<Reverse<Nanos>>, now: Nanos| {
        busy.pop();
        if let Some((index, demand)) = take(waiting) {
            busy.push(Reverse(now + demand.service));
            started(index, demand, now);
        }
    };
    for item in demands {
        let (index, demand) = item?;
        while let Some(Reverse(now)) = busy.peek().copied().filter(|first| first.0 <= demand.arrival) {
            depart(&mut waiting, &mut busy, now);
        }
        waiting.push((index, demand));
        if busy.len() < workers {
            // An idle worker: nobody else waits. It is the worker that becomes free now.
            busy.push(Reverse(demand.arrival));
            depart(&mut waiting, &mut busy, demand.arrival);
        }
    }
    while let Some(Reverse(now)) = busy.peek().copied() {
        depart(&mut waiting, &mut busy, now);
    }
    Ok(())
}
