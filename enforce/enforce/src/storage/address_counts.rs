//! Number of connections of every address. Addresses of one IPv6 network of 64 bits count as one: a host
//! can use any number of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Number of connections of every address.
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

    /// Returns the address with the most connections, and their number.
    pub(super) fn largest(&self) -> Option<(IpAddr, u64)> {
        self.0.iter().map(|(address, count)| (*address, *count)).max_by_key(|(_, count)| *count)
    }

    /// Returns the total number of connections, by address; for checks.
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// Returns the address, or the first 64 bits of an IPv6 address.
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
