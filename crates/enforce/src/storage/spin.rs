//! Whether to look for events again and again before sleeping: a wake-up costs a request more than all that the proxy
//! does with it.
//!
//! Looking pays when the next event comes soon, which it does when a request is alone on its way. So the proxy looks
//! for as long as it may while at least half of its latest waits were shorter than that, and otherwise sleeps at once:
//! looking in vain then takes no more time than looking that paid, and an idle proxy takes none. With many requests at the
//! server it sleeps, too: their answers come together.

/// A share of waits, in 1/256: how much the latest counts in the running mean, and what is a half.
const LATEST: u32 = 16;
const HALF: u32 = 128;
const ALL: u32 = 256;

/// So many requests at the server are many: their answers share a wake-up.
const MANY: u32 = 8;

/// Learns from how long events let the proxy wait. Times are in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Spin {
    max: u64,
    /// Running mean of the share of waits that ended within `max`, in 1/256.
    short: u32,
}

impl Spin {
    /// Looks for `max` at most; 0: never.
    pub(super) fn new(max: u64) -> Self {
        Self { max, short: 0 }
    }

    /// For how long to look, now that there is nothing to do and so many requests are at the server.
    pub(super) fn length(&self, outstanding: u32) -> u64 {
        if self.short >= HALF && outstanding < MANY { self.max } else { 0 }
    }

    /// That the next event came after `waited`, looked for or slept for.
    pub(super) fn learn(&mut self, waited: u64) {
        let found = if waited <= self.max { ALL } else { 0 };
        self.short = (self.short * (ALL - LATEST) + found * LATEST) / ALL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(waits: impl Iterator<Item = u64>) -> u64 {
        let mut spin = Spin::new(50_000);
        waits.for_each(|wait| spin.learn(wait));
        spin.length(1)
    }

    #[test]
    fn soon_is_looked_for_and_late_slept_for() {
        assert_eq!(after([].into_iter()), 0);
        assert_eq!(after(std::iter::repeat_n(20_000, 20)), 50_000);
        assert_eq!(after(std::iter::repeat_n(60_000, 1000)), 0);
        // From one to the other and back again, within tens of waits.
        let [soon, late] = [20_000, 1_000_000].map(|wait| std::iter::repeat_n(wait, 40));
        assert_eq!(after(soon.clone().chain(late.clone())), 0);
        assert_eq!(after(late.chain(soon)), 50_000);
        let mut spin = Spin::new(50_000);
        (0..100).for_each(|_| spin.learn(0));
        assert_eq!((spin.length(MANY - 1), spin.length(MANY)), (50_000, 0));
    }

    #[test]
    fn looking_in_vain_takes_no_more_than_what_it_finds() {
        // One of three waits is short.
        assert_eq!(after((0..999).map(|wait| if wait % 3 == 0 { 10_000 } else { 200_000 })), 0);
        // Three of four are.
        assert_eq!(after((0..1000).map(|wait| if wait % 4 == 0 { 200_000 } else { 10_000 })), 50_000);
    }

    #[test]
    fn nothing_is_looked_for_when_it_may_not() {
        let mut spin = Spin::new(0);
        (0..100).for_each(|_| spin.learn(0));
        assert_eq!(spin.length(1), 0);
    }
}
