//! A limiter in front of one or several queues, and the tokens that requests took from it.

use crate::TokenBuckets;

/// Limiter that let a request pass, and its state at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakenTokens {
    /// Flow that owns the limiter.
    limiter: u32,
    /// Generation of the limits under which the request passed.
    generation: u64,
    /// Time for which the buckets had overflowed ([`TokenBuckets::overflowed`]).
    overflowed: u64,
    /// True if the cost was an estimate.
    is_estimate: bool,
}

/// Charge of a request that passed the limiter of its flow; corrected by
/// [`Enforcer::settle`](super::Enforcer::settle).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCharge {
    pub(super) taken: Option<TakenTokens>,
    pub(super) tokens: u64,
}

impl TokenCharge {
    /// Returns the tokens that were taken: the request's cost, or 0 if it was served beyond its limits.
    pub fn tokens(self) -> u64 {
        self.tokens
    }
}

/// A limiter and the queues behind it.
#[derive(Debug, Clone)]
pub(super) struct FlowLimiter {
    /// Flow that owns the limits.
    pub(super) name: u32,
    pub(super) buckets: TokenBuckets,
    /// Number that changes with the limits.
    pub(super) generation: u64,
    /// Passed requests with an estimated cost that are not settled.
    pub(super) unsettled: u32,
    /// Indices of the flows that take tokens from it.
    pub(super) members: Vec<usize>,
}

impl FlowLimiter {
    /// Returns the record of a request that passes now.
    #[inline]
    pub(super) fn taken(&self, is_estimate: bool) -> TakenTokens {
        let limiter = self.name;
        let generation = self.generation;
        TakenTokens { limiter, generation, overflowed: self.buckets.overflowed(), is_estimate }
    }

    /// Returns true if a request with an estimated cost may pass while at most `most` may be unsettled.
    #[inline]
    pub(super) fn may_estimate(&self, most: u32) -> bool {
        self.unsettled < most || self.buckets.is_unlimited()
    }

    /// Corrects the buckets by the served work. Tokens that were taken under other limits do not come back.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, taken: TakenTokens, tokens: u64, served: u64) {
        // Saturating: a limiter that was removed and created anew has not counted the request.
        self.unsettled = self.unsettled.saturating_sub(u32::from(taken.is_estimate));
        if taken.generation == self.generation {
            self.buckets.settle(now, tokens, served, taken.overflowed);
        } else {
            self.buckets.charge(now, served.saturating_sub(tokens));
        }
    }
}

impl TakenTokens {
    #[inline]
    pub(super) fn is_estimate(self) -> bool {
        self.is_estimate
    }

    /// Returns the flow whose limiter let the request pass.
    #[inline]
    pub(super) fn limiter(self) -> u32 {
        self.limiter
    }
}
