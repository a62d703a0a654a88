//! Limit on the requests inside the system: the entry point admits a number of them, 200 in the paper, and
//! queues the others, oldest first (TailClipper §5.1).

use std::collections::BTreeSet;

/// Decision about an arriving request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryDecision {
    /// It proceeds at once.
    Admitted,
    /// It waits until others leave.
    Queued,
    /// The queue is full, or a request with this start is present already. Answer that the service is
    /// overloaded.
    Refused,
}

/// Requests inside and those queued, by their start, which is unique within an [`Edge`](crate::Edge).
#[derive(Debug, Clone)]
pub struct EntryWindow {
    inside_max: usize,
    queued_max: usize,
    inside: BTreeSet<u64>,
    queued: BTreeSet<u64>,
}

impl Default for EntryWindow {
    /// As in the paper: 200 inside, an unlimited queue.
    fn default() -> Self {
        Self::new(200, usize::MAX)
    }
}

impl EntryWindow {
    /// Creates a window with at most `inside_max` requests inside (at least one) and `queued_max` queued.
    pub fn new(inside_max: usize, queued_max: usize) -> Self {
        Self { inside_max: inside_max.max(1), queued_max, inside: BTreeSet::new(), queued: BTreeSet::new() }
    }

    /// Decides about a request with this start.
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

    /// Removes a request that was answered, failed or cancelled, inside or queued. Returns the start of the
    /// request admitted in its place, if any. Leaving twice has no effect.
    pub fn leave(&mut self, start_ns: u64) -> Option<u64> {
        if !self.inside.remove(&start_ns) {
            self.queued.remove(&start_ns);
            return None;
        }
        self.admit_next()
    }

    /// Changes the maximum number inside (at least one), and returns the starts of requests admitted at once.
    /// Lowering it below the present number removes no request; none is admitted until enough have left.
    pub fn set_inside_max(&mut self, inside_max: usize) -> Vec<u64> {
        self.inside_max = inside_max.max(1);
        std::iter::from_fn(|| self.admit_next()).collect()
    }

    /// Returns the number of requests inside.
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// Returns the number of queued requests.
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
