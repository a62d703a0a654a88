//! Strict priority, first come, first served within a level.
//!
//! Decides which of the waiting items is in service or comes next: the oldest of the lowest non-empty
//! level. There is one queue per level and a bit per non-empty level, so that the cost hardly depends on
//! the number of levels and items.
//!
//! For preemptive service, leave the item in service in its queue and count its service with
//! [`head_mut`](StrictPriority::head_mut): an arrival at a lower level becomes the head, and the item
//! that it displaced is still the oldest of its own level. For non-preemptive service,
//! [`pop`](StrictPriority::pop) the item when its service begins.
//!
//! Starvation is not prevented: a level waits as long as there is work at a lower one.

use crate::bit_set::BitSet;
use std::collections::VecDeque;

/// A queue of items by priority level. Level 0 is served first.
#[derive(Debug, Clone)]
pub struct StrictPriority<T> {
    levels: Vec<VecDeque<T>>,
    occupied: BitSet,
    /// Lowest non-empty level; `levels.len()` when the queue is empty.
    first: usize,
    len: usize,
}

impl<T> StrictPriority<T> {
    /// Creates an empty queue with this number of levels.
    pub fn new(levels: usize) -> Self {
        Self {
            levels: std::iter::repeat_with(VecDeque::new).take(levels).collect(),
            occupied: BitSet::new(levels),
            first: levels,
            len: 0,
        }
    }

    /// Returns the number of levels, empty ones included.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the number of items at all levels.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there is no item at any level.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an item to its level.
    ///
    /// # Panics
    /// When there is no such level.
    #[inline]
    pub fn push(&mut self, level: usize, item: T) {
        let queue = &mut self.levels[level];
        if queue.is_empty() {
            self.occupied.insert(level);
            self.first = self.first.min(level);
        }
        queue.push_back(item);
        self.len += 1;
    }

    /// Returns the item that should be in service, with its level.
    #[inline]
    pub fn head(&self) -> Option<(usize, &T)> {
        Some((self.first, self.levels.get(self.first)?.front()?))
    }

    /// Returns the item that should be in service, so that its remaining work can be updated.
    #[inline]
    pub fn head_mut(&mut self) -> Option<&mut T> {
        self.levels.get_mut(self.first)?.front_mut()
    }

    /// Removes and returns the head, with its level.
    #[inline]
    pub fn pop(&mut self) -> Option<(usize, T)> {
        let level = self.first;
        let queue = self.levels.get_mut(level)?;
        let item = queue.pop_front()?;
        if queue.is_empty() {
            self.occupied.remove(level);
            self.first = self.occupied.first().unwrap_or(self.levels.len());
        }
        self.len -= 1;
        Some((level, item))
    }

    /// Removes all items and keeps the memory.
    pub fn clear(&mut self) {
        self.levels.iter_mut().for_each(VecDeque::clear);
        self.occupied.clear();
        self.first = self.levels.len();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preempted_item_stays_the_first_of_its_level() {
        let mut queue = StrictPriority::new(2);
        queue.push(1, ("long", 5));
        queue.head_mut().unwrap().1 -= 3;
        queue.push(1, ("later", 1));
        queue.push(0, ("urgent", 1));
        assert_eq!(queue.head(), Some((0, &("urgent", 1))));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(0, ("urgent", 1)), (1, ("long", 2)), (1, ("later", 1))]);
        assert!(queue.is_empty());
    }

    #[test]
    fn nothing_waits_where_there_are_no_levels() {
        let mut queue = StrictPriority::<u8>::new(0);
        assert_eq!((queue.head(), queue.levels()), (None, 0));
        assert_eq!(queue.head_mut(), None);
        assert_eq!(queue.pop(), None);
    }

    proptest::proptest! {
        /// The judge: a list in order of arrival, searched from end to end.
        #[test]
        fn serves_the_oldest_of_the_lowest_level(
            levels in 1usize..200,
            steps in proptest::collection::vec(proptest::option::weighted(0.6, 0usize..200), 0..300),
        ) {
            let mut queue = StrictPriority::new(levels);
            let mut judge = Vec::<(usize, usize)>::new();
            for (item, step) in steps.into_iter().enumerate() {
                if let Some(level) = step {
                    queue.push(level % levels, item);
                    judge.push((level % levels, item));
                } else {
                    // `min` gives the first of the least; items count up.
                    let expected = judge.iter().copied().min();
                    proptest::prop_assert_eq!(queue.head().map(|(l, i)| (l, *i)), expected);
                    proptest::prop_assert_eq!(queue.pop(), expected);
                    judge.retain(|entry| Some(*entry) != expected);
                }
                proptest::prop_assert_eq!(queue.len(), judge.len());
            }
            queue.clear();
            proptest::prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }
}
