//! Requests that sleep without having said so: what a look at their threads changes.
//!
//! Somebody who can see which threads sleep tells the pool from time to time. While somebody is waiting or demoted, and fewer of
//! those serving are awake than there are places and CPUs, a look sets the youngest of the sleepers aside
//! ([`PoolPlace::Asleep`]): it does not count any more, and one more is admitted. A look sets at most one aside, so that what
//! the last one has admitted is seen first. Who was set aside counts again from the first look that finds it awake. It has
//! gone on meanwhile, so that more than c run until then. Afterwards the youngest step back, where older ones displace
//! them; otherwise those too many finish.
//!
//! A CPU that has work is not given more: with one CPU only all of those serving asleep count as a reason.

use super::{PoolAction, PoolPlace, PooledRequest, RequestPool};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

impl RequestPool {
    /// Whether somebody is waiting or demoted.
    pub fn is_contended(&self) -> bool {
        self.ready.len() > 0
    }

    /// Those whose sleep matters: all that are serving while somebody is waiting or demoted, and those that were set aside.
    /// In no particular order.
    pub fn watched(&self) -> impl Iterator<Item = PooledRequest> + '_ {
        let serving = self.serving.slots().filter(move |_| self.is_contended());
        serving.chain(self.by_sleep.slots(&self.slots)).map(PooledRequest)
    }

    /// Notes which of those [`watched`](Self::watched) sleep. All others are awake. `workers`: the CPUs of the service.
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

    /// The youngest sleeper of those serving, while somebody could use its CPU.
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

    /// Has one that was set aside serve again, whether there is a place or not.
    fn count_again(&mut self, slot: u32) {
        self.take_out(slot);
        self.put(slot, PoolPlace::Serving);
        self.slots.of_mut(slot).since = self.now;
        self.serving.insert(slot, Reverse(self.slots.of(slot).key));
        self.by_admission.append(&mut self.slots, slot);
    }
}
