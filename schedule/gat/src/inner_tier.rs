//! Validation of received tags in an inner service.
//!
//! The edge has removed the claims of clients, so a wrong tag comes from a clock or a mistake. Clocks of
//! inner tiers need not be synchronised as those of edges are (TailClipper §4): a start may be in the future
//! by as much as a clock may be behind. A start further ahead is ignored, and the request counts from its
//! arrival here. The age of a request is capped, so that one wrong unit does not put it before all others
//! forever.

use crate::edge::EdgeClock;
use crate::slo::RequestSlo;
use crate::tag::{ReceivedTag, RequestTag};

/// Tolerated difference between a tag and this service's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagTolerance {
    /// Maximum time of a start in the future, nanoseconds.
    pub ahead_ns_max: u64,
    /// Maximum age of a request, nanoseconds.
    pub age_ns_max: u64,
    /// Maximum time from a request's start to its deadline.
    pub slo_max: RequestSlo,
}

impl Default for TagTolerance {
    /// One second ahead, one hour old, due within a day.
    fn default() -> Self {
        Self { ahead_ns_max: 1_000_000_000, age_ns_max: 3_600_000_000_000, slo_max: RequestSlo::MAX }
    }
}

/// Treatment of a request's tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagCase {
    /// Accepted unchanged.
    Accepted,
    /// No tag: the request starts at its arrival here.
    Untagged,
    /// Unreadable: the request starts at its arrival here.
    Malformed,
    /// Too far in the future: the request starts at its arrival here.
    Future,
    /// Too old: the request has the maximum age.
    TooOld,
    /// The deadline was before the start, and is dropped.
    DeadlineBeforeStart,
    /// The deadline was too long after the start, and is dropped.
    DeadlineTooFar,
}

/// Number of requests by case, for a log and for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceivedTagCounts {
    /// Requests whose tag was accepted unchanged.
    pub accepted: u64,
    /// Requests without a tag.
    pub untagged: u64,
    /// Requests whose tag could not be read.
    pub malformed: u64,
    /// Requests with a start in the future.
    pub future: u64,
    /// Requests with a start beyond the maximum age.
    pub too_old: u64,
    /// Requests whose deadline was before their start.
    pub deadline_before_start: u64,
    /// Requests whose deadline was too long after their start.
    pub deadline_too_far: u64,
}

impl ReceivedTagCounts {
    /// Counts one request.
    pub fn add(&mut self, case: TagCase) {
        *match case {
            TagCase::Accepted => &mut self.accepted,
            TagCase::Untagged => &mut self.untagged,
            TagCase::Malformed => &mut self.malformed,
            TagCase::Future => &mut self.future,
            TagCase::TooOld => &mut self.too_old,
            TagCase::DeadlineBeforeStart => &mut self.deadline_before_start,
            TagCase::DeadlineTooFar => &mut self.deadline_too_far,
        } += 1;
    }
}

/// Validates the tags of the requests that one service receives, and counts the cases.
#[derive(Debug, Clone, Default)]
pub struct InnerTier {
    clock: EdgeClock,
    tolerance: TagTolerance,
    counts: ReceivedTagCounts,
    newest_ns: u64,
}

impl InnerTier {
    /// Creates a validator for a service behind edges with real clocks.
    pub fn new(tolerance: TagTolerance) -> Self {
        Self { tolerance, ..Self::default() }
    }

    /// Creates a validator for a service behind edges with logical clocks: no start is too old or in the
    /// future, and a request without a tag is as young as the youngest seen.
    pub fn with_logical_clock() -> Self {
        Self { clock: EdgeClock::Logical, ..Self::default() }
    }

    /// Returns the tag that orders the request here and that its calls to other services carry.
    pub fn receive(&mut self, received: ReceivedTag, now_ns: u64) -> RequestTag {
        let arrival_ns = match self.clock {
            EdgeClock::Real => now_ns,
            EdgeClock::Logical => self.newest_ns,
        };
        let (tag, case) = self.judge(received, arrival_ns);
        self.newest_ns = self.newest_ns.max(tag.start_ns);
        self.counts.add(case);
        tag
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> ReceivedTagCounts {
        self.counts
    }

    fn judge(&self, received: ReceivedTag, arrival_ns: u64) -> (RequestTag, TagCase) {
        let arrived = RequestTag::starting_at(arrival_ns);
        match received {
            ReceivedTag::Untagged => (arrived, TagCase::Untagged),
            ReceivedTag::Malformed(_) => (arrived, TagCase::Malformed),
            ReceivedTag::Tagged(tag) => match self.clock {
                EdgeClock::Real => self.tolerance.judge(tag, arrival_ns),
                EdgeClock::Logical => (tag, TagCase::Accepted),
            },
        }
    }
}

impl TagTolerance {
    /// Returns the tag accepted at `now_ns`, and its case. A pure function, for callers with their own
    /// counters.
    pub fn judge(&self, tag: RequestTag, now_ns: u64) -> (RequestTag, TagCase) {
        if tag.start_ns > now_ns.saturating_add(self.ahead_ns_max) {
            return (RequestTag::starting_at(now_ns), TagCase::Future);
        }
        let oldest_ns = now_ns.saturating_sub(self.age_ns_max);
        if tag.start_ns < oldest_ns {
            let due = oldest_ns..=oldest_ns.saturating_add(self.slo_max.ns());
            let deadline_ns = tag.deadline_ns.filter(|deadline_ns| due.contains(deadline_ns));
            return (RequestTag { start_ns: oldest_ns, deadline_ns }, TagCase::TooOld);
        }
        if tag.deadline_ns.is_some_and(|deadline_ns| deadline_ns < tag.start_ns) {
            return (RequestTag { deadline_ns: None, ..tag }, TagCase::DeadlineBeforeStart);
        }
        let latest_ns = tag.start_ns.saturating_add(self.slo_max.ns());
        if tag.deadline_ns.is_some_and(|deadline_ns| deadline_ns > latest_ns) {
            return (RequestTag { deadline_ns: None, ..tag }, TagCase::DeadlineTooFar);
        }
        (tag, TagCase::Accepted)
    }
}
