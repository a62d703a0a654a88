//! The policies of one server between the one that all its hosts enforce and the one that was decided last.
//!
//! A change is a list of steps: one host after the other takes the next policy. A step is granted when the one before
//! it is confirmed, so at any instant at most one host may or may not have taken its step, and every state on the way
//! was checked when the change was decided. Consecutive steps of one host are granted together. A server that one host
//! enforces alone thus gets the latest policy, and those in between are skipped. A host that takes a step in two, first its
//! links and then its storage, takes one step at a time: what it has in between was checked for single steps.

use model::Policy;
use std::collections::{BTreeSet, VecDeque};

/// Unconfirmed policies that are kept of a server with one host. A host that confirms a forgotten one is asked for the
/// latest, and nothing new is promised meanwhile.
const UNCONFIRMED_MAX: usize = 16;

/// A policy of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChainPlan {
    /// Number of the policy among those of the server; 0 is the empty policy that it begins with.
    pub(crate) number: u64,
    pub(crate) policy: Policy,
    /// Identities of the policy's workloads, in its order.
    pub(crate) members: Vec<u64>,
    /// Hosts in the order in which they take it.
    order: Vec<String>,
    /// The host that takes it in two, if one does.
    in_two: Option<String>,
    /// True if only the hosts of `order` have taken it and the next policy takes it back.
    is_partial: bool,
}

/// The policies of a server that hosts may enforce, or will.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The first is enforced by all hosts.
    plans: VecDeque<ChainPlan>,
    /// Confirmed steps of the plans after the first.
    done: usize,
    next: u64,
    /// Hosts of which it is not known what they enforce.
    lost: BTreeSet<String>,
}

impl Chain {
    pub(crate) fn new() -> Self {
        let policy = Policy::new("tailwright", Vec::new(), Vec::new()).expect("an empty policy is sound");
        let first = ChainPlan {
            number: 0,
            policy,
            members: Vec::new(),
            order: Vec::new(),
            in_two: None,
            is_partial: false,
        };
        Self { plans: VecDeque::from([first]), done: 0, next: 1, lost: BTreeSet::new() }
    }

    /// Adds a policy that hosts take in this order, and `in_two` first on its links and then at its storage.
    pub(crate) fn push(
        &mut self,
        policy: Policy,
        members: Vec<u64>,
        order: Vec<String>,
        in_two: Option<String>,
    ) {
        let number = self.next;
        self.next += 1;
        self.plans.push_back(ChainPlan { number, policy, members, order, in_two, is_partial: false });
        if self.is_of_one_host() {
            while self.plans.len() > UNCONFIRMED_MAX + 1 {
                self.plans.remove(1);
            }
        }
        self.forget_passed();
    }

    /// Returns the policy that was decided last.
    pub(crate) fn latest(&self) -> &ChainPlan {
        self.plans.back().expect("there is a first")
    }

    /// Returns the policy that all hosts enforce, if none has lost its state.
    pub(crate) fn confirmed(&self) -> &ChainPlan {
        &self.plans[0]
    }

    pub(crate) fn plan(&self, number: u64) -> Option<&ChainPlan> {
        self.plans.iter().find(|plan| plan.number == number)
    }

    /// Returns true if the hosts are known to enforce the workload's limits.
    pub(crate) fn keeps(&self, workload: u64) -> bool {
        self.lost.is_empty() && self.confirmed().members.contains(&workload)
    }

    /// Returns true if any policy that hosts may enforce has the workload.
    pub(crate) fn mentions(&self, workload: u64) -> bool {
        self.plans.iter().any(|plan| plan.members.contains(&workload))
    }

    /// Returns true if any policy that hosts may enforce has a workload.
    pub(crate) fn is_in_use(&self) -> bool {
        self.plans.iter().any(|plan| !plan.members.is_empty())
    }

    /// Returns true if all hosts enforce the latest policy.
    pub(crate) fn is_settled(&self) -> bool {
        self.plans.len() == 1 && self.lost.is_empty()
    }

