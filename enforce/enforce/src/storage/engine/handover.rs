//! Hand-over of everything to another proxy, so that at every instant only one of the two sends requests.
//!
//! 1. [`hold`](ProxyEngine::hold): the proxy accepts no clients, reads no further requests and dispatches none. Those
//!    at the server are answered.
//! 2. When it [is at rest](ProxyEngine::is_at_rest), its state is a document and a list of connections.
//! 3. Either another engine has [adopted](ProxyEngine::adopt) both, and this one ends without a further word, or
//!    [`go_on`](ProxyEngine::go_on) continues as if nothing had happened.
//!
//! An adopted engine moves no byte before its first round, so that until then the other one may go on.

use super::super::handover::{BucketRecord, HandOverDocument, LimitRecord, VERSION};
use super::super::session::ProxySession;
use super::super::system::System;
use super::super::watched_stream::WatchedStream;
use super::{ConnectedSession, ProxyEngine};
use discipline::Limit;
use model::OperationError;

impl<S: System> ProxyEngine<S> {
    /// Comes to rest, for `within` nanoseconds at most.
    pub fn hold(&mut self, within: u64) {
        self.shared.now = self.system.now().max(self.shared.now);
        self.holding_until = Some(self.shared.now.saturating_add(within));
        self.shared.is_holding = true;
        self.system.report_clients(false);
        self.visit_all_sessions();
    }

    /// Serves again after [`hold`](Self::hold).
    pub fn go_on(&mut self) {
        self.holding_until = None;
        self.shared.is_holding = false;
        if self.draining_since.is_none() {
            self.system.report_clients(true);
        }
        self.visit_all_sessions();
    }

    fn visit_all_sessions(&mut self) {
        self.ready.extend(self.sessions.iter().map(|(slot, _)| slot));
        self.make_progress();
    }

    /// Returns true if all sessions can be handed over, and nothing is at the server.
    pub fn is_at_rest(&self) -> bool {
        let shared = &self.shared;
        self.holding_until.is_some()
            && self.draining_since.is_none()
            && shared.queue.outstanding() == 0
            && shared.queue.waiting() == 0
            && self.sessions.iter().all(|(_, entry)| entry.session.may_move(shared))
    }

    /// Returns true if the time to come to rest has passed, or the proxy drains.
    pub fn is_hold_late(&self) -> bool {
        let is_late = self.holding_until.is_some_and(|until| self.shared.now > until);
        is_late || self.draining_since.is_some()
    }

    /// Ends the sessions that keep the proxy from coming to rest if all of them wait for their clients: clients in the
    /// middle of a large request, and ones that read no replies. Returns false, and ends none, if one waits for the
    /// server.
    pub fn leave_clients_behind(&mut self) -> bool {
        let restless = self.sessions.iter().filter(|(_, entry)| !entry.session.may_move(&self.shared));
        let restless: Vec<usize> = restless.map(|(slot, _)| slot).collect();
        let waits = |slot: &usize| self.sessions[*slot].session.waits_for_client();
        if !restless.iter().all(waits) || self.draining_since.is_some() {
            return false;
        }
        for slot in restless {
            self.shared.statistics.cut += 1;
            let peer = self.sessions[slot].session.peer;
            self.log
                .write(self.shared.now, || format!("{peer}: was in the middle of a message at a take-over"));
            self.remove_session(slot);
        }
        self.make_progress();
        self.is_at_rest()
    }

    /// Returns the state of a proxy at rest. Its connections are [`Self::streams`].
    pub fn document(&mut self) -> HandOverDocument {
        let shared = &mut self.shared;
        let missing = shared.queue.missing_tokens(shared.now);
        let limits = missing.into_iter().filter_map(|(flow, buckets)| {
            let workload = shared.names.name(flow)?.to_owned();
            let bucket = |(Limit { rate, burst }, missing)| BucketRecord { rate, burst, missing };
            Some(LimitRecord { workload, buckets: buckets.into_iter().map(bucket).collect() })
        });
        let limits = limits.collect();
        let (workloads, counters) = shared.statistics.records(&shared.names);
        let exports = shared.exports.iter().map(|(path, root)| (path.to_vec(), root.to_vec())).collect();
        let sessions = self.sessions.iter().map(|(_, entry)| entry.session.record(entry.front, shared));
        HandOverDocument {
            version: VERSION,
            process: std::process::id(),
            take_overs: self.take_overs + 1,
            sessions: sessions.collect(),
            limits,
            exports,
            workloads,
            counters,
            counters_identity: shared.statistics.identity.clone(),
        }
    }

