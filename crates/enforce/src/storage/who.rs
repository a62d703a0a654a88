//! Whose connection it is: by the client's address and port, and by the export that it uses.
//!
//! Of several entries that match, the one that looks at more decides: an export before a port before the longest
//! network; of equal ones the first. Who matches none is unknown, and unknown is best effort: nobody gets a priority
//! by not being in a list.
//!
//! An NFS export is known by the client's address: what a client was granted by MOUNT is what it uses from then on. One
//! that has mounted exports of different workloads cannot be told apart by them and counts as unknown; separate
//! addresses tell them apart. NFSv4 has no MOUNT.

use crate::address::Prefix;
use crate::deployment::Client;
use std::net::{IpAddr, SocketAddr};

/// An entry that says whose a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    networks: Vec<Prefix>,
    ports: Vec<u16>,
    export: Option<Vec<u8>>,
    flow: u32,
}

/// All entries of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table(Vec<Entry>);

impl Table {
    /// `clients` with the number of their flow.
    pub(super) fn new<'a>(clients: impl Iterator<Item = (&'a Client, u32)>) -> Self {
        Self(clients.map(|(client, flow)| Entry::new(client, flow)).collect())
    }

    /// The flow of a connection on which one of `exports` is used; `None` if that cannot be said.
    pub(super) fn find<'a>(
        &self,
        peer: SocketAddr,
        exports: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<u32> {
        let address = peer.ip().to_canonical();
        let best = |export: Option<&[u8]>| {
            let ranked = self
                .0
                .iter()
                .filter_map(|entry| Some((entry.rank(address, peer.port(), export)?, entry.flow)));
            // Of equal ones the first.
            ranked.rev().max_by_key(|(rank, _)| *rank).map(|(_, flow)| flow)
        };
        let mut found = exports.map(|export| best(Some(export)));
        match found.next() {
            None => best(None),
            Some(first) => found.all(|other| other == first).then_some(first).flatten(),
        }
    }
}

impl Entry {
    fn new(client: &Client, flow: u32) -> Self {
        let export = client.export.as_ref().map(|export| export.as_bytes().to_vec());
        Self { networks: client.address.clone(), ports: client.port.clone(), export, flow }
    }

    /// How much of it matches; `None` if something does not.
    fn rank(&self, address: IpAddr, port: u16, export: Option<&[u8]>) -> Option<(bool, bool, u8)> {
        let network = self
            .networks
            .iter()
            .filter(|network| network.contains(address))
            .map(|network| network.bits)
            .max();
        let matches = (self.networks.is_empty() || network.is_some())
            && (self.ports.is_empty() || self.ports.contains(&port))
            && self.export.as_deref().is_none_or(|wanted| export == Some(wanted));
        matches.then_some((self.export.is_some(), !self.ports.is_empty(), network.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Networks, ports and export.
    type Words<'a> = (&'a [&'a str], &'a [u16], Option<&'a str>);

    fn table(entries: &[Words<'_>]) -> Table {
        let entry = |(flow, (networks, ports, export)): (u32, &Words<'_>)| Entry {
            networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
            ports: ports.to_vec(),
            export: export.map(|export| export.as_bytes().to_vec()),
            flow,
        };
        Table((0..).zip(entries).map(entry).collect())
    }

    #[test]
    fn what_looks_at_more_decides() {
        let table = table(&[
            (&["10.0.0.0/24"], &[], None),
            (&["10.0.0.1"], &[], None),
            (&["10.0.0.0/24"], &[700], None),
            (&[], &[], Some("gold")),
            (&["fd00::/64"], &[], None),
            (&["10.0.0.1"], &[], None),
        ]);
        let find = |peer: &str, exports: &[&str]| {
            table.find(peer.parse().unwrap(), exports.iter().map(|export| export.as_bytes()))
        };
        assert_eq!(find("10.0.0.9:5", &[]), Some(0));
        assert_eq!(find("10.0.0.1:5", &[]), Some(1));
        assert_eq!(find("[::ffff:10.0.0.1]:5", &[]), Some(1));
        assert_eq!(find("10.0.0.1:700", &[]), Some(2));
        assert_eq!(find("10.0.0.1:700", &["gold"]), Some(3));
        assert_eq!(find("10.0.0.1:5", &["silver"]), Some(1));
        assert_eq!(find("[fd00::1]:5", &[]), Some(4));
        assert_eq!(find("192.168.0.1:5", &[]), None);
        // Two exports of different workloads: it cannot be said. Of one workload: it can.
        assert_eq!(find("10.0.0.1:5", &["gold", "silver"]), None);
        assert_eq!(find("10.0.0.1:5", &["bronze", "silver"]), Some(1));
    }
}
