//! Commands of other threads, handled between two rounds.

use super::super::rules::{ProxyRules, server_storage};
use super::super::session::CloseReason;
use super::super::shared::SharedState;
use super::super::statistics::{ProxyMetrics, ProxySnapshot};
use super::super::system::System;
use super::super::warnings::open_exports;
use super::ProxyEngine;
use crate::deployment::Deployment;
use model::{OperationError, Policy};
use workload::live::{CurveMark, CurveReport};

impl<S: System> ProxyEngine<S> {
    /// Replaces the policy at once, also for waiting requests; without a deployment the present one
    /// stays. Clients that are no longer allowed are cut off. Returns true if anything changed; an equal
    /// configuration has no effect. After an error nothing has changed.
    ///
    /// # Errors
    /// When the policy or the deployment is invalid, or the server has other fronts than the running
    /// ones.
    pub fn configure(
        &mut self,
        policy: Option<&Policy>,
        deployment: Option<Deployment>,
    ) -> Result<bool, OperationError> {
        let deployment = deployment.unwrap_or_else(|| self.deployment.clone());
        self.shared.now = self.system.now().max(self.shared.now);
        self.check_fronts(&deployment)?;
        let SharedState { names, queue, now, profile, enforced, .. } = &mut self.shared;
        let changed = ProxyRules::new(policy, &deployment, &self.server, profile, names)?;
        self.deployment = deployment;
        if changed == *enforced {
            return Ok(false);
        }
        queue
            .reconfigure(*now, &changed.rules)
            .map_err(|error| OperationError::input(error).hint("the policy is out of its ranges"))?;
        *enforced = changed;
        self.shared.statistics.changes += 1;
        for (slot, entry) in &mut self.sessions {
            entry.session.identify(&mut self.shared);
            self.ready.push(slot);
        }
        self.cut_off_forbidden();
        self.assign_places();
        self.make_progress();
        Ok(true)
    }

    /// Refuses a deployment with other fronts than the running ones.
    fn check_fronts(&self, deployment: &Deployment) -> Result<(), OperationError> {
        let wanted = &server_storage(deployment, &self.server)?.front;
        let running = &server_storage(&self.deployment, &self.server)?.front;
        let is_same_front = wanted.iter().zip(running).all(|(wanted, running)| wanted.is_served_by(running));
        if wanted.len() == running.len() && is_same_front {
            return Ok(());
        }
        let server = &self.server;
        Err(OperationError::input(format_args!(
            "server {server}: the running proxy has other fronts than the hosts file"
        ))
        .hint("restart the proxy for other fronts; only their `allow` changes while it runs"))
    }

    /// Assigns all places to workloads anew.
    fn assign_places(&mut self) {
        let clients = &self.shared.enforced.clients;
        self.places.restart(clients.owners());
        for (_, entry) in &mut self.sessions {
            entry.owner = self.places.owner(&clients.claims(entry.session.peer));
            self.places.add(entry.owner);
        }
    }

    /// Cuts off clients that are no longer allowed.
    pub(super) fn cut_off_forbidden(&mut self) {
        let allowed = &self.shared.enforced.allowed;
        let forbidden =
            self.sessions.iter().filter(|(_, entry)| !allowed.permits(entry.front, entry.session.peer.ip()));
        let forbidden: Vec<usize> = forbidden.map(|(slot, _)| slot).collect();
        for slot in forbidden {
            self.end_session(slot, &CloseReason::Forbidden);
        }
    }

    /// Records the root handle of an NFS export.
    pub(crate) fn learn_export(&mut self, path: &[u8], root: &[u8]) {
        self.shared.learn_export(path, root);
    }

    /// Returns true if the root handle of an NFS export is known.
    pub(in super::super) fn knows_exports(&self) -> bool {
        self.shared.exports.iter().next().is_some()
    }

    /// Returns the NFS and NBD exports that the deployment names.
    pub(in super::super) fn named_exports(&self) -> Vec<Vec<u8>> {
        self.shared.enforced.clients.exports().into_iter().map(<[u8]>::to_vec).collect()
    }

    /// Returns warnings about access that the deployment leaves open, and about its differences from the
    /// policy's assumptions.
    pub(in super::super) fn warnings(&self) -> Vec<String> {
        let mut warnings = open_exports(&self.deployment, &self.server);
        warnings.extend_from_slice(&self.shared.enforced.warnings);
        warnings.extend(self.places_warnings());
        warnings
    }

    /// Accepts no more connections and requests; the engine stops once those in flight are answered. A
    /// second call stops it at once.
    pub fn drain(&mut self) {
        if self.draining_since.is_some() {
            self.is_stopped = true;
            return;
        }
        self.draining_since = Some(self.shared.now);
        self.shared.is_draining = true;
        self.system.stop_listening();
        self.ready.extend(self.sessions.iter().map(|(slot, _)| slot));
        self.make_progress();
        self.is_stopped |= self.sessions.is_empty();
    }

    /// Stops at once, with requests possibly in flight.
    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Returns the present counters.
    pub fn snapshot(&self) -> ProxySnapshot {
        let SharedState { queue, buffered_bytes, statistics, names, .. } = &self.shared;
        ProxySnapshot {
            workloads: statistics.traffic(names),
            connections: self.sessions.len() as u64,
            places: self.places.count(),
            cut: statistics.cut,
            turned_away: statistics.turned_away,
            waiting: queue.waiting() as u64,
            outstanding: queue.outstanding().into(),
            buffered_bytes: *buffered_bytes as u64,
            released: statistics.released,
            changes: statistics.changes,
            take_overs: self.take_overs,
            taken_over_from: self.predecessor,
        }
    }

    /// Returns the counters with distributions.
    pub(in crate::storage) fn metrics(&self) -> ProxyMetrics {
        let SharedState { statistics, names, .. } = &self.shared;
        ProxyMetrics {
            counters: statistics.identity.clone(),
            snapshot: self.snapshot(),
            times: statistics.times(names),
        }
    }

    /// Returns chunks of live burst curves after those that the reader has.
    pub(in crate::storage) fn curves(&mut self, after: Option<&CurveMark>) -> CurveReport {
        let SharedState { live, names, now, .. } = &mut self.shared;
        *now = self.system.now().max(*now);
        live.report(*now, after, |flow| names.name(flow).map(str::to_owned))
    }
}
