//! Decision to poll for events before sleeping: a wake-up costs a request more than all other work of the
//! proxy for it.
//!
//! Polling pays if the next event comes soon, as it does for a lone request. So the proxy polls, at most
//! for a given time, while at least half of its latest waits were shorter than that, and otherwise sleeps
//! at once. Polling in vain then takes no more CPU time than successful polling, and an idle proxy takes
//! none. With many requests outstanding it also sleeps, because their replies come together.

/// Denominator of shares; a power of two keeps the running mean free of real divisions.
const ALL: u32 = 256;
const HALF: u32 = ALL / 2;
/// Weight of the latest wait in the running mean: it remembers some sixteen waits.
const LATEST: u32 = 16;

/// Number of outstanding requests from which several replies share a wake-up.
const MANY_OUTSTANDING: u32 = 8;

/// The polling rule, which learns from the durations of waits for events. Times are in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct BusyPoll {
    max_ns: u64,
    /// Running mean of the share of waits that ended within `max_ns`, in parts of 256.
    short_share: u32,
}

impl BusyPoll {
    /// Creates the rule with a limit of `max_ns`; 0 never polls.
    pub(super) fn new(max_ns: u64) -> Self {
        Self { max_ns, short_share: 0 }
    }

    /// Returns the time to poll now, with this many requests outstanding.
    pub(super) fn duration_ns(&self, outstanding: u32) -> u64 {
        if self.short_share >= HALF && outstanding < MANY_OUTSTANDING { self.max_ns } else { 0 }
    }

    /// Records that the next event came after `waited_ns` of polling or sleeping.
    pub(super) fn learn(&mut self, waited_ns: u64) {
        let latest = if waited_ns <= self.max_ns { ALL } else { 0 };
        self.short_share = (self.short_share * (ALL - LATEST) + latest * LATEST) / ALL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duration_after(waits: impl Iterator<Item = u64>) -> u64 {
        let mut rule = BusyPoll::new(50_000);
        waits.for_each(|wait| rule.learn(wait));
        rule.duration_ns(1)
    }

    #[test]
    fn it_polls_for_soon_events_and_sleeps_for_late_ones() {
        assert_eq!(duration_after([].into_iter()), 0);
        assert_eq!(duration_after(std::iter::repeat_n(20_000, 20)), 50_000);
        assert_eq!(duration_after(std::iter::repeat_n(60_000, 1000)), 0);
        // From one mode to the other and back, within tens of waits.
        let [soon, late] = [20_000, 1_000_000].map(|wait| std::iter::repeat_n(wait, 40));
        assert_eq!(duration_after(soon.clone().chain(late.clone())), 0);
        assert_eq!(duration_after(late.chain(soon)), 50_000);
        let mut rule = BusyPoll::new(50_000);
        (0..100).for_each(|_| rule.learn(0));
        assert_eq!((rule.duration_ns(MANY_OUTSTANDING - 1), rule.duration_ns(MANY_OUTSTANDING)), (50_000, 0));
    }

    #[test]
    fn it_polls_in_vain_at_most_half_of_the_time() {
        // One of three waits is short.
        assert_eq!(duration_after((0..999).map(|wait| if wait % 3 == 0 { 10_000 } else { 200_000 })), 0);
        // Three of four waits are short.
        assert_eq!(
            duration_after((0..1000).map(|wait| if wait % 4 == 0 { 200_000 } else { 10_000 })),
            50_000
        );
    }

    #[test]
    fn without_a_duration_it_never_polls() {
        let mut rule = BusyPoll::new(0);
        (0..100).for_each(|_| rule.learn(0));
        assert_eq!(rule.duration_ns(1), 0);
    }
}