    /// Returns the number of the policy that a host enforces or is granted.
    pub(crate) fn granted_to(&self, host: &str) -> u64 {
        let steps = self.steps();
        // Consecutive steps of one host are one: whatever it skips, the other hosts stay where they are.
        let next = steps.get(self.done).map(|(_, of)| *of);
        let is_in_two = |plan: usize| self.plans[plan].in_two.as_deref() == next;
        let own = steps[self.done..].iter().take_while(|(_, of)| Some(*of) == next);
        let run =
            own.clone().position(|(plan, _)| is_in_two(*plan)).map_or(own.count(), |first| first.max(1));
        // Of a lost host it is not known which steps it took: it confirms where it stands before any other step.
        let run = if self.lost.is_empty() { run } else { 0 };
        let own = steps[..self.done + run].iter().rev().find(|(_, of)| *of == host);
        own.map_or(self.plans[0].number, |(plan, _)| self.plans[*plan].number)
    }

    /// Hosts that take part in changes that are not confirmed.
    pub(crate) fn changing_hosts(&self) -> impl Iterator<Item = &str> {
        self.plans.iter().skip(1).flat_map(|plan| plan.order.iter().map(String::as_str))
    }

    /// Returns true if a host waits to confirm a step that it was granted.
    pub(crate) fn awaits(&self, host: &str) -> bool {
        let steps = self.steps();
        steps.get(self.done).is_some_and(|(_, of)| *of == host)
    }

    /// Notes that a host enforces the policy of this number.
    pub(crate) fn confirm(&mut self, host: &str, number: u64) {
        let steps = self.steps();
        let mut done = self.done;
        while steps.get(done).is_some_and(|(plan, of)| *of == host && self.plans[*plan].number <= number) {
            done += 1;
        }
        self.done = done;
        if self.granted_to(host) == number {
            self.lost.remove(host);
        }
        self.forget_passed();
    }

    /// Notes that it is not known any more what a host enforces.
    pub(crate) fn lose(&mut self, host: &str) {
        self.lost.insert(host.to_owned());
    }

    /// Hosts of which it is not known what they enforce.
    pub(crate) fn lost_hosts(&self) -> impl Iterator<Item = &String> {
        self.lost.iter()
    }

    /// Takes back the changes from the step that is not taken. Hosts that took a part of them go back the way that they
    /// came; where they do so already, they try again.
    pub(crate) fn withdraw(&mut self) {
        if self.plans.get(1).is_some_and(|plan| plan.is_partial) {
            self.plans.truncate(3);
            return;
        }
        let taken = self.plans.get(1).map_or_else(Vec::new, |plan| plan.order[..self.done].to_vec());
        self.plans.truncate(if taken.is_empty() { 1 } else { 2 });
        if taken.is_empty() {
            return;
        }
        self.plans[1].is_partial = true;
        self.plans[1].order.clone_from(&taken);
        let back = ChainPlan {
            number: self.next,
            order: taken.into_iter().rev().collect(),
            in_two: self.plans[1].in_two.clone(),
            ..self.plans[0].clone()
        };
        self.next += 1;
        self.plans.push_back(back);
    }

    /// Returns identities of workloads that are in none but the unconfirmed policies.
    pub(crate) fn unconfirmed(&self) -> BTreeSet<u64> {
        let later: BTreeSet<u64> =
            self.plans.iter().skip(1).flat_map(|plan| plan.members.iter().copied()).collect();
        later.into_iter().filter(|member| !self.confirmed().members.contains(member)).collect()
    }

    fn steps(&self) -> Vec<(usize, &str)> {
        let plans = self.plans.iter().enumerate().skip(1);
        plans.flat_map(|(at, plan)| plan.order.iter().map(move |host| (at, host.as_str()))).collect()
    }

    fn is_of_one_host(&self) -> bool {
        let mut hosts = self.changing_hosts();
        let first = hosts.next();
        let mut in_two = self.plans.iter().filter(|plan| plan.in_two.is_some());
        in_two.next().is_none() && hosts.all(|host| Some(host) == first)
    }

