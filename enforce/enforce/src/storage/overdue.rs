//! Requests that the server should have answered long ago.
//!
//! A request is overdue after four times the device time of all that was outstanding when it was sent, and
//! [`PATIENCE_MIN_NS`]. If the server has answered another request meanwhile, the overdue one counts for its own
//! workload only: the others may use its place, while the workload has at most `outstanding` requests at the
//! server in any case. If the server has answered nothing, it may just be stopped, so each workload gives away one
//! place only, and gets no other until an answer arrives.
//!
//! This assumes that a device serves a request within that time, as its profile says. If it does not, one request
//! of each workload, or up to `outstanding` if others are answered, are at the device besides those that count.

/// Factor of the device time by the profile, which is a mean.
const PATIENCE_FACTOR: u64 = 4;
/// Time that any request may take, nanoseconds. Above pauses of flash and of a busy machine's scheduler.
const PATIENCE_MIN_NS: u64 = 20_000_000;

/// Signs of life of the server, and the workloads that wait for one.
#[derive(Debug, Default)]
pub(super) struct OverdueWatch {
    /// Device time of the requests at the server, nanoseconds.
    work: u64,
    /// Time of the latest answer to a read or write.
    answered_at: u64,
    /// Flows that have given away a place since then.
    lenders: Vec<u32>,
}

impl OverdueWatch {
    /// Notes that a request is sent. Returns the time within which it should be answered.
    pub(super) fn note_sent(&mut self, cost: u64) -> u64 {
        self.work = self.work.saturating_add(cost);
        self.work.saturating_mul(PATIENCE_FACTOR).saturating_add(PATIENCE_MIN_NS)
    }

    /// Notes that a request that was sent is no longer at the server, or no longer waited for.
    pub(super) fn note_done(&mut self, cost: u64) {
        self.work = self.work.saturating_sub(cost);
    }

    /// Notes an answer. Returns the flows that had given away a place without one.
    pub(super) fn note_answer(&mut self, now: u64) -> Vec<u32> {
        self.answered_at = now;
        std::mem::take(&mut self.lenders)
    }

    /// Returns true if a request that is overdue since then gives its place away; `is_asked_for` says that other
    /// requests wait for one.
    pub(super) fn gives_away(&self, overdue_at: u64, now: u64, flow: u32, is_asked_for: bool) -> bool {
        let has_answered = self.answered_at > overdue_at;
        let is_quiet = now > self.answered_at + PATIENCE_MIN_NS;
        has_answered || (is_asked_for && is_quiet && !self.lenders.contains(&flow))
    }

    /// Notes that a flow has given a place away. Returns true if it gets no other until the next answer.
    pub(super) fn note_given_away(&mut self, overdue_at: u64, flow: u32) -> bool {
        let is_lender = self.answered_at <= overdue_at;
        if is_lender {
            self.lenders.push(flow);
        }
        is_lender
    }

    /// A flow no longer has a request that is overdue. Returns true if it had given a place away.
    pub(super) fn forget_lender(&mut self, flow: u32) -> bool {
        let count = self.lenders.len();
        self.lenders.retain(|lender| *lender != flow);
        self.lenders.len() < count
    }
}
