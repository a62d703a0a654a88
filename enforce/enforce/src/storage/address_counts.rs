//! How many connections every address has. Addresses of one IPv6 network of 64 bits count as one: a host has as many of
//! them as it likes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// How many connections every address has.
#[derive(Debug, Default)]
pub(super) struct AddressCounts(BTreeMap<IpAddr, u64>);

impl AddressCounts {
    pub(super) fn add(&mut self, address: IpAddr) {
        *self.0.entry(network_of(address)).or_insert(0) += 1;
    }

    pub(super) fn remove(&mut self, address: IpAddr) {
        let address = network_of(address);
        if let Some(count) = self.0.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&address);
            }
        }
    }

    pub(super) fn of(&self, address: IpAddr) -> u64 {
        self.0.get(&network_of(address)).copied().unwrap_or(0)
    }

    /// The address with most connections, and how many it has.
    pub(super) fn largest(&self) -> Option<(IpAddr, u64)> {
        self.0.iter().map(|(address, count)| (*address, *count)).max_by_key(|(_, count)| *count)
    }

    /// The number of all connections, by address; for checks.
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// The address, or the first half of one of IPv6.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(Ipv6Addr::from(segments))
        }
        address => address,
    }
}
