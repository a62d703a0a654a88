//! Commands from other threads, which are handled between two events.

use super::super::control::ControlCommand;
use super::super::rules::ProxyRules;
use super::super::shared::SharedState;
use super::super::statistics::ProxySnapshot;
use super::ProxyEngine;
use crate::deployment::Deployment;
use model::{OperationError, Policy};

impl ProxyEngine {
    /// Handles all commands that have arrived.
    pub(super) fn handle_commands(&mut self) {
        while let Some(command) = self.commands.next_command() {
            match command {
                // Nobody may wait for a reply any more.
                ControlCommand::Configure(policy, deployment, reply) => {
                    let deployment = deployment.map(|deployment| *deployment);
                    let _ = reply.send(self.configure(policy.as_deref(), deployment));
                }
                ControlCommand::Status(reply) => {
                    let _ = reply.send(self.snapshot());
                }
                ControlCommand::Drain => self.drain(),
                ControlCommand::Stop => self.is_stopped = true,
            }
        }
    }

    /// Replaces the policy, at once for everybody; after an error nothing has changed.
    fn configure(
        &mut self,
        policy: Option<&Policy>,
        deployment: Option<Deployment>,
    ) -> Result<(), OperationError> {
        let deployment = deployment.unwrap_or_else(|| self.deployment.clone());
        let SharedState { names, queue, now, profile, .. } = &mut self.shared;
        let ProxyRules { rules, clients, batch } =
            ProxyRules::new(policy, &deployment, &self.server, profile, names)?;
        queue
            .reconfigure(*now, &rules)
            .map_err(|error| OperationError::input(error).hint("the policy is out of its ranges"))?;
        self.deployment = deployment;
        (self.shared.clients, self.shared.batch) = (clients, batch);
        self.shared.statistics.changes += 1;
        for (slot, session) in &mut self.sessions {
            session.move_to_flow(self.shared.flow_for(session.peer, session.export()));
            self.ready.push(slot);
        }
        Ok(())
    }

    /// Takes no more connections and requests; the engine stops when those in flight are answered. The second time it
    /// stops at once.
    fn drain(&mut self) {
        if self.draining_since.is_some() {
            self.is_stopped = true;
            return;
        }
        self.draining_since = Some(self.shared.now);
        self.listeners.clear();
        for (slot, session) in &mut self.sessions {
            session.drain();
            self.ready.push(slot);
        }
    }

    /// The counters at this instant.
    pub(in super::super) fn snapshot(&self) -> ProxySnapshot {
        let SharedState { queue, buffered_bytes, statistics, names, .. } = &self.shared;
        ProxySnapshot {
            workloads: statistics.traffic(names),
            connections: statistics.connections,
            cut: statistics.cut,
            waiting: queue.waiting() as u64,
            outstanding: queue.outstanding().into(),
            buffered_bytes: *buffered_bytes as u64,
            released: statistics.released,
            changes: statistics.changes,
        }
    }
}