    /// Returns the connections of the sessions in the document, in its order: to the client, then to the server.
    pub fn streams(&self) -> impl Iterator<Item = &S::Stream> {
        self.sessions
            .iter()
            .flat_map(|(_, entry)| entry.client.stream.iter().chain(entry.server.stream.as_ref()))
    }

    /// Ends the engine and returns its connections in the order of [`Self::streams`].
    pub fn into_streams(self) -> Vec<S::Stream> {
        let sessions = self.sessions.into_iter();
        let both = |(_, entry): (usize, Box<ConnectedSession<S::Stream>>)| {
            let ConnectedSession { client, server, .. } = *entry;
            client.stream.into_iter().chain(server.stream)
        };
        sessions.flat_map(both).collect()
    }

    /// Takes over the state and the connections of a proxy at rest, before the first round.
    ///
    /// # Errors
    /// If the document is of another version, or does not fit the connections or the fronts.
    pub fn adopt(
        &mut self,
        document: HandOverDocument,
        streams: Vec<S::Stream>,
    ) -> Result<(), OperationError> {
        if document.version != VERSION {
            let version = document.version;
            return Err(OperationError::machine(format_args!(
                "the document has version {version}, not {VERSION}"
            ))
            .hint("stop the running proxy, and start this one"));
        }
        let has_fronts = document.sessions.iter().all(|record| record.front < self.fronts.len());
        let count: usize = document.sessions.iter().map(|record| 1 + usize::from(record.has_server)).sum();
        if !has_fronts || count != streams.len() {
            return Err(OperationError::machine("the document does not fit its connections")
                .hint("this is a bug of the running proxy: stop it, and start this one"));
        }
        self.predecessor = Some(document.process);
        self.take_overs = document.take_overs;
        let shared = &mut self.shared;
        shared.now = self.system.now().max(shared.now);
        for (path, root) in &document.exports {
            shared.learn_export(path, root);
        }
        for LimitRecord { workload, buckets } in document.limits {
            let flow = shared.names.flow(&workload);
            let limit = |bucket: &BucketRecord| Limit { rate: bucket.rate, burst: bucket.burst.max(1) };
            let missing: Vec<(Limit, u64)> =
                buckets.iter().map(|bucket| (limit(bucket), bucket.missing)).collect();
            shared.queue.inherit(shared.now, flow, &missing);
        }
        if !document.counters_identity.is_empty() {
            shared.statistics.identity = document.counters_identity;
        }
        shared.statistics.inherit(document.workloads, document.counters, &mut shared.names);
        let mut streams = streams.into_iter();
        for record in document.sessions {
            let client = streams.next();
            let server = if record.has_server { streams.next() } else { None };
            let front = record.front;
            let peer = record.peer;
            let is_sharing = !record.has_server && self.pool.rules(front, self.shared.now).is_some();
            let server = match server {
                None if !is_sharing => match self.system.connect(front, Some(peer)) {
                    Ok(server) => Some(server),
                    Err(error) => {
                        self.log.write(self.shared.now, || {
                            format!("{peer}: no connection to the server: {error}")
                        });
                        continue;
                    }
                },
                server => server,
            };
            let owner = self.places.owner(&self.shared.enforced.clients.claims(peer));
            let vacant = self.sessions.vacant_entry();
            let slot = vacant.key();
            let address = self.shared.addresses.add(peer.ip());
            let protocol = self.fronts[front];
            let mut session = ProxySession::new(slot, protocol, is_sharing, peer, address, self.shared.now);
            session.resume(record, &mut self.shared);
            vacant.insert(Box::new(ConnectedSession {
                session,
                serial: self.next_serial,
                front,
                owner,
                carrier: None,
                client: WatchedStream::new(client),
                server: WatchedStream::new(server),
            }));
            self.next_serial = self.next_serial.wrapping_add(1);
            self.places.add(owner);
            self.ready.push(slot);
        }
        Ok(())
    }

    /// Begins to serve what was adopted: clients that the hosts file no longer allows are cut off.
    pub fn begin_adopted(&mut self) {
        self.cut_off_forbidden();
        self.make_progress();
    }
}
