//! Orders that are carried out between events.

use super::super::remote::Order;
use super::super::rules::{self, Enforced};
use super::super::shared::Shared;
use super::super::status::Snapshot;
use super::Engine;
use crate::deployment::Deployment;
use model::{OperationError, Policy};

impl Engine {
    pub(super) fn obey(&mut self) {
        while let Some(order) = self.orders.next() {
            match order {
                // Nobody may be there any more to hear the answer.
                Order::Configure(policy, deployment, answer) => {
                    let _ = answer.send(self.configure(policy.as_deref(), deployment.map(|it| *it)));
                }
                Order::Status(answer) => {
                    let _ = answer.send(self.snapshot());
                }
                Order::Drain => self.drain(),
                Order::Stop => self.stopped = true,
            }
        }
    }

    /// Another policy, at once for everybody; after an error nothing has changed.
    fn configure(
        &mut self,
        policy: Option<&Policy>,
        deployment: Option<Deployment>,
    ) -> Result<(), OperationError> {
        let deployment = deployment.unwrap_or_else(|| self.deployment.clone());
        let Shared { names, queue, now, profile, .. } = &mut self.shared;
        let Enforced { rules, table, batch } =
            rules::enforced(policy, &deployment, &self.server, profile, names)?;
        queue
            .reconfigure(*now, &rules)
            .map_err(|fault| OperationError::input(fault).hint("the policy is out of its ranges"))?;
        self.deployment = deployment;
        (self.shared.table, self.shared.batch) = (table, batch);
        self.shared.status.changes += 1;
        for session in self.sessions.iter_mut().flatten() {
            let flow = self.shared.flow_of(session.peer, session.export());
            session.belongs_to(flow);
            self.touched.push(session.number);
        }
        Ok(())
    }

    fn drain(&mut self) {
        if self.draining.is_some() {
            self.stopped = true;
            return;
        }
        self.draining = Some(self.shared.now);
        self.doors.clear();
        for session in self.sessions.iter_mut().flatten() {
            session.drain();
            self.touched.push(session.number);
        }
    }

    pub(in super::super) fn snapshot(&self) -> Snapshot {
        let Shared { queue, held, status, names, .. } = &self.shared;
        Snapshot {
            workloads: status.workloads(names),
            connections: status.connections,
            cut: status.cut,
            waiting: queue.waiting() as u64,
            outstanding: queue.outstanding().into(),
            held_bytes: *held as u64,
            released: status.released,
            changes: status.changes,
        }
    }
}
