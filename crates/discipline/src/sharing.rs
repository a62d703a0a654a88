//! Processor sharing without slices: everybody in service gets the same share of c workers at every instant, and
//! nobody more than one worker; with weights, shares in their proportion, and what a whole worker cannot take up goes
//! to the others in proportion.
//!
//! Items of a class are due in the order of the class's *virtual time*, which runs at the share: with n in service
//! and equal weights it advances by min(1, c/n) per unit of time, in steps of 2⁻³² units, rounded down, and an item
//! is due at the first whole instant at which virtual time has advanced by its size. Every operation is logarithmic
//! in n and linear in the number of classes with weights.
//!
//! With a limit only that many are in service; the others wait, first come, first served (limited processor
//! sharing, the ideal of slices that are infinitely short).

use crate::serve::Item;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const FRACTION: u32 = 32;

/// Items that have the same share.
#[derive(Debug, Clone)]
struct Class {
    weight: u32,
    /// In units of 2⁻³². Stands still while nobody is in service.
    virtual_now: u128,
    /// When each is due in virtual time, its order of arrival, and which it is.
    in_service: BinaryHeap<Reverse<(u128, u64, u32)>>,
    /// Workers for one item: the first divided by the second.
    share: (u128, u128),
}

/// Ideal processor sharing.
#[derive(Debug, Clone)]
pub struct Sharing {
    workers: u32,
    limit: usize,
    /// One for all if there are no weights.
    classes: Vec<Class>,
    /// Heaviest first.
    by_weight: Vec<usize>,
    /// The instant of the virtual times.
    now: u64,
    in_service: usize,
    waiting: VecDeque<Item>,
    arrivals: u64,
}

impl Sharing {
    /// Nobody is here; equal shares. At most `limit` are in service at once; `None` for no limit.
    ///
    /// # Panics
    /// When there are no workers or the limit is 0.
    pub fn new(workers: u32, limit: Option<u32>) -> Self {
        Self::weighted(workers, limit, &[1])
    }

    /// Nobody is here; shares in proportion to `weights[class]`, each at least 1.
    ///
    /// # Panics
    /// When there are no workers, the limit is 0, or a weight is.
    pub fn weighted(workers: u32, limit: Option<u32>, weights: &[u32]) -> Self {
        assert!(workers > 0 && limit != Some(0), "workers and limit: at least 1");
        assert!(!weights.is_empty() && weights.iter().all(|weight| *weight > 0), "weights: at least 1");
        let class = |weight: &u32| Class {
            weight: *weight,
            virtual_now: 0,
            in_service: BinaryHeap::new(),
            share: (1, 1),
        };
        let mut by_weight: Vec<usize> = (0..weights.len()).collect();
        by_weight.sort_by_key(|class| Reverse(weights[*class]));
        Self {
            workers,
            limit: limit.map_or(usize::MAX, |limit| limit as usize),
            classes: weights.iter().map(class).collect(),
            by_weight,
            now: 0,
            in_service: 0,
            waiting: VecDeque::new(),
            arrivals: 0,
        }
    }

    /// An item arrives; its size is the work that it brings. Instants never decrease.
    #[inline]
    pub fn arrive(&mut self, now: u64, item: Item) {
        self.advance(now);
        if self.in_service < self.limit {
            self.begin(item);
            self.divide();
        } else {
            self.waiting.push_back(item);
        }
    }

