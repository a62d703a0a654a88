//! How many requests are inside the system at once: the entry point admits a number of them, 200 in the paper, and queues
//! the others, oldest first (TailClipper §5.1).

use std::collections::BTreeSet;

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryDecision {
    /// It goes on at once.
    Admitted,
    /// It waits until others leave.
    Queued,
    /// The queue is full, or a request with this start is here already: answer that the service is overloaded.
    Refused,
}

/// The requests inside and those before the entrance, by their start, which is unique within an
/// [`Edge`](crate::Edge).
#[derive(Debug, Clone)]
pub struct EntryWindow {
    inside_max: usize,
    queued_max: usize,
    inside: BTreeSet<u64>,
    queued: BTreeSet<u64>,
}

impl Default for EntryWindow {
    /// The paper's: 200 inside, a queue without end.
    fn default() -> Self {
        Self::new(200, usize::MAX)
    }
}

impl EntryWindow {
    /// At most `inside_max` requests inside (at least one) and `queued_max` before the entrance.
    pub fn new(inside_max: usize, queued_max: usize) -> Self {
        Self { inside_max: inside_max.max(1), queued_max, inside: BTreeSet::new(), queued: BTreeSet::new() }
    }

    /// A request with this start arrives.
    pub fn arrive(&mut self, start_ns: u64) -> EntryDecision {
        if self.inside.contains(&start_ns) || self.queued.contains(&start_ns) {
            return EntryDecision::Refused;
        }
        if self.inside.len() < self.inside_max && self.queued.is_empty() {
            self.inside.insert(start_ns);
            return EntryDecision::Admitted;
        }
        if self.queued.len() >= self.queued_max {
            return EntryDecision::Refused;
        }
        self.queued.insert(start_ns);
        EntryDecision::Queued
    }

    /// The request with this start is answered, failed or cancelled, inside or in the queue. The answer is the start of the one that
    /// is admitted in its place, if any. To leave twice changes nothing.
    pub fn leave(&mut self, start_ns: u64) -> Option<u64> {
        if !self.inside.remove(&start_ns) {
            self.queued.remove(&start_ns);
            return None;
        }
        self.admit_next()
    }

    /// Changes how many may be inside (at least one). The answer is the starts of those admitted at once; where fewer
    /// are allowed than are inside, nobody is sent away and nobody admitted until enough have left.
    pub fn set_inside_max(&mut self, inside_max: usize) -> Vec<u64> {
        self.inside_max = inside_max.max(1);
        std::iter::from_fn(|| self.admit_next()).collect()
    }

    /// The number of requests inside.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// The number of requests before the entrance.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    fn admit_next(&mut self) -> Option<u64> {
        if self.inside.len() >= self.inside_max {
            return None;
        }
        let next = self.queued.pop_first()?;
        self.inside.insert(next);
        Some(next)
    }
}
