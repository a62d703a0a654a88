//! Invariants of an enforcer between any two calls, with an exhaustive check.

use super::Enforcer;

impl Enforcer {
    /// Checks that all derived state agrees with the requests and flows. Visits all waiting requests and all
    /// flows: for tests and for debug builds of callers.
    ///
    /// # Panics
    /// When any derived state disagrees.
    pub fn check_invariants(&self) {
        self.queues.slab.check_free();
        let listed: usize = self.queues.flows.iter().map(|flow| flow.list.len).sum();
        assert_eq!(listed, self.waiting(), "every waiting request is in the line of a flow");
        for place in 0..self.queues.flows.len() {
            self.check_line(place);
            let flow = &self.queues.flows[place];
            assert_eq!(self.heads.get(place), self.queues.head_rank(place), "the rank of a head");
            assert_eq!(self.due.get(place), flow.head_due(), "when a head is due");
        }
        for (limiter, state) in self.queues.limiters.iter().enumerate() {
            for place in &state.members {
                assert_eq!(
                    self.queues.flows[*place].limiter, limiter,
                    "a flow and its limiter know each other"
                );
            }
        }
        let members: usize = self.queues.limiters.iter().map(|limiter| limiter.members.len()).sum();
        assert_eq!(members, self.queues.flows.len(), "every flow has one limiter");
        self.outstanding.check();
        let requests: u32 = self.holds.values().map(|hold| hold.requests).sum();
        let detached: u32 = self.holds.values().map(|hold| hold.detached).sum();
        assert_eq!(detached, self.detached, "detached requests are some flow's");
        assert_eq!(
            requests,
            self.outstanding.requests() + detached,
            "requests at the device are some flow's"
        );
        for flow in &self.queues.flows {
            assert_eq!(flow.is_held_back, self.is_held_back(flow.limiter), "a flow held back");
        }
    }

    /// Checks the queue of a flow: its links, its order, the passed requests and the instant of the next one.
    fn check_line(&self, place: usize) {
        let queues = &self.queues;
        let flow = &self.queues.flows[place];
        flow.list.check(&queues.slab);
        let requests: Vec<_> = flow.list.iter(&queues.slab).collect();
        let passed = requests.iter().filter(|request| queues.slab.get(**request).taken.is_some()).count();
        assert_eq!(passed, flow.passed, "as many have passed the limiter as the flow counts");
        assert_eq!(flow.candidate, requests.get(passed).copied(), "those that have passed are the first");
        let numbers = requests.iter().map(|request| queues.slab.get(*request).number);
        assert!(numbers.is_sorted(), "a flow is first in, first out");
        let flows = requests.iter().map(|request| queues.place_of(queues.slab.get(*request).flow));
        assert!(flows.into_iter().all(|of| of == place), "a request is in the line of its flow");
        let limiter = &queues.limiters[flow.limiter];
        let may_estimate = limiter.may_estimate(queues.unsettled_max);
        let mut buckets = limiter.buckets.clone();
        let (due, _) = flow.due_of_candidate(buckets.updated(), &queues.slab, &mut buckets, may_estimate);
        assert_eq!(due, flow.due, "when a candidate is due");
    }
}
