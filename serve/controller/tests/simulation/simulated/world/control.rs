//! The controller of a world: its process, which may end between any two writes, and its history.

use super::super::mistake::Mistake;
use super::AskPhase;
use super::{Fault, Happening, MS, Message, Reply, S, World};
use agent::AgentReport;
use controller::{
    Command, Controller, DecisionAnswer, EVENT_VERSION, Event, RecordedEvent, ReportOutcome, Standing,
    WorkloadRequest,
};
use model::Stage;
use rand::RngExt as _;

impl World {
    pub(super) fn recorded(&mut self, event: Event) -> RecordedEvent {
        self.wall_ns += MS;
        let seq = self.history.len() as u64 + 1;
        RecordedEvent { seq, at_ns: self.wall_ns, version: EVENT_VERSION, event }
    }

    pub(super) fn controller_starts(&mut self) -> Result<(), String> {
        self.runs += 1;
        self.told.clear();
        self.told_curves.clear();
        let mut controller = Controller::new(self.runs);
        for recorded in &self.history {
            controller.apply(recorded).map_err(|error| format!("restart: {error}"))?;
        }
        self.controller = Some(controller);
        Ok(())
    }

    pub(super) fn controller_crashes(&mut self) -> bool {
        let crashes = self.fails(0.004);
        if crashes {
            self.count(Fault::ControllerCrash);
            self.controller = None;
            let down = self.dice.random_range(MS..2 * S);
            self.after(down, Happening::ControllerStarts);
        }
        crashes
    }

    /// Stores and applies events, with an end at any instant. Returns false if the controller ended.
    pub(super) fn commit(&mut self, events: Vec<Event>) -> Result<bool, String> {
        for event in events {
            if self.controller_crashes() {
                return Ok(false);
            }
            let recorded = self.recorded(event);
            // The history is text, as it is stored.
            let text = serde_json::to_string(&recorded).map_err(|error| format!("history: {error}"))?;
            let read: RecordedEvent =
                serde_json::from_str(&text).map_err(|error| format!("history: {error}"))?;
            if read != recorded {
                return Err("history: an event is read otherwise than it was written".to_owned());
            }
            self.history.push(recorded.clone());
            if self.controller_crashes() {
                return Ok(false);
            }
            let controller = self.controller.as_mut().expect("it runs");
            controller.apply(&recorded).map_err(|error| format!("history: {error}"))?;
        }
        Ok(!self.controller_crashes())
    }

    pub(super) fn controller_handles(&mut self, message: Message) -> Result<(), String> {
        if self.controller.is_none() {
            return Ok(());
        }
        match message {
            Message::Report { host, life, round, report, proxies } => {
                self.controller_is_told(host, life, round, &report, &proxies)
            }
            Message::Request { ask } => self.controller_decides(ask),
            Message::Renew { ask, number } => self.controller_renews(ask, number),
            Message::AskRenewal { ask, number } => {
                self.controller_tells_renewal(ask, number);
                Ok(())
            }
            Message::Ask { ask } => {
                if let AskPhase::Waiting { id } = self.asks[ask].phase {
                    let standing = self.controller.as_ref().expect("it runs").state().standing(id);
                    let standing = match self.mistake {
                        Some(Mistake::PromisesAtAdmission) if standing == Standing::Pending => {
                            Standing::Enforced
                        }
                        _ => standing,
                    };
                    self.send(None, Happening::ToTenant { ask, reply: Reply::Standing { id, standing } });
                }
                Ok(())
            }
            Message::Remove { ask } => {
                let WorkloadRequest { tenant, name, .. } = self.asks[ask].request.clone();
                let removal = Command::Remove { tenant, name };
                let reply = match self.controller.as_ref().expect("it runs").decide(&removal) {
                    Ok(event) => self.commit(vec![event])?,
                    // It was removed before.
                    Err(_) => true,
                };
                if reply {
                    self.send(None, Happening::ToTenant { ask, reply: Reply::Removed });
                }
                Ok(())
            }
        }
    }

    pub(super) fn controller_decides(&mut self, ask: usize) -> Result<(), String> {
        let request = self.asks[ask].request.clone();
        let key = request.key.clone().expect("tenants give keys");
        let controller = self.controller.as_ref().expect("it runs");
        if controller.state().decision_of_key("t", &key).is_none() {
            // A copy of the request may come when the workload has left already; its key is known then.
            let Ok(event) = controller.decide(&Command::Request(Box::new(request))) else {
                self.send(None, Happening::ToTenant { ask, reply: Reply::Nothing });
                return Ok(());
            };
            if self.mistake == Some(Mistake::AnswersBeforeStoring)
                && let Event::WorkloadAdmitted(admission) = &event
            {
                let id = self.history.len() as u64 + 1;
                let server = admission.change.server.clone();
                self.send(None, Happening::ToTenant { ask, reply: Reply::Admitted { id, server } });
            }
            match &event {
                Event::WorkloadRefused { reason, .. } => {
                    self.report.refused += 1;
                    self.report.without_order +=
                        u64::from(reason.contains("order") || reason.contains("priority"));
                }
                _ => self.report.admitted += 1,
            }
            if !self.commit(vec![event])? {
                return Ok(());
            }
        }
        let state = self.controller.as_ref().expect("it runs").state();
        let decision = state.decision_of_key("t", &key).ok_or("a decision has no key")?;
        let reply = match &decision.answer {
            DecisionAnswer::Admitted { workload } => {
                let server =
                    state.workload(*workload).ok_or("an admitted workload is unknown")?.server.clone();
                Reply::Admitted { id: *workload, server }
            }
            _ => Reply::Refused,
        };
        self.send(None, Happening::ToTenant { ask, reply });
        Ok(())
    }

