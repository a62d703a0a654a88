//! Requests that sleep without having announced it: transitions after a look at their threads.
//!
//! A caller that can see which threads sleep reports them from time to time. While a request is waiting or
//! demoted, and fewer serving requests are awake than there are places and CPUs, a look sets the youngest
//! sleeper aside ([`PoolPlace::Asleep`]). The sleeper no longer counts, and one more request is admitted. A
//! look sets at most one aside, so that the next look sees the effect of that admission first. A request that
//! was set aside counts again from the first look that finds it awake. It has run meanwhile, so more than c
//! run until then. Afterwards the youngest step back if older requests displace them; otherwise the excess
//! finishes.
//!
//! A busy CPU gets no additional work: with one CPU a sleeper is set aside only if all serving requests
//! sleep.

use super::{PoolAction, PoolPlace, PooledRequest, RequestPool};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

impl RequestPool {
    /// Returns true if a request is waiting or demoted.
    pub fn is_contended(&self) -> bool {
        self.ready.len() > 0
    }

    /// Returns the requests whose sleep matters, in no particular order: those set aside, and all serving
    /// requests while the pool is contended.
    pub fn watched(&self) -> impl Iterator<Item = PooledRequest> + '_ {
        let serving = self.serving.slots().filter(move |_| self.is_contended());
        serving.chain(self.by_sleep.slots(&self.slots)).map(PooledRequest)
    }

    /// Notes which of the [`watched`](Self::watched) requests sleep; all others are awake. `workers` is the
    /// number of CPUs of the service.
    pub fn look(
        &mut self,
        now: u64,
        asleep: &BTreeSet<PooledRequest>,
        workers: NonZeroU32,
        actions: &mut Vec<PoolAction>,
    ) {
        self.now = self.now.max(now);
        let set_aside: Vec<u32> = self.by_sleep.slots(&self.slots).collect();
        for slot in set_aside.into_iter().filter(|slot| !asleep.contains(&PooledRequest(*slot))) {
            self.count_again(slot);
        }
        self.settle(now, actions);
        if let Some(slot) = self.dispensable_sleeper(asleep, workers) {
            self.take_out(slot);
            self.put(slot, PoolPlace::Asleep);
            self.by_sleep.append(&mut self.slots, slot);
            self.settle(now, actions);
        }
    }

    /// Returns the youngest serving sleeper if another request could use its CPU.
    fn dispensable_sleeper(&self, asleep: &BTreeSet<PooledRequest>, workers: NonZeroU32) -> Option<u32> {
        let limit = self.rules.limit.filter(|_| self.is_contended())?;
        let serves = |request: &&PooledRequest| self.place(**request) == Some(PoolPlace::Serving);
        let sleepers = asleep.iter().filter(serves);
        let awake = self.serving.len() - sleepers.clone().count();
        if awake >= limit.min(workers).get() as usize {
            return None;
        }
        sleepers.map(|request| request.0).max_by_key(|slot| self.slots.of(*slot).key)
    }

    /// Makes a request that was set aside serve again, even if that exceeds the limit.
    fn count_again(&mut self, slot: u32) {
        self.take_out(slot);
        self.put(slot, PoolPlace::Serving);
        self.slots.of_mut(slot).since = self.now;
        self.serving.insert(slot, Reverse(self.slots.of(slot).key));
        self.by_admission.append(&mut self.slots, slot);
    }
}
