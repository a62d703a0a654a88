//! The tenants of a world: they ask until they are answered, use what they are promised, and give it up.

use super::super::judge::Promise;
use super::{AskPhase, FAULTS_END_NS, Happening, Message, Reply, S, World};
use controller::{Standing, full_name};
use rand::RngExt as _;

impl World {
    pub(super) fn tenant_acts(&mut self, ask: usize) {
        let message = match self.asks[ask].phase {
            AskPhase::Requesting => Message::Request { ask },
            AskPhase::Waiting { .. } => Message::Ask { ask },
            AskPhase::Using { id, until } if self.now >= until => {
                self.judge.promises.remove(&id);
                self.asks[ask].renewing = None;
                self.asks[ask].phase = AskPhase::Removing;
                Message::Remove { ask }
            }
            AskPhase::Using { until, .. } => {
                self.after(until - self.now, Happening::TenantActs { ask });
                return;
            }
            AskPhase::Removing => Message::Remove { ask },
            AskPhase::Ended => return,
        };
        self.send(None, Happening::ToController(message));
        // Without an answer it tries again.
        self.after(S / 2, Happening::TenantActs { ask });
    }

    pub(super) fn tenant_reads(&mut self, ask: usize, reply: Reply) -> Result<(), String> {
        match (self.asks[ask].phase, reply) {
            (AskPhase::Requesting, Reply::Admitted { id, server }) => {
                self.acknowledged.insert(id);
                self.servers_of_asks.insert(id, server);
                self.asks[ask].phase = AskPhase::Waiting { id };
            }
            (AskPhase::Requesting, Reply::Refused) => self.asks[ask].phase = AskPhase::Ended,
            (AskPhase::Waiting { id: own }, Reply::Standing { id, standing }) if own == id => {
                match standing {
                    Standing::Enforced => {
                        let until = self.now + self.dice.random_range(S..FAULTS_END_NS);
                        let until = if self.dice.random_bool(0.5) { u64::MAX / 2 } else { until };
                        self.asks[ask].phase = AskPhase::Using { id, until };
                        let request = &self.asks[ask].request;
                        let promise = Promise {
                            name: full_name("t", &request.name),
                            server: self.servers_of_asks[&id].clone(),
                            slo: request.slo,
                        };
                        self.judge.promises.insert(id, promise);
                        self.report.promised += 1;
                        self.plan_renewals(ask);
                        return self.judge_now();
                    }
                    Standing::Gone => self.asks[ask].phase = AskPhase::Ended,
                    Standing::Pending | Standing::Advised => {}
                }
            }
            (AskPhase::Using { id, .. }, Reply::Renewal { number, answer }) => {
                return self.tenant_reads_renewal(ask, id, number, answer);
            }
            (AskPhase::Removing, Reply::Removed) => self.asks[ask].phase = AskPhase::Ended,
            _ => {}
        }
        Ok(())
    }
}