    pub(super) fn controller_is_told(
        &mut self,
        host: usize,
        life: u64,
        round: u64,
        report: &AgentReport,
        proxies: &[u64],
    ) -> Result<(), String> {
        let mut report = report.clone();
        if self.mistake == Some(Mistake::BelievesOldReports) {
            report.ticket = self.tickets.get(&host).copied();
        }
        let name = self.hosts[host].name.clone();
        let controller = self.controller.as_ref().expect("it runs");
        let events = match controller.judge(&name, &report) {
            ReportOutcome::Events(events) => events,
            ReportOutcome::Unknown(reason) | ReportOutcome::Foreign(reason) => {
                return Err(format!("a report is foreign: {reason}"));
            }
        };
        if !self.commit(events)? {
            return Ok(());
        }
        if !self.controller_observes(host, &report, proxies)? {
            return Ok(());
        }
        let controller = self.controller.as_mut().expect("it runs");
        let mut answer = controller.answer(&name, report.applied);
        if self.mistake == Some(Mistake::SkipsOrder) {
            let state = self.controller.as_ref().expect("it runs").state();
            for part in answer.assignment.iter_mut().flat_map(|assignment| &mut assignment.servers) {
                part.policy = state.server(&part.server).expect("a known server").decided.clone();
            }
        }
        self.tickets.insert(host, answer.ticket);
        self.send(Some(host), Happening::ToHost { host, life, round, answer: Box::new(answer) });
        Ok(())
    }

    /// Notes the burst curves of a report that counts.
    fn note_curves(&mut self, host: usize, report: &AgentReport, proxies: &[u64]) {
        let state = self.controller.as_ref().expect("it runs").state();
        for (observation, life) in report.observations.iter().zip(proxies) {
            let server = &observation.server;
            let id = |name: &str| {
                let mut own = state.workloads().filter(|(_, workload)| workload.server == *server);
                own.find(|(_, workload)| workload.request.full_name() == name).map(|(id, _)| id)
            };
            let told = self.told_curves.entry(server.clone()).or_default();
            told.note(*life, observation, &self.hosts[host].proxies[server], id);
        }
    }

    /// Lets the controller count the requests of a report, and compares its counts with those of the hosts. Returns false
    /// if it ended.
    fn controller_observes(
        &mut self,
        host: usize,
        report: &AgentReport,
        proxies: &[u64],
    ) -> Result<bool, String> {
        let name = self.hosts[host].name.clone();
        let is_latest = report.ticket.is_some_and(|ticket| ticket.run == self.runs)
            && report.ticket == self.tickets.get(&host).copied();
        if is_latest {
            for (observation, life) in report.observations.iter().zip(proxies) {
                self.told.entry(observation.server.clone()).or_default().note(*life, observation);
            }
        }
        if is_latest {
            self.note_curves(host, report, proxies);
        }
        let mut report = report.clone();
        if self.mistake == Some(Mistake::ReadsChunksAnew) {
            for curves in report.observations.iter_mut().filter_map(|of| of.curves.as_mut()) {
                curves.identity = format!("{} at {}", curves.identity, self.now);
            }
        }
        if self.mistake == Some(Mistake::CountsWholeReports) {
            for observation in &mut report.observations {
                observation.counters = format!("{} at {}", observation.counters, self.now);
            }
        }
        let now = self.now;
        let controller = self.controller.as_mut().expect("it runs");
        let verdicts = controller.observe(&name, &report, now);
        let state = controller.state();
        for (id, workload) in state.workloads().filter(|_| is_latest) {
            let Some(told) = self.told.get(&workload.server) else { continue };
            let full = workload.request.full_name();
            let counted = controller.observations().of(state, id, workload, now).total.requests;
            let expected = told.expected(&full);
            let served =
                self.hosts.iter().find_map(|host| host.proxies.get(&workload.server)?.served.get(&full));
            if counted != expected || counted > served.copied().unwrap_or(0) {
                return Err(format!(
                    "count: the controller counts {counted} requests of {full}, and was told of {expected} of {served:?}"
                ));
            }
            self.report.counted = self.report.counted.max(counted);
            let told = self.told_curves.get(&workload.server).and_then(|told| told.expected(id));
            let held = controller.observations().live_curves(state, id, workload, now);
            let held = held.map(|curves| (curves.requests(), curves.envelope(Stage::Storage).clone()));
            if held != told {
                return Err(format!(
                    "curves: the controller has {held:?} of {full}, and was told of {told:?}"
                ));
            }
            self.report.curved = self.report.curved.max(held.map_or(0, |(requests, _)| requests));
        }
        self.commit(verdicts)
    }
}
