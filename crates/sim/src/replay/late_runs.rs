//! Where in an alignment latencies can be longer than a budget: elsewhere nothing needs to be replayed.
//!
//! Time is cut into cells of c nanoseconds. Two bounds are followed from cell to cell, and a request has to be replayed only
//! where both exceed its budget.
//!
//! **Busy periods.** The bucket of [`IdleInstants`](super::idle::IdleInstants), into which requests pour their work at all
//! stages and which drains at rate 1, bounds the unfinished work from above. With a level of at most L at the beginning of a
//! cell in which the work w arrives, the level at its end is at most `max(L − c, 0) + w`; and when L + w < c the bucket, hence
//! the system, is empty at some instant of the cell. A request has left by the next such instant after its arrival, and until
//! then as much work is done as time passes. So the latencies of those that arrive between the idle instants of one such
//! cell, k, and the next one, l, are at most (l + 1 − k)·c, and at most the work that arrives in the cells from k to l. That
//! holds whatever the priorities.
//!
//! **Work ahead**, where priorities are the same at all stages and every job has work at the same stages, so that none overtakes
//! another of its level. Let P be what a request of level p waits for: jobs of its level that come before it, itself, and
//! all of higher priority. While it is inside, its stage has been serving P without a pause since some u₂ at which a job of P
//! came from the stage before, that stage since some u₁ ≤ u₂, and so on back to an arrival at t₀. What the stages have served
//! in these periods is the time since t₀. A job of P that leaves a stage before such a u leaves the later ones before the
//! period there begins, so that a job is counted at two stages only if it was at the earlier one at u: leaving, or the one of
//! its level that is interrupted. Each job therefore counts with its work at one stage, at most the longest, but for one of each level
//! at either u, which counts with all its work. So a request that comes at t is inside at t + y only if
//!
//! `y < Σ longest work of P that comes from t₀ to t + y − (t − t₀) + 2 Σ over levels of the most that a job has beyond its longest`.
//!
//! The first two terms are at most the level at t of a bucket into which levels up to p pour their longest work, and the
//! longest work of higher priorities that comes after t. Where they and the third are at most the budget for y = the budget, the
//! request is in time.
//!
//! All in integers: a bound is never below the exact value.

/// Runs with a shorter gap between them are one, nanoseconds.
const GAP_MIN: u64 = 1 << 25;

/// Arrivals among which there may be a late one; nanoseconds from the beginning of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LateRun {
    /// There is an instant at which the system is idle within a cell from here.
    pub(super) from: u64,
    /// An upper bound of the unfinished work at `from`; `None` where no idle instant before the arrivals is known.
    pub(super) level: Option<u64>,
    /// When the arrivals begin that may be late.
    pub(super) first: u64,
    /// When these arrivals end, exclusive.
    pub(super) end: u64,
}

/// The work that arrives in cells of time, nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellWork<'w> {
    /// The sum over all stages.
    pub(super) all: &'w [u64],
    /// Of each job at the stage where it has most.
    pub(super) longest: &'w [u64],
    /// The same of those who come before a request that arrived earlier.
    pub(super) overtaking: &'w [u64],
}

/// What is looked at in cells of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct LateQuestion {
    /// The length of a cell, as a power of two.
    pub(super) bits: u32,
    /// When the last arrivals of interest end, nanoseconds from the beginning of the cells.
    pub(super) close: u64,
    /// An upper bound of the unfinished work at the beginning.
    pub(super) level: u64,
    /// The latency above which a request is late, nanoseconds.
    pub(super) threshold: u64,
    /// What jobs that are counted at two stages add to the work ahead, nanoseconds; `None` where requests overtake others.
    pub(super) counted_twice: Option<u64>,
}