    /// Forgets policies that all hosts have passed. One that only some had taken goes with the way back.
    fn forget_passed(&mut self) {
        while self.plans.len() > 1 {
            let passed = self.plans.iter().skip(1).take_while(|plan| plan.is_partial).count() + 1;
            let steps: usize = self.plans.iter().skip(1).take(passed).map(|plan| plan.order.len()).sum();
            if steps > self.done {
                break;
            }
            self.plans.drain(..passed);
            self.done -= steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_with(orders: &[&[&str]], in_two: Option<&str>) -> Chain {
        let mut chain = Chain::new();
        for (member, order) in (1..).zip(orders) {
            let policy = chain.latest().policy.clone();
            let order = order.iter().map(ToString::to_string).collect();
            chain.push(policy, (1..=member).collect(), order, in_two.map(str::to_owned));
        }
        chain
    }

    fn chain(orders: &[&[&str]]) -> Chain {
        chain_with(orders, None)
    }

    #[test]
    fn hosts_take_steps_one_after_the_other() {
        let mut chain = chain(&[&["a", "b"], &["b", "a"]]);
        assert_eq!([chain.granted_to("a"), chain.granted_to("b")], [1, 0]);
        chain.confirm("b", 1);
        assert_eq!([chain.granted_to("a"), chain.granted_to("b")], [1, 0], "it was not its turn");
        chain.confirm("a", 1);
        assert_eq!([chain.granted_to("a"), chain.granted_to("b")], [1, 2]);
        assert!(!chain.keeps(1));
        chain.confirm("b", 1);
        assert!(chain.keeps(1) && !chain.keeps(2));
        assert_eq!([chain.granted_to("a"), chain.granted_to("b")], [1, 2]);
        chain.confirm("b", 2);
        chain.confirm("a", 2);
        assert!(chain.keeps(2) && chain.is_settled());
    }

    #[test]
    fn one_host_takes_the_latest() {
        let mut chain = chain(&[&["a"], &["a"], &["a"]]);
        assert_eq!(chain.granted_to("a"), 3);
        chain.confirm("a", 2);
        assert!(chain.keeps(2) && !chain.keeps(3));
        chain.confirm("a", 3);
        assert!(chain.is_settled());
    }

    #[test]
    fn a_host_that_takes_steps_in_two_takes_one_at_a_time() {
        let mut chain = chain_with(&[&["a"], &["a", "b"], &["b"]], Some("a"));
        assert_eq!(chain.granted_to("a"), 1);
        chain.confirm("a", 1);
        assert_eq!(chain.granted_to("a"), 2);
        chain.confirm("a", 2);
        assert_eq!(chain.granted_to("b"), 3, "it takes its steps at once");
    }

    #[test]
    fn a_change_is_taken_back_the_way_it_came() {
        let mut chain = chain(&[&["a", "b", "c"], &["a"]]);
        chain.confirm("a", 1);
        chain.confirm("b", 1);
        assert!(chain.awaits("c"));
        chain.withdraw();
        assert_eq!(chain.changing_hosts().collect::<Vec<_>>(), ["a", "b", "b", "a"]);
        assert_eq!([chain.granted_to("a"), chain.granted_to("b"), chain.granted_to("c")], [1, 3, 0]);
        assert_eq!(chain.latest().members, [0; 0]);
        chain.confirm("b", 3);
        chain.withdraw();
        assert_eq!([chain.granted_to("a"), chain.granted_to("c")], [3, 0]);
        chain.confirm("a", 3);
        assert!(chain.is_settled());
    }

    #[test]
    fn nothing_is_kept_by_a_host_that_lost_its_state() {
        let mut chain = chain(&[&["a"]]);
        chain.confirm("a", 1);
        chain.lose("a");
        assert!(!chain.keeps(1));
        chain.confirm("a", 1);
        assert!(chain.keeps(1));
    }
}
