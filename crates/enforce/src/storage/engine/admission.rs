//! Who may connect when there are many connections: no address can keep the others out.
//!
//! Up to three quarters of the places are free to everybody. Beyond that, connections that have asked for nothing for
//! ten seconds are closed, and an address gets one more only while it has fewer than half of all places; the last
//! eighth is for addresses of workloads. When all places are taken, a newcomer gets the place of the connection that
//! has been idle for longest of the address that has most, if that address has at least two more than the newcomer's.
//! Addresses of one IPv6 network of 64 bits count as one: a host has as many of them as it likes.

use super::super::system::System;
use super::ProxyEngine;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// How long a connection that has never asked for anything is kept while places are scarce.
const SILENT_NS: u64 = 10_000_000_000;

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
    fn largest(&self) -> Option<(IpAddr, u64)> {
        self.0.iter().map(|(address, count)| (*address, *count)).max_by_key(|(_, count)| *count)
    }

    /// The number of all connections, by address; for checks.
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

/// The address, or the first half of one of IPv6.
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

impl<S: System> ProxyEngine<S> {
    /// Finds a place for a client at this address, by closing an idle connection if need be.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn make_room(&mut self, address: IpAddr) -> Result<(), &'static str> {
        let (count, most) = (self.sessions.len() as u64, self.connections_max);
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
        if held < own + 2 {
            return Err("too many connections");
        }
        let victim = self.idle_longest(holder).ok_or("too many connections, all of them busy")?;
        let peer = self.sessions[victim].session.peer;
        self.log.write(self.shared.now, || format!("{peer}: closed while idle, to let others connect"));
        self.remove_session(victim);
        Ok(())
    }

    /// The connection from an address that has been idle for longest.
    fn idle_longest(&self, holder: IpAddr) -> Option<usize> {
        let idle = self
            .sessions
            .iter()
            .filter(|(_, entry)| network_of(entry.session.peer.ip()) == holder && entry.session.is_idle());
        let longest =
            idle.min_by_key(|(_, entry)| (entry.session.has_been_served, entry.session.client.heard_at));
        longest.map(|(slot, _)| slot)
    }

    /// Whether so many places are taken that not everybody gets one.
    pub(super) fn is_scarce(&self) -> bool {
        self.sessions.len() as u64 >= self.connections_max - self.connections_max / 4
    }

    /// Closes connections that have asked for nothing, while places are scarce.
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
