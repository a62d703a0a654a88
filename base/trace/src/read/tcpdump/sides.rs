//! Client and server of a captured connection.
//!
//! In this order: the SYN of the handshake, when flags are printed; a port of [`SERVER_PORTS`]; the
//! server of an earlier connection; the three packets without payload that open a connection; a port
//! below those that systems give to clients, against one of those; and else the side that sends first.

use super::line::End;
use std::collections::HashSet;

/// Ports of NFS, NBD, memcached, HTTP, HTTPS, Redis, iSCSI, PostgreSQL and MySQL.
const SERVER_PORTS: [u16; 9] = [2049, 10809, 11211, 80, 443, 6379, 3260, 5432, 3306];
/// Lowest port that Linux gives to a client that asks for none (`ip_local_port_range`); others begin higher.
const CLIENT_PORT_MIN: u16 = 32768;
/// Maximum number of servers that are remembered; beyond it all are forgotten.
const SERVERS_MAX: usize = 1 << 16;

/// Ends that were servers.
#[derive(Default)]
pub(super) struct KnownServers(HashSet<End>);

impl KnownServers {
    pub(super) fn add(&mut self, server: End) {
        if self.0.len() == SERVERS_MAX && !self.0.contains(&server) {
            self.0.clear();
        }
        self.0.insert(server);
    }

    /// Returns true if the sender is the client, false if the receiver is; `None` if neither port nor
    /// earlier connections say so.
    pub(super) fn is_client(&self, sender: End, receiver: End) -> Option<bool> {
        let rank = |port: u16| SERVER_PORTS.iter().position(|known| *known == port);
        match (rank(sender.1), rank(receiver.1)) {
            (Some(sender), Some(receiver)) if sender != receiver => return Some(receiver < sender),
            (None, Some(_)) => return Some(true),
            (Some(_), None) => return Some(false),
            _ => {}
        }
        let sender_was_server = self.0.contains(&sender);
        (sender_was_server != self.0.contains(&receiver)).then_some(!sender_was_server)
    }
}

/// The packets without payload before the first with payload, which tell who opened a connection where
/// flags are not printed: client, server, client.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OpeningPackets {
    first_is_low: bool,
    count: u32,
    is_handshake: bool,
}

impl OpeningPackets {
    pub(super) fn take_empty(&mut self, is_from_low: bool) {
        match self.count {
            0 => *self = Self { first_is_low: is_from_low, count: 0, is_handshake: true },
            1 => self.is_handshake &= is_from_low != self.first_is_low,
            2 => self.is_handshake &= is_from_low == self.first_is_low,
            _ => {}
        }
        self.count = self.count.saturating_add(1);
    }

    /// Returns true if the low end opened the connection, `None` if these packets do not say so.
    pub(super) fn client_is_low(self) -> Option<bool> {
        (self.is_handshake && self.count >= 3).then_some(self.first_is_low)
    }
}

/// Returns true if the sender of the first captured payload is the client, and true if this is a guess: it
/// is the client, unless its port cannot be a client's and the receiver's can.
pub(super) fn is_client_by_port(sender: u16, receiver: u16) -> (bool, bool) {
    let sender_may = sender >= CLIENT_PORT_MIN;
    let receiver_may = receiver >= CLIENT_PORT_MIN;
    (sender_may || !receiver_may, sender_may == receiver_may)
}