/// The runs of arrivals outside of which no latency exceeds the threshold.
pub(super) fn late_runs(work: CellWork<'_>, question: LateQuestion) -> Vec<LateRun> {
    let LateQuestion { bits, close, mut level, threshold, .. } = question;
    let cell = 1u64 << bits;
    let mut ahead = WorkAhead::new(work, question);
    let mut runs = Vec::new();
    let known = (level == 0).then_some(0);
    // The work that was there or has arrived since the beginning of the last cell with an idle instant.
    let mut since_idle = level;
    let mut period = BusyPeriod { begin: 0, level: known, late: None };
    for (index, (number, &arrived)) in (0u64..).zip(work.all).enumerate() {
        since_idle += arrived;
        let is_late = ahead.may_be_late(index);
        if is_late {
            period.late = Some((period.late.map_or(number, |(first, _)| first), number));
        }
        if level + arrived < cell {
            let left_by = (number + 1) << bits;
            if since_idle.min(left_by - (period.begin << bits)) > threshold {
                // Who arrives less than the threshold before everybody has left is in time.
                period.add_to(&mut runs, bits, close.min(left_by - threshold));
            }
            since_idle = arrived;
            let late = is_late.then_some((number, number));
            period = BusyPeriod { begin: number, level: Some(level), late };
            if number << bits >= close {
                return runs;
            }
        }
        level = level.saturating_sub(cell) + arrived;
    }
    // Nothing is known of what comes after the last cell.
    period.add_to(&mut runs, bits, close);
    runs
}

/// From one cell with an idle instant to the next one.
struct BusyPeriod {
    /// The number of the cell where it begins.
    begin: u64,
    /// An upper bound of the unfinished work there.
    level: Option<u64>,
    /// The first and the last cell in which a request may be late.
    late: Option<(u64, u64)>,
}

impl BusyPeriod {
    /// Adds the arrivals before `end` that may be late.
    fn add_to(&self, runs: &mut Vec<LateRun>, bits: u32, end: u64) {
        let Some((first, last)) = self.late else { return };
        let (first, end) = (first << bits, end.min((last + 1) << bits));
        if first >= end {
            return;
        }
        let from = self.begin << bits;
        match runs.last_mut() {
            // To look for the arrivals of the next run takes longer than to serve the few between. No arrival is in two
            // runs, also where budgets are shorter than cells.
            Some(before) if from <= before.end.saturating_add(GAP_MIN) => before.end = before.end.max(end),
            _ => runs.push(LateRun { from, level: self.level, first, end }),
        }
    }
}

/// The bound by the work ahead of a request, from cell to cell.
struct WorkAhead<'w> {
    work: CellWork<'w>,
    cell: u64,
    /// The level at the beginning of the next cell of the bucket into which requests pour their longest work.
    level: u64,
    /// Whoever arrives in a cell sees what overtakes it in so many cells after it.
    reach: usize,
    /// The longest work of these after the last cell.
    overtaking: u64,
    /// What may be ahead of a request that is in time; `None` where the bound does not hold.
    allowed: Option<u64>,
}

impl<'w> WorkAhead<'w> {
    fn new(work: CellWork<'w>, question: LateQuestion) -> Self {
        let LateQuestion { bits, level, threshold, counted_twice, .. } = question;
        let reach = usize::try_from(threshold.div_ceil(1 << bits)).unwrap_or(usize::MAX);
        let allowed = counted_twice.and_then(|twice| threshold.checked_sub(twice));
        let is_known = reach < work.overtaking.len();
        let overtaking = if is_known { work.overtaking[..reach].iter().sum() } else { 0 };
        Self { work, cell: 1 << bits, level, reach, overtaking, allowed: allowed.filter(|_| is_known) }
    }

    /// Whether a request that arrives in the next cell, which has this index, may be late.
    fn may_be_late(&mut self, index: usize) -> bool {
        let Some(allowed) = self.allowed else { return true };
        let before = self.level;
        let level = before + self.work.longest[index];
        self.level = before.saturating_sub(self.cell) + self.work.longest[index];
        // The window goes on by a cell: what comes in this cell itself is among the level.
        let Some(&entering) = self.work.overtaking.get(index + self.reach) else { return true };
        self.overtaking = self.overtaking + entering - self.work.overtaking[index];
        level + self.overtaking > allowed
    }
}
