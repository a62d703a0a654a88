//! Connections and buffered bytes of every address. Addresses of one IPv6 network of 64 bits count as one: a
//! host can use any number of them.

use slab::Slab;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Addresses with connections, by index.
#[derive(Debug, Default)]
pub(super) struct AddressTable {
    indices: BTreeMap<IpAddr, usize>,
    entries: Slab<AddressEntry>,
}

/// An address with connections.
#[derive(Debug)]
pub(super) struct AddressEntry {
    address: IpAddr,
    /// Number of its connections.
    pub(super) connections: u64,
    /// Bytes that its sessions buffer.
    pub(super) bytes: usize,
    /// These are more than an address may have.
    pub(super) is_full: bool,
    /// These are more than an address may have while the proxy as a whole buffers much.
    pub(super) is_large: bool,
}

impl AddressTable {
    /// Adds a connection of an address, and returns the index of the address.
    pub(super) fn add(&mut self, address: IpAddr) -> usize {
        let address = network_of(address);
        let entries = &mut self.entries;
        let new = AddressEntry { address, connections: 0, bytes: 0, is_full: false, is_large: false };
        let index = *self.indices.entry(address).or_insert_with(|| entries.insert(new));
        self.entries[index].connections += 1;
        index
    }

    /// Removes a connection of the address with this index.
    pub(super) fn remove(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        entry.connections -= 1;
        if entry.connections == 0 {
            let AddressEntry { address, bytes, .. } = self.entries.remove(index);
            debug_assert_eq!(bytes, 0, "an address without connections buffers nothing");
            self.indices.remove(&address);
        }
    }

    pub(super) fn entry(&self, index: usize) -> &AddressEntry {
        &self.entries[index]
    }

    pub(super) fn entry_mut(&mut self, index: usize) -> &mut AddressEntry {
        &mut self.entries[index]
    }

    /// Returns the number of connections of an address.
    pub(super) fn connections_of(&self, address: IpAddr) -> u64 {
        self.indices.get(&network_of(address)).map_or(0, |index| self.entries[*index].connections)
    }

    /// Returns the largest number of connections of an address.
    pub(super) fn most_connections(&self) -> u64 {
        self.entries.iter().map(|(_, entry)| entry.connections).max().unwrap_or(0)
    }

    /// Returns the number of connections and of buffered bytes; for checks.
    pub(super) fn totals(&self) -> (u64, usize) {
        let add = |(connections, bytes): (u64, usize), (_, entry): (usize, &AddressEntry)| {
            (connections + entry.connections, bytes + entry.bytes)
        };
        self.entries.iter().fold((0, 0), add)
    }
}

/// Returns the address, or the first 64 bits of an IPv6 address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(Ipv6Addr::from(segments))
        }
        address => address,
    }
}
