//! Admission of clients when there are many connections: no address can exclude the others.
//!
//! Up to three quarters of the places are free to all. Beyond that, connections without a request for ten
//! seconds are closed, and an address gets one more only while it has fewer than half of all places; the
//! last eighth is for addresses of workloads. When all places are taken, a new client may replace a
//! connection: the longest idle one of the address with the most, if that address has at least two more
//! than the new client's. Addresses of one IPv6 network of 64 bits count as one: a host can use any
//! number of them.

use super::super::address_counts::network_of;
use super::super::system::System;
use super::ProxyEngine;
use std::net::IpAddr;

/// Time for which a connection without any request is kept while places are scarce.
const SILENT_NS: u64 = 10_000_000_000;

impl<S: System> ProxyEngine<S> {
    /// Finds a place for a client at this address, by closing an idle connection if necessary.
    ///
    /// # Errors
    /// The reason why there is no place.
    pub(super) fn make_room(&mut self, address: IpAddr) -> Result<(), &'static str> {
        let count = self.sessions.len() as u64;
        let most = self.connections_max;
        let own = self.addresses.of(address);
        if !self.is_scarce() {
            return Ok(());
        }
        let is_known = self.shared.enforced.clients.knows(address);
        let has_place = count < most && (is_known || count < most - most / 8);
        if has_place && own < most.div_ceil(2) {
            return Ok(());
        }
        let (holder, held) = self.addresses.largest().ok_or("no connections are allowed")?;
        // With a difference of one, two addresses would take a place from each other in turn.
        if held < own + 2 {
            return Err("too many connections");
        }
        let victim = self.idle_longest(holder).ok_or("too many connections, all of them busy")?;
        let peer = self.sessions[victim].session.peer;
        self.log.write(self.shared.now, || format!("{peer}: closed while idle, to let others connect"));
        self.remove_session(victim);
        Ok(())
    }

    /// Returns the connection of an address that has been idle for longest.
    fn idle_longest(&self, holder: IpAddr) -> Option<usize> {
        let idle = self
            .sessions
            .iter()
            .filter(|(_, entry)| network_of(entry.session.peer.ip()) == holder && entry.session.is_idle());
        // Connections that were never served go first.
        let longest =
            idle.min_by_key(|(_, entry)| (entry.session.has_been_served, entry.session.client.heard_at));
        longest.map(|(slot, _)| slot)
    }

    /// Returns true if the remaining places are rationed.
    pub(super) fn is_scarce(&self) -> bool {
        self.sessions.len() as u64 >= self.connections_max - self.connections_max / 4
    }

    /// Closes connections without any request, while places are scarce.
    pub(super) fn close_silent_when_crowded(&mut self) {
        if !self.is_scarce() {
            return;
        }
        let now = self.shared.now;
        let silent = self.sessions.iter().filter(|(_, entry)| {
            entry.session.has_asked_nothing() && now > entry.session.client.since + SILENT_NS
        });
        let silent: Vec<usize> = silent.map(|(slot, _)| slot).collect();
        for slot in silent {
            self.remove_session(slot);
        }
    }
}