    /// When the next item is due, if nobody arrives before.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let due = |class: &Class| {
            let Reverse((due, _, _)) = class.in_service.peek()?;
            let missing = due.saturating_sub(class.virtual_now);
            let (share, among) = class.share;
            Some((missing * among).div_ceil(share << FRACTION))
        };
        let time = self.classes.iter().filter_map(due).min()?;
        Some(self.now.saturating_add(u64::try_from(time).unwrap_or(u64::MAX)))
    }

    /// The item that is due at `now`; of several of a class the one that is due first in virtual time, then the one
    /// that arrived first; of several classes the one that arrived first.
    #[inline]
    pub fn depart(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        let due = |class: &Class| {
            let Reverse((due, arrival, id)) = *class.in_service.peek()?;
            (due <= class.virtual_now).then_some((arrival, id))
        };
        let heads = (0..self.classes.len()).filter_map(|class| Some((due(&self.classes[class])?, class)));
        let ((_, id), class) = heads.min()?;
        self.classes[class].in_service.pop();
        self.in_service -= 1;
        if let Some(next) = self.waiting.pop_front() {
            self.begin(next);
        }
        self.divide();
        Some(id)
    }

    #[inline]
    fn begin(&mut self, item: Item) {
        // Without weights there is one class for all.
        let class = (item.class as usize).min(self.classes.len() - 1);
        let class = &mut self.classes[class];
        let due = class.virtual_now + (u128::from(item.size) << FRACTION);
        class.in_service.push(Reverse((due, self.arrivals, item.id)));
        self.in_service += 1;
        self.arrivals += 1;
    }

    /// Shares of who is in service now: the heaviest first, a whole worker for each if its share is that much.
    #[inline]
    fn divide(&mut self) {
        let mut workers = u128::from(self.workers);
        let weight = |class: &Class| u128::from(class.weight) * class.in_service.len() as u128;
        let mut weights: u128 = self.classes.iter().map(weight).sum();
        for at in 0..self.by_weight.len() {
            let class = &mut self.classes[self.by_weight[at]];
            let own = workers * u128::from(class.weight);
            if own >= weights {
                class.share = (1, 1);
                workers = workers.saturating_sub(class.in_service.len() as u128);
                weights -= weight(class);
            } else {
                class.share = (own, weights);
            }
        }
    }

    #[inline]
    fn advance(&mut self, now: u64) {
        let time = u128::from(now - self.now) << FRACTION;
        for class in self.classes.iter_mut().filter(|class| !class.in_service.is_empty()) {
            let (share, among) = class.share;
            class.virtual_now += time * share / among;
        }
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
        /// The judge: work left of each as real numbers, reduced piece by piece. With equal weights departures are within
        /// a unit per departure before: that is what rounding up to whole instants costs. With others a lost unit is
        /// made up for at a lower rate; there, units are a thousandth as large.
        #[test]
        fn agrees_with_work_counted_item_by_item(
            workers in 1u32..4, limit in proptest::option::of(1u32..5),
            weights in proptest::collection::vec(1u32..6, 1..4),
            gaps in proptest::collection::vec((0u64..300, 1u64..500, 0u32..12), 1..40),
        ) {
            let mut now = 0;
            let scale = if weights.len() == 1 { 1 } else { 1000 };
            let classes = u32::try_from(weights.len()).unwrap();
            let job = |(gap, size, class): &(u64, u64, u32)| {
                now += gap * scale;
                (now, Item { class: class % classes, ..item(0, *size * scale) })
            };
            let arrivals: Vec<(u64, Item)> = gaps.iter().map(job).collect();
            let mut sharing = Sharing::weighted(workers, limit, &weights);
            let mut ends = vec![0; arrivals.len()];
            let mut coming = arrivals.iter().zip(0u32..).peekable();
            loop {
                let arrival = coming.peek().map_or(u64::MAX, |((at, _), _)| *at);
                match sharing.next() {
                    Some(due) if due <= arrival => ends[sharing.depart(due).unwrap() as usize] = due,
                    _ => match coming.next() {
                        Some(((at, job), id)) => sharing.arrive(*at, Item { id, ..*job }),
                        None => break,
                    },
                }
            }
            let limit = limit.map_or(usize::MAX, |limit| limit as usize);
            for (end, judge) in ends.iter().zip(slow(&arrivals, f64::from(workers), limit, &weights)) {
                let rounding = (arrivals.len() as f64 + 1.0) * (if scale == 1 { 1.0 } else { 40.0 });
                proptest::prop_assert!((*end as f64 - judge).abs() <= rounding, "{end} instead of {judge}");
            }
        }
    }

    /// Shares of those in service: in proportion to weights, and whoever would have more than a worker has one.
    fn shares(workers: f64, weights: &[f64]) -> Vec<f64> {
        let mut shares = vec![0.0; weights.len()];
        loop {
            let open: f64 = (0..weights.len()).filter(|i| shares[*i] < 1.0).map(|i| weights[i]).sum();
            let left = workers - shares.iter().filter(|share| **share >= 1.0).count() as f64;
            let level = left / open;
            let full = (0..weights.len()).find(|i| shares[*i] < 1.0 && weights[*i] * level >= 1.0 - 1e-12);
            match full {
                Some(full) => shares[full] = 1.0,
                None => {
                    let open =
                        |(share, weight): (f64, &f64)| if share < 1.0 { weight * level } else { share };
                    return shares.into_iter().zip(weights).map(open).collect();
                }
            }
        }
    }

    fn slow(arrivals: &[(u64, Item)], workers: f64, limit: usize, weights: &[u32]) -> Vec<f64> {
        let mut ends = vec![0.0; arrivals.len()];
        let mut left: Vec<(usize, f64)> = Vec::new();
        let (mut now, mut coming) = (0.0, 0);
        while coming < arrivals.len() || !left.is_empty() {
            let served = left.len().min(limit);
            let weight = |(item, _): &(usize, f64)| f64::from(weights[arrivals[*item].1.class as usize]);
            let heavy: Vec<f64> = left[..served].iter().map(weight).collect();
            let rates = shares(workers, &heavy);
            let first =
                left.iter().zip(&rates).map(|((_, left), rate)| left / rate).fold(f64::INFINITY, f64::min);
            let next = arrivals.get(coming).map_or(f64::INFINITY, |(at, _)| *at as f64);
            let until = next.min(now + first);
            left.iter_mut().zip(&rates).for_each(|((_, left), rate)| *left -= (until - now) * rate);
            now = until;
            left.retain(|(item, left)| {
                if *left <= 1e-9 {
                    ends[*item] = now;
                }
                *left > 1e-9
            });
            if now == next {
                left.push((coming, arrivals[coming].1.size as f64));
                coming += 1;
            }
        }
        ends
    }
}
