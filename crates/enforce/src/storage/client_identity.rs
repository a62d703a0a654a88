//! Which workload a connection belongs to: by the client's address and port, and by the export that it uses.
//!
//! Of several entries that match, the one that looks at more decides: an export before a port before the longest
//! network; of equal ones the first. A client that matches none is unknown, and unknown is best effort: nobody gets a
//! priority by not being in a list.
//!
//! The export of an NFS connection is inferred from the client's address: whatever MOUNT granted a client is what all
//! its connections use from then on. A client that has mounted exports of different workloads cannot be told apart by
//! them and counts as unknown; separate addresses tell them apart. NFSv4 has no MOUNT.

use crate::address::AddressPrefix;
use crate::deployment::DeploymentClient;
use std::net::{IpAddr, SocketAddr};

/// The clients of a server, with their flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientTable(Vec<ClientEntry>);

/// An entry of the deployment that says which connections belong to a flow. Empty lists match everything.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientEntry {
    networks: Vec<AddressPrefix>,
    ports: Vec<u16>,
    export: Option<Vec<u8>>,
    flow: u32,
}

/// How much of an entry matched: whether an export and a port did, and the length of the longest network. Compared in
/// this order, the largest decides.
type MatchRank = (bool, bool, u8);

impl ClientTable {
    /// A table of clients with the numbers of their flows.
    pub(super) fn new(clients: Vec<(&DeploymentClient, u32)>) -> Self {
        Self(clients.into_iter().map(|(client, flow)| ClientEntry::new(client, flow)).collect())
    }

    /// The flow of a connection that uses one of `exports`; `None` if there is none, or it depends on which.
    pub(super) fn flow<'a>(
        &self,
        peer: SocketAddr,
        mut exports: impl Iterator<Item = &'a [u8]>,
    ) -> Option<u32> {
        let Some(first) = exports.next() else { return self.flow_for_export(peer, None) };
        let flow = self.flow_for_export(peer, Some(first));
        let is_same = exports.all(|export| self.flow_for_export(peer, Some(export)) == flow);
        flow.filter(|_| is_same)
    }

    fn flow_for_export(&self, peer: SocketAddr, export: Option<&[u8]>) -> Option<u32> {
        let address = peer.ip().to_canonical();
        let mut best: Option<(MatchRank, u32)> = None;
        for entry in &self.0 {
            let Some(rank) = entry.rank(address, peer.port(), export) else { continue };
            // Only a larger rank replaces an earlier entry.
            if best.is_none_or(|(best, _)| rank > best) {
                best = Some((rank, entry.flow));
            }
        }
        best.map(|(_, flow)| flow)
    }
}

impl ClientEntry {
    fn new(client: &DeploymentClient, flow: u32) -> Self {
        let export = client.export.as_ref().map(|export| export.as_bytes().to_vec());
        Self { networks: client.address.clone(), ports: client.port.clone(), export, flow }
    }

    /// How much of the entry matches; `None` if something does not.
    fn rank(&self, address: IpAddr, port: u16, export: Option<&[u8]>) -> Option<MatchRank> {
        let networks = self.networks.iter().filter(|network| network.contains(address));
        let longest = networks.map(|network| network.bits).max();
        let is_match = (self.networks.is_empty() || longest.is_some())
            && (self.ports.is_empty() || self.ports.contains(&port))
            && self.export.as_deref().is_none_or(|own| export == Some(own));
        is_match.then_some((self.export.is_some(), !self.ports.is_empty(), longest.unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The networks, ports and export of an entry.
    type EntryFields<'a> = (&'a [&'a str], &'a [u16], Option<&'a str>);

    fn table(entries: &[EntryFields<'_>]) -> ClientTable {
        let entry = |(flow, (networks, ports, export)): (u32, &EntryFields<'_>)| ClientEntry {
            networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
            ports: ports.to_vec(),
            export: export.map(|export| export.as_bytes().to_vec()),
            flow,
        };
        ClientTable((0..).zip(entries).map(entry).collect())
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
        let flow = |peer: &str, exports: &[&str]| {
            table.flow(peer.parse().unwrap(), exports.iter().map(|export| export.as_bytes()))
        };
        assert_eq!(flow("10.0.0.9:5", &[]), Some(0));
        assert_eq!(flow("10.0.0.1:5", &[]), Some(1));
        assert_eq!(flow("[::ffff:10.0.0.1]:5", &[]), Some(1));
        assert_eq!(flow("10.0.0.1:700", &[]), Some(2));
        assert_eq!(flow("10.0.0.1:700", &["gold"]), Some(3));
        assert_eq!(flow("10.0.0.1:5", &["silver"]), Some(1));
        assert_eq!(flow("[fd00::1]:5", &[]), Some(4));
        assert_eq!(flow("192.168.0.1:5", &[]), None);
        // Two exports of different workloads: it cannot be said. Of one workload: it can.
        assert_eq!(flow("10.0.0.1:5", &["gold", "silver"]), None);
        assert_eq!(flow("10.0.0.1:5", &["bronze", "silver"]), Some(1));
    }
}
