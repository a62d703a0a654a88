//! Servers by load, and workloads by the addresses of their clients, so that a decision looks at few of them.

use agent::ClientPlace;
use model::PerStage;
use plan::standing::PlanningWorkload;
use std::collections::{BTreeMap, BTreeSet};

/// Loads of servers and addresses of clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room {
    /// Position and load of each server. An empty one has none.
    servers: BTreeMap<String, (usize, Option<Load>)>,
    /// Servers in use from the least load on, by load and position.
    in_use: BTreeSet<(Load, usize)>,
    /// Positions of servers without workloads.
    empty: BTreeSet<usize>,
    /// Workloads by the addresses of their clients.
    by_address: BTreeMap<String, BTreeSet<u64>>,
}

/// Mean rate of the workloads of a server at its busiest stage, fraction of its capacity, in the order of its values:
/// that of the bits of numbers that are not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Load(u64);

impl Load {
    fn of<'a>(workloads: impl Iterator<Item = &'a PlanningWorkload>) -> Self {
        let mut rates = PerStage::<f64>::default();
        for workload in workloads {
            let own = &workload.on_class[0].mean_rate;
            rates = PerStage::from_fn(|stage| rates[stage] + own[stage]);
        }
        Self(rates.into_array().into_iter().fold(0.0, f64::max).to_bits())
    }
}

impl Room {
    /// Knows these servers from now on, all of them empty.
    pub(crate) fn place(&mut self, servers: &[String]) {
        self.servers = servers.iter().cloned().zip((0..).map(|position| (position, None))).collect();
        self.in_use.clear();
        self.empty = (0..servers.len()).collect();
    }

    /// Notes the workloads of a server.
    pub(crate) fn weigh<'a>(
        &mut self,
        server: &str,
        workloads: impl ExactSizeIterator<Item = &'a PlanningWorkload>,
    ) {
        let Some((position, load)) = self.servers.get_mut(server) else { return };
        match load.take() {
            Some(before) => self.in_use.remove(&(before, *position)),
            None => self.empty.remove(position),
        };
        if workloads.len() == 0 {
            self.empty.insert(*position);
        } else {
            let now = Load::of(workloads);
            *load = Some(now);
            self.in_use.insert((now, *position));
        }
    }

    /// Returns the positions of servers in use, from the least load on.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = usize> {
        self.in_use.iter().map(|(_, position)| *position)
    }

    /// Returns the positions of servers without workloads.
    pub(crate) fn empty(&self) -> impl Iterator<Item = usize> {
        self.empty.iter().copied()
    }

    pub(crate) fn add_clients(&mut self, workload: u64, clients: &[ClientPlace]) {
        for address in clients.iter().flat_map(|client| &client.address) {
            self.by_address.entry(address.clone()).or_default().insert(workload);
        }
    }

    pub(crate) fn remove_clients(&mut self, workload: u64, clients: &[ClientPlace]) {
        for address in clients.iter().flat_map(|client| &client.address) {
            if let Some(workloads) = self.by_address.get_mut(address) {
                workloads.remove(&workload);
                if workloads.is_empty() {
                    self.by_address.remove(address);
                }
            }
        }
    }

    /// Returns workloads with an address of these clients.
    pub(crate) fn with_address_of(&self, clients: &[ClientPlace]) -> BTreeSet<u64> {
        let addresses = clients.iter().flat_map(|client| &client.address);
        addresses.filter_map(|address| self.by_address.get(address)).flatten().copied().collect()
    }
}
