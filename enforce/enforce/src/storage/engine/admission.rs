//! Admission of clients when there are many connections: neither an address nor a workload can exclude the
//! others.
//!
//! **Workloads.** Half of the places are guaranteed, in equal parts, to the workloads that the hosts file
//! identifies by address. A client of a workload below its part always gets a place. If all are taken, another
//! connection is closed for it, which is not one of a guaranteed place.
//!
//! **The others.** Up to three quarters of the places are free to all. Beyond that, connections without a
//! request for ten seconds are closed, and an address gets one more only while it has fewer than half of all
//! places; the last eighth is for addresses of workloads. When all places are taken, a new client may replace a
//! connection that waits for its client, if that one's address has at least two more than the new client's.
//! Addresses of one IPv6 network of 64 bits count as one: a host can use any number of them.
//!
//! **Which connection is closed.** Those that wait for their clients come first: idle ones, ones with a part
//! of a request, however often a byte of it arrives, and ones whose replies are not read. Among these the
//! address with the most connections, then a connection that was never served, then the one whose latest
//! request is the oldest. Connections with requests at work are closed for a guaranteed place only.

use super::super::descriptors;
use super::super::system::System;
use super::{ConnectedSession, ProxyEngine};
use std::cmp::Reverse;
use std::net::IpAddr;

/// Time for which a connection without any request is kept while places are scarce.
const SILENT_NS: u64 = 10_000_000_000;
/// Time for which no connection is sought again after none could be closed: a search visits all of them.
const SEARCH_INTERVAL_NS: u64 = 10_000_000;

/// Maximum number of silent connections closed in one tick.
const CLOSED_PER_TICK: usize = 8;

/// Order in which connections are closed to let others connect; the smallest goes first.
type VictimRank = (bool, Reverse<u64>, bool, u64);

impl<S: System> ProxyEngine<S> {
    /// Finds a place for a client at this address, on the account of this workload, by closing a connection if
    /// necessary.
    ///
    /// # Errors
    /// The reason why there is no place.
    pub(super) fn make_room(&mut self, address: IpAddr, owner: Option<u32>) -> Result<(), &'static str> {
        let count = self.sessions.len() as u64;
        let most = self.places.count();
        if !self.is_scarce() {
            return Ok(());
        }
        if self.places.is_owed_one(owner) {
            // Without a victim the others are about to end, or hold guaranteed places.
            if count >= most
                && let Some((victim, _)) = self.victim()
            {
                self.close_for_another(victim);
            }
            return Ok(());
        }
        let own = self.shared.addresses.connections_of(address);
        let is_known = self.shared.enforced.clients.knows(address);
        let has_place = count < most && (is_known || count < most - most / 8);
        if has_place && own < most.div_ceil(2) {
            return Ok(());
        }
        // With a difference of one, two addresses would take a place from each other in turn.
        let least = own + 2;
        if self.shared.addresses.most_connections() < least {
            return Err("too many connections");
        }
        let busy = "too many connections, all of them busy";
        if self.shared.now < self.no_victim_until {
            return Err(busy);
        }
        let victim = self.victim().filter(|(_, (is_busy, Reverse(held), ..))| !is_busy && *held >= least);
        let Some((victim, _)) = victim else {
            self.no_victim_until = self.shared.now + SEARCH_INTERVAL_NS;
            return Err(busy);
        };
        self.close_for_another(victim);
        Ok(())
    }

    /// Returns the connection to close first of those without a guaranteed place.
    fn victim(&self) -> Option<(usize, VictimRank)> {
        let open = self.sessions.iter().filter(|(_, entry)| {
            !entry.session.is_client_given_up() && !self.places.is_protected(entry.owner)
        });
        open.map(|(slot, entry)| (slot, self.victim_rank(entry))).min_by_key(|(_, rank)| *rank)
    }

    fn victim_rank(&self, entry: &ConnectedSession<S::Stream>) -> VictimRank {
        let session = &entry.session;
        let held = self.shared.addresses.entry(session.address).connections;
        (!session.waits_for_client(), Reverse(held), session.has_been_served, session.client.asked_at)
    }

    /// Closes a client's connection. Its requests at the server count until they are answered.
    fn close_for_another(&mut self, slot: usize) {
        let session = &self.sessions[slot].session;
        let peer = session.peer;
        let state = if session.waits_for_client() { " while idle" } else { "" };
        self.log.write(self.shared.now, || format!("{peer}: closed{state}, to let others connect"));
        if self.sessions[slot].session.awaits_replies() {
            self.sessions[slot].session.give_client_up(&mut self.shared);
            self.close_client_stream(slot);
            self.ready.push(slot);
        } else {
            self.remove_session(slot);
        }
    }

    /// Returns true if the remaining places are rationed.
    pub(super) fn is_scarce(&self) -> bool {
        let most = self.places.count();
        self.sessions.len() as u64 >= most - most / 4
    }

    /// Closes connections without any request and without a guaranteed place, while places are scarce.
    pub(super) fn close_silent_when_crowded(&mut self) {
        if !self.is_scarce() {
            return;
        }
        let now = self.shared.now;
        let silent = self.sessions.iter().filter(|(_, entry)| {
            entry.session.has_asked_nothing()
                && now > entry.session.client.since + SILENT_NS
                && !self.places.is_protected(entry.owner)
        });
        let silent: Vec<usize> = silent.map(|(slot, _)| slot).take(CLOSED_PER_TICK).collect();
        for slot in silent {
            // With each that is closed its workload may be down to its guaranteed places.
            if !self.places.is_protected(self.sessions[slot].owner) {
                self.remove_session(slot);
            }
        }
    }

    /// Returns warnings about places that are fewer than configured, or than workloads.
    pub(super) fn places_warnings(&self) -> Vec<String> {
        let most = self.places.count();
        let wanted = self.connections_max;
        let mut warnings = Vec::new();
        if most < wanted {
            let files = descriptors::files_for(wanted);
            warnings.push(format!(
                "the limit of open files allows {most} of {wanted} connections; {files} files are needed \
                 (ulimit -Hn, LimitNOFILE of systemd)"
            ));
        }
        let owners = self.shared.enforced.clients.owners() as u64;
        if owners > most {
            warnings.push(format!(
                "no workload is guaranteed a connection: the hosts file has {owners} by address, and \
                 {} may be open",
                units::plural(most, "connection")
            ));
        }
        warnings
    }
}
