//! Renewals of a world: tenants whose promises are decided again, by what their clients sent.
//!
//! A tenant that asks for more relies on its old promise until it reads that the new one is enforced. One that gives back
//! relies on nothing until it is answered, and then on what was not given back.

use super::super::judge::Promise;
use super::super::mistake::Mistake;
use super::super::traffic::KIND;
use super::{AskPhase, FAULTS_END_NS, Happening, Message, RenewalReply, Reply, S, World};
use controller::{Command, DecisionAnswer, Event, RenewalRequest, Standing, WorkloadRequest};
use model::Stage;
use rand::RngExt as _;
use units::Nanos;

/// A renewal as its tenant knows it.
#[derive(Debug, Clone)]
pub(super) struct Renewing {
    number: u64,
    gives_back: bool,
    /// The promise on which it does not rely for now.
    suspended: Option<Promise>,
    /// Position of the answer that it was told.
    decided: Option<u64>,
}

impl World {
    /// Lets the tenant renew its promise some times.
    pub(super) fn plan_renewals(&mut self, ask: usize) {
        for _ in 0..self.dice.random_range(0..3) {
            let at = self.dice.random_range(S..25 * S);
            if self.now + at < FAULTS_END_NS {
                self.after(at, Happening::TenantRenews { ask });
            }
        }
    }

    pub(super) fn tenant_renews(&mut self, ask: usize) {
        let AskPhase::Using { id, .. } = self.asks[ask].phase else { return };
        if self.asks[ask].renewing.is_none() {
            if !self.has_faults() {
                return;
            }
            let gives_back = self.dice.random_bool(0.4);
            let suspended = if gives_back { self.judge.promises.remove(&id) } else { None };
            let own = &mut self.asks[ask];
            own.renewals += 1;
            own.renewing = Some(Renewing { number: own.renewals, gives_back, suspended, decided: None });
        }
        let renewing = self.asks[ask].renewing.as_ref().expect("it was set");
        let number = renewing.number;
        let message = match renewing.decided {
            None => Message::Renew { ask, number },
            Some(_) => Message::AskRenewal { ask, number },
        };
        self.send(None, Happening::ToController(message));
        // Without an answer it tries again.
        self.after(S / 2, Happening::TenantRenews { ask });
    }

    pub(super) fn tenant_reads_renewal(
        &mut self,
        ask: usize,
        id: u64,
        number: u64,
        answer: RenewalReply,
    ) -> Result<(), String> {
        let own = &mut self.asks[ask];
        let Some(renewing) = own.renewing.as_mut().filter(|renewing| renewing.number == number) else {
            return Ok(());
        };
        match (answer, renewing.decided) {
            (RenewalReply::Renewed { seq }, None) if renewing.gives_back => {
                let promise = renewing.suspended.take().expect("it was suspended");
                own.renewing = None;
                self.cover(&promise.name, seq)?;
                self.judge.promises.insert(id, promise);
                self.report.given_back += 1;
                self.judge_now()
            }
            (RenewalReply::Renewed { seq }, None) => {
                renewing.decided = Some(seq);
                Ok(())
            }
            (RenewalReply::Kept, None) => {
                let suspended = renewing.suspended.take();
                own.renewing = None;
                self.judge.promises.extend(suspended.map(|promise| (id, promise)));
                self.report.kept += 1;
                self.judge_now()
            }
            (RenewalReply::Standing { renewed_by, is_enforced, is_renewing }, Some(seq)) => {
                if renewed_by == Some(seq) && is_enforced {
                    self.asks[ask].renewing = None;
                    let name = self.judge.promises[&id].name.clone();
                    self.cover(&name, seq)?;
                    self.report.renewed += 1;
                    return self.judge_now();
                }
                if renewed_by != Some(seq) && !is_renewing {
                    // A host refused it.
                    self.asks[ask].renewing = None;
                    self.report.renewals_withdrawn += 1;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judges a promise by the traffic of a renewal from now on.
    fn cover(&mut self, name: &str, seq: u64) -> Result<(), String> {
        let lost = || format!("history: the renewal {seq} was acknowledged, and is lost");
        let index = usize::try_from(seq).expect("a short history") - 1;
        let recorded = self.history.get(index).ok_or_else(lost)?;
        let Event::WorkloadRenewed(renewal) = &recorded.event else { return Err(lost()) };
        let before = &self.judge.traffic[name];
        let seen = KIND.workload(name, before.slo, &renewal.footprint);
        let now = if renewal.gives_back { seen } else { before.join(&seen) };
        self.judge.traffic.insert(name.to_owned(), now);
        Ok(())
    }

    pub(super) fn controller_renews(&mut self, ask: usize, number: u64) -> Result<(), String> {
        let WorkloadRequest { tenant, name, .. } = self.asks[ask].request.clone();
        let asked = self.asks[ask].renewing.as_ref().filter(|renewing| renewing.number == number);
        let Some(gives_back) = asked.map(|renewing| renewing.gives_back) else { return Ok(()) };
        let gives_back = gives_back || self.mistake == Some(Mistake::GivesBackUnasked);
        let key = format!("renew-{ask}-{number}");
        let controller = self.controller.as_ref().expect("it runs");
        if controller.state().decision_of_key(&tenant, &key).is_none() {
            let asked = RenewalRequest {
                tenant: tenant.clone(),
                name: name.clone(),
                gives_back,
                observed_min: Nanos(0),
                key: Some(key.clone()),
                now: self.now,
            };
            let Ok(event) = controller.decide(&Command::Renew(asked)) else {
                self.send(None, Happening::ToTenant { ask, reply: Reply::Nothing });
                return Ok(());
            };
            if let Event::WorkloadRenewed(renewal) = &event {
                let server = &renewal.change.server;
                let told = self.told_curves.get(server).and_then(|told| told.expected(renewal.workload));
                let (requests, envelope) = told.ok_or("renewal: nothing was told of its traffic")?;
                let storage = renewal.footprint.curve(Stage::Storage);
                if storage.count() != requests || !storage.envelope().dominates(&envelope) {
                    return Err(format!(
                        "renewal: {name} is promised less than its {requests} requests need"
                    ));
                }
            }
            if !self.commit(vec![event])? {
                return Ok(());
            }
        }
        let state = self.controller.as_ref().expect("it runs").state();
        let decision = state.decision_of_key(&tenant, &key).ok_or("a decision has no key")?;
        let answer = match decision.answer {
            DecisionAnswer::Renewed { .. } => RenewalReply::Renewed { seq: decision.seq },
            _ => RenewalReply::Kept,
        };
        self.send(None, Happening::ToTenant { ask, reply: Reply::Renewal { number, answer } });
        Ok(())
    }

    pub(super) fn controller_tells_renewal(&mut self, ask: usize, number: u64) {
        let WorkloadRequest { tenant, name, .. } = &self.asks[ask].request;
        let state = self.controller.as_ref().expect("it runs").state();
        let Some((id, workload)) = state.find(tenant, name) else { return };
        let is_early = self.mistake == Some(Mistake::PromisesAtRenewal);
        let is_known = state.standing(id) == Standing::Enforced && !workload.is_renewing();
        let answer = RenewalReply::Standing {
            renewed_by: workload.covered.renewed_by,
            is_enforced: is_known || is_early,
            is_renewing: workload.is_renewing(),
        };
        self.send(None, Happening::ToTenant { ask, reply: Reply::Renewal { number, answer } });
    }
}
