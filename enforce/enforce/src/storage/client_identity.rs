//! Workload of a connection: by the client's address and port, and by the export that it uses.
//!
//! Of several matching entries the most specific decides: an export before a port before the longest network;
//! of equal ones the first. A client without a match is unknown and thus best effort, so a missing entry
//! never gives priority.
//!
//! The export of an NFS request is that of its file handle ([`super::exports`]), so a client that uses
//! exports of several workloads alternates between them. A request without a file handle belongs to the
//! workload of the preceding one.

use crate::address::AddressPrefix;
use crate::deployment::DeploymentClient;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Clients of a server, with their flows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientTable(Vec<ClientEntry>);

/// Entry of the deployment that assigns connections to a flow. Empty lists match everything.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientEntry {
    networks: Vec<AddressPrefix>,
    ports: Vec<u16>,
    export: Option<Vec<u8>>,
    flow: u32,
}

/// Specificity of a match: by export, by port, and the length of the longest network. Compared in this order,
/// the largest decides.
type MatchRank = (bool, bool, u8);

impl ClientTable {
    /// Creates a table of clients and their flows.
    pub(super) fn new(clients: Vec<(&DeploymentClient, u32)>) -> Self {
        Self(clients.into_iter().map(|(client, flow)| ClientEntry::new(client, flow)).collect())
    }

    /// Returns the flow of a client's requests to an export; without one, of all its other requests.
    pub(super) fn flow(&self, peer: SocketAddr, export: Option<&[u8]>) -> Option<u32> {
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

    /// Returns the flows to which requests of a client can belong by entries with an address: one per export
    /// that these entries name, and one for its other requests.
    pub(super) fn claims(&self, peer: SocketAddr) -> Vec<u32> {
        let address = peer.ip().to_canonical();
        let is_claim = |entry: &&ClientEntry| {
            !entry.networks.is_empty() && entry.rank(address, peer.port(), entry.export.as_deref()).is_some()
        };
        let entries: Vec<&ClientEntry> = self.0.iter().filter(is_claim).collect();
        let exports: BTreeSet<Option<&[u8]>> = entries.iter().map(|entry| entry.export.as_deref()).collect();
        let flows = exports.into_iter().filter_map(|export| self.flow(peer, export));
        // Another entry, without an address, may be the one that decides.
        let has_address = |flow: &u32| entries.iter().any(|entry| entry.flow == *flow);
        flows.filter(has_address).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Returns the number of workloads that an entry identifies by an address.
    pub(super) fn owners(&self) -> usize {
        let owners = self.0.iter().filter(|entry| !entry.networks.is_empty()).map(|entry| entry.flow);
        owners.collect::<BTreeSet<u32>>().len()
    }

    /// Returns true if an entry names this address, or a network that contains it.
    pub(super) fn knows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|entry| entry.networks.iter().any(|network| network.contains(address)))
    }

    /// Returns true if an entry names this export.
    pub(super) fn names_export(&self, export: &[u8]) -> bool {
        self.0.iter().any(|entry| entry.export.as_deref() == Some(export))
    }

    /// Returns the exports that entries name.
    pub(super) fn exports(&self) -> BTreeSet<&[u8]> {
        self.0.iter().filter_map(|entry| entry.export.as_deref()).collect()
    }
}

impl ClientEntry {
    fn new(client: &DeploymentClient, flow: u32) -> Self {
        let export = client.export.as_ref().map(|export| export.as_bytes().to_vec());
        Self { networks: client.address.clone(), ports: client.port.clone(), export, flow }
    }

    /// Returns the specificity of the match; `None` without a match.
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
        let flow =
            |peer: &str, export: Option<&str>| table.flow(peer.parse().unwrap(), export.map(str::as_bytes));
        assert_eq!(flow("10.0.0.9:5", None), Some(0));
        assert_eq!(flow("10.0.0.1:5", None), Some(1));
        assert_eq!(flow("[::ffff:10.0.0.1]:5", None), Some(1));
        assert_eq!(flow("10.0.0.1:700", None), Some(2));
        assert_eq!(flow("10.0.0.1:700", Some("gold")), Some(3));
        assert_eq!(flow("10.0.0.1:5", Some("silver")), Some(1));
        assert_eq!(flow("[fd00::1]:5", None), Some(4));
        assert_eq!(flow("192.168.0.1:5", None), None);
        assert!(table.knows("10.0.0.77".parse().unwrap()) && !table.knows("192.168.0.1".parse().unwrap()));
    }

    #[test]
    fn claims_are_by_address() {
        let table = table(&[
            (&["10.0.0.0/24"], &[], None),
            (&["10.0.0.1"], &[], None),
            (&["10.0.0.1"], &[], Some("gold")),
            (&[], &[], Some("silver")),
            (&["10.0.0.1"], &[700], None),
        ]);
        let claims = |peer: &str| table.claims(peer.parse().unwrap());
        assert_eq!(claims("10.0.0.9:5"), [0]);
        assert_eq!(claims("10.0.0.1:5"), [1, 2]);
        assert_eq!(claims("10.0.0.1:700"), [2, 4]);
        assert_eq!(claims("192.168.0.1:5"), [0; 0]);
        assert_eq!(table.owners(), 4);
    }
}
