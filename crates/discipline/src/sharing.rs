//! Processor sharing without slices: everybody in service gets the same share of c workers at every instant, and
//! nobody more than one worker.
//!
//! Items are due in the order of *virtual time*, which runs at the share: with n in service it advances by
//! min(1, c/n) per unit of time, in steps of 2⁻³² units, rounded down, and an item is due at the first whole instant
//! at which virtual time has advanced by its size. Every operation is logarithmic in n.
//!
//! With a limit only that many are in service; the others wait, first come, first served (limited processor
//! sharing, the ideal of slices that are infinitely short). Not covered: weights.

use crate::serve::Item;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const FRACTION: u32 = 32;

/// Ideal processor sharing.
#[derive(Debug, Clone)]
pub struct Sharing {
    workers: u32,
    limit: usize,
    /// In units of 2⁻³².
    virtual_now: u128,
    /// The instant of `virtual_now`.
    now: u64,
    /// When each is due in virtual time, its order of arrival, and which it is.
    in_service: BinaryHeap<Reverse<(u128, u64, u32)>>,
    waiting: VecDeque<(u32, u64)>,
    arrivals: u64,
}

impl Sharing {
    /// Nobody is here. At most `limit` are in service at once; `None` for no limit.
    ///
    /// # Panics
    /// When there are no workers or the limit is 0.
    pub fn new(workers: u32, limit: Option<u32>) -> Self {
        assert!(workers > 0 && limit != Some(0), "workers and limit: at least 1");
        Self {
            workers,
            limit: limit.map_or(usize::MAX, |limit| limit as usize),
            virtual_now: 0,
            now: 0,
            in_service: BinaryHeap::new(),
            waiting: VecDeque::new(),
            arrivals: 0,
        }
    }

    /// An item arrives; its size is the work that it brings. Instants never decrease.
    pub fn arrive(&mut self, now: u64, item: Item) {
        self.advance(now);
        if self.in_service.len() < self.limit {
            self.begin(item.id, item.size);
        } else {
            self.waiting.push_back((item.id, item.size));
        }
    }

    /// When the next item is due, if nobody arrives before.
    pub fn next(&self) -> Option<u64> {
        let Reverse((due, _, _)) = self.in_service.peek()?;
        let missing = due.saturating_sub(self.virtual_now);
        let (share, among) = self.share();
        let time = (missing * among).div_ceil(share << FRACTION);
        Some(self.now.saturating_add(u64::try_from(time).unwrap_or(u64::MAX)))
    }

    /// The item that is due at `now`; of several the one that is due first in virtual time, then that which arrived
    /// first.
    pub fn depart(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        let Reverse((due, _, id)) = *self.in_service.peek()?;
        if due > self.virtual_now {
            return None;
        }
        self.in_service.pop();
        if let Some((next, size)) = self.waiting.pop_front() {
            self.begin(next, size);
        }
        Some(id)
    }

    fn begin(&mut self, id: u32, size: u64) {
        let due = self.virtual_now + (u128::from(size) << FRACTION);
        self.in_service.push(Reverse((due, self.arrivals, id)));
        self.arrivals += 1;
    }

    /// Shares of a worker, among how many.
    fn share(&self) -> (u128, u128) {
        let among = self.in_service.len().max(1) as u128;
        (among.min(u128::from(self.workers)), among)
    }

    fn advance(&mut self, now: u64) {
        let (share, among) = self.share();
        self.virtual_now += (u128::from(now - self.now) << FRACTION) * share / among;
        self.now = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: u32, size: u64) -> Item {
        Item { id, class: 0, age: 0, size }
    }

    #[test]
    fn two_share_one_worker_and_have_one_each_of_two() {
        let mut one = Sharing::new(1, None);
        one.arrive(0, item(0, 10));
        one.arrive(4, item(1, 3));
        // 6 and 3 left at 4, at half speed: the second is due at 10, then 3 are left of the first.
        assert_eq!((one.next(), one.depart(9), one.depart(10)), (Some(10), None, Some(1)));
        assert_eq!((one.next(), one.depart(13), one.next()), (Some(13), Some(0), None));
        let mut two = Sharing::new(2, None);
        two.arrive(0, item(0, 10));
        two.arrive(4, item(1, 3));
        assert_eq!((two.depart(7), two.depart(10)), (Some(1), Some(0)));
    }

    proptest::proptest! {
        /// The judge: work left of each as real numbers, reduced piece by piece. Departures within a unit per
        /// departure before: that is what rounding up to whole instants costs.
        #[test]
        fn agrees_with_work_counted_item_by_item(
            workers in 1u32..4, limit in proptest::option::of(1u32..5),
            gaps in proptest::collection::vec((0u64..300, 1u64..500), 1..40),
        ) {
            let mut now = 0;
            let arrivals: Vec<(u64, u64)> = gaps.iter().map(|(gap, size)| { now += gap; (now, *size) }).collect();
            let mut sharing = Sharing::new(workers, limit);
            let mut ends = vec![0; arrivals.len()];
            let mut coming = arrivals.iter().zip(0u32..).peekable();
            loop {
                let arrival = coming.peek().map_or(u64::MAX, |((at, _), _)| *at);
                match sharing.next() {
                    Some(due) if due <= arrival => ends[sharing.depart(due).unwrap() as usize] = due,
                    _ => match coming.next() {
                        Some(((at, size), id)) => sharing.arrive(*at, item(id, *size)),
                        None => break,
                    },
                }
            }
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            for (end, judge) in ends.iter().zip(slow(&arrivals, f64::from(workers), limit)) {
                let rounding = arrivals.len() as f64 + 1.0;
                proptest::prop_assert!((*end as f64 - judge).abs() <= rounding, "{end} instead of {judge}");
            }
        }
    }

    fn slow(arrivals: &[(u64, u64)], workers: f64, limit: usize) -> Vec<f64> {
        let mut ends = vec![0.0; arrivals.len()];
        let mut left: Vec<(usize, f64)> = Vec::new();
        let (mut now, mut coming) = (0.0, 0);
        while coming < arrivals.len() || !left.is_empty() {
            let served = left.len().min(limit);
            let rate = (workers / served.max(1) as f64).min(1.0);
            let first = left[..served].iter().map(|(_, left)| left / rate).fold(f64::INFINITY, f64::min);
            let next = arrivals.get(coming).map_or(f64::INFINITY, |(at, _)| *at as f64);
            let until = next.min(now + first);
            left[..served].iter_mut().for_each(|(_, left)| *left -= (until - now) * rate);
            now = until;
            left.retain(|(item, left)| {
                if *left <= 1e-9 {
                    ends[*item] = now;
                }
                *left > 1e-9
            });
            if now == next {
                left.push((coming, arrivals[coming].1 as f64));
                coming += 1;
            }
        }
        ends
    }
}
