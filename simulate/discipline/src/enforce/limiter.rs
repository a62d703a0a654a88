//! A limiter in front of one or several queues, and what requests took from it.

use crate::TokenBuckets;

/// Which limiter let a request pass, and in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TakenTokens {
    /// The flow whose limiter it was.
    limiter: u32,
    /// The number of the limits under which it passed.
    generation: u64,
    /// For how long its buckets had overflowed then ([`TokenBuckets::overflowed`]).
    overflowed: u64,
    /// Whether the cost was a guess.
    is_estimate: bool,
}

/// What a request was charged when it passed the limiter of its flow; to be corrected by
/// [`Enforcer::settle`](super::Enforcer::settle).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCharge {
    pub(super) taken: Option<TakenTokens>,
    pub(super) tokens: u64,
}

impl TokenCharge {
    /// The tokens that were taken: the request's cost, or 0 if it was served beyond its limits.
    pub fn tokens(self) -> u64 {
        self.tokens
    }
}

/// A limiter and the queues that it serves.
#[derive(Debug, Clone)]
pub(super) struct FlowLimiter {
    /// The flow whose limits it has.
    pub(super) name: u32,
    pub(super) buckets: TokenBuckets,
    /// A number that changes with the limits.
    pub(super) generation: u64,
    /// How many requests have passed whose cost was a guess and that are not settled.
    pub(super) unsettled: u32,
    /// The places of the flows that take tokens from it.
    pub(super) members: Vec<usize>,
}

impl FlowLimiter {
    /// What a request has taken that passes now.
    #[inline]
    pub(super) fn taken(&self, is_estimate: bool) -> TakenTokens {
        let limiter = self.name;
        let generation = self.generation;
        TakenTokens { limiter, generation, overflowed: self.buckets.overflowed(), is_estimate }
    }

    /// Whether a request may pass whose cost is a guess, when at most so many may be unsettled.
    #[inline]
    pub(super) fn may_estimate(&self, most: u32) -> bool {
        self.unsettled < most || self.buckets.is_unlimited()
    }

    /// Corrects the buckets by what was served. Tokens that were taken under other limits do not come back.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, taken: TakenTokens, tokens: u64, served: u64) {
        // A limiter that was forgotten in between does not know of it.
        self.unsettled = self.unsettled.saturating_sub(u32::from(taken.is_estimate));
        if taken.generation == self.generation {
            self.buckets.settle(now, tokens, served, taken.overflowed);
        } else {
            self.buckets.charge(now, served.saturating_sub(tokens));
        }
    }
}

impl TakenTokens {
    /// Whether the cost was a guess.
    #[inline]
    pub(super) fn is_estimate(self) -> bool {
        self.is_estimate
    }

    /// The flow whose limiter let the request pass.
    #[inline]
    pub(super) fn limiter(self) -> u32 {
        self.limiter
    }
}
