//! Workloads at a queue in strict priority, from tables.

use calculus::snc::{
    DependentSum, QueueLatency, RateTable, ServiceProcess, TabulatedQueue, TimeStep, independent_sum,
};
use std::collections::BTreeMap;

/// A workload at a queue.
pub(super) struct QueueMember<'a> {
    /// The table of its work; `None` where it has none.
    pub(super) table: Option<&'a RateTable>,
    /// Its priority; 0 is served first.
    pub(super) priority: u32,
    /// Members of the same group may burst together.
    pub(super) group: usize,
}

/// All workloads at one queue.
pub(super) struct SharedQueue<'a> {
    members: Vec<QueueMember<'a>>,
    /// The members with work, by priority.
    order: Vec<usize>,
    /// The index of the sum over all members up to the end of each member's priority, itself included.
    sum_index: Vec<usize>,
    /// One running sum per priority.
    sums: Vec<RateTable>,
}

impl<'a> SharedQueue<'a> {
    pub(super) fn new(members: Vec<QueueMember<'a>>) -> Self {
        let mut order: Vec<usize> = (0..members.len()).filter(|&m| members[m].table.is_some()).collect();
        order.sort_by_key(|&m| (members[m].priority, m));
        let sum_index = vec![0; members.len()];
        let mut queue = Self { members, order, sum_index, sums: Vec::new() };
        queue.add_up();
        queue
    }

    /// Computes the running sums.
    fn add_up(&mut self) {
        let mut total: Option<RateTable> = None;
        for (k, &m) in self.order.iter().enumerate() {
            let table = self.table(m);
            match &mut total {
                Some(sum) => sum.add(table),
                None => total = Some(table.clone()),
            }
            self.sum_index[m] = self.sums.len();
            let next = self.order.get(k + 1).map(|&n| self.members[n].priority);
            if next != Some(self.members[m].priority) {
                self.sums.extend(total.clone());
            }
        }
    }

    /// The table of a member that has work here.
    fn table(&self, member: usize) -> &'a RateTable {
        self.members[member].table.expect("ordered members have work here")
    }

    /// The members with work of the same or a higher priority than `member`, itself included.
    pub(super) fn ahead(&self, member: usize) -> impl Iterator<Item = usize> {
        let priority = self.members[member].priority;
        self.order.iter().copied().take_while(move |&m| self.members[m].priority <= priority)
    }

    /// The latency of a member that has work here; `None` when there is no bound.
    pub(super) fn latency(
        &self,
        member: usize,
        service: &ServiceProcess,
        exceeded: f64,
        step: TimeStep,
    ) -> Option<QueueLatency> {
        let others: Vec<usize> = self.ahead(member).filter(|&m| m != member).collect();
        let table = self.merged(member, &others);
        let group = self.members[member].group;
        let dependent = others.iter().any(|&m| self.members[m].group == group);
        let queue =
            TabulatedQueue { own: self.table(member), others: table.as_ref(), dependent, service, step };
        queue.latency(exceeded)
    }

    /// The table of all the others together, by the aggregation algorithm of A.4.
    fn merged(&self, member: usize, others: &[usize]) -> Option<RateTable> {
        let groups = self.independent_groups(others);
        match groups.as_slice() {
            [] => None,
            [_] => Some(self.sums[self.sum_index[member]].without(self.table(member))),
            many => {
                let groups = many.iter().map(|group| group.iter().map(|&m| self.table(m)));
                let sums: Vec<RateTable> = groups.filter_map(independent_sum).collect();
                DependentSum(&sums.iter().collect::<Vec<_>>()).table()
            }
        }
    }

    /// The members, each in the first set that has no member of its dependency group.
    fn independent_groups(&self, others: &[usize]) -> Vec<Vec<usize>> {
        // The k-th member of a dependency group that is met goes into the k-th set.
        let mut met = BTreeMap::<usize, usize>::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &m in others {
            let next = met.entry(self.members[m].group).or_default();
            match groups.get_mut(*next) {
                Some(group) => group.push(m),
                None => groups.push(vec![m]),
            }
            *next += 1;
        }
        groups
    }
}
