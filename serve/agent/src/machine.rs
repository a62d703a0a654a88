//! The order of saving, enforcing and reporting.
//!
//! An assignment is saved as wanted before it is enforced, and as applied after that, so a restart at any instant
//! enforces the wanted one again: which of the two was in force is not known then. Only what is enforced and saved is
//! reported as applied. An enforcer that refuses has changed nothing, and the host keeps what it had.

use crate::messages::{
    Abilities, Advice, AgentAnswer, AgentMode, AgentReport, Assignment, AssignmentRefusal, Ticket,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use workload::live::CurveMark;

/// State of an agent that survives restarts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentMemory {
    /// Identity of the cluster, from the first answer.
    pub cluster: Option<String>,
    /// The assignment that was enforced last.
    pub applied: Option<Assignment>,
    /// An assignment that may be enforced already.
    pub wanted: Option<Assignment>,
}

/// The next thing to do. The caller does it and calls the method that is named.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStep {
    /// Replace the saved memory; then [`AgentMachine::saved`].
    Save(AgentMemory),
    /// Enforce an assignment and verify it; then [`AgentMachine::enforced`]. Nothing changes if it is in force.
    Enforce(Assignment),
    /// Find out what an assignment would change; then [`AgentMachine::advised`].
    Advise(Assignment),
    /// Send a report, to which the caller adds the counters of the host's proxies; then [`AgentMachine::answered`].
    Report(AgentReport),
    /// End: the controller is another cluster's. The host keeps what it enforces.
    Stop(String),
}

/// An assignment that was not enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnforceError {
    /// It cannot be enforced here; nothing has changed.
    Refused(String),
    /// An enforcer does not answer. What it will have when it does is not known, but it is the present assignment or
    /// this one.
    Unavailable(String),
}

/// Reason for the step under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Reporting,
    /// Saving a new assignment before it is enforced.
    Wanting,
    /// Enforcing the wanted assignment.
    Changing,
    /// Saving that the wanted assignment is applied.
    Applied,
    /// Saving that the wanted assignment was refused.
    Refused,
    /// Enforcing the applied assignment again.
    Keeping,
    Advising,
}

/// The agent of one host.
#[derive(Debug, Clone)]
pub struct AgentMachine {
    mode: AgentMode,
    memory: AgentMemory,
    abilities: Abilities,
    ticket: Option<Ticket>,
    /// Burst curves that the controller has, by server.
    curves: BTreeMap<String, CurveMark>,
    refused: Option<AssignmentRefusal>,
    advice: Option<Advice>,
    /// True once the applied assignment was found in force.
    is_enforced: bool,
    purpose: Purpose,
}

impl AgentMachine {
    /// Starts an agent with its saved memory, and returns its first step.
    pub fn start(mode: AgentMode, memory: AgentMemory, abilities: Abilities) -> (Self, AgentStep) {
        let mut agent = Self {
            mode,
            memory,
            abilities,
            ticket: None,
            curves: BTreeMap::new(),
            refused: None,
            advice: None,
            is_enforced: false,
            purpose: Purpose::Reporting,
        };
        let step = agent.go_on();
        (agent, step)
    }

    /// Goes on after memory was saved.
    ///
    /// # Panics
    /// When no memory was to be saved.
    pub fn saved(&mut self) -> AgentStep {
        match (self.purpose, self.memory.wanted.clone()) {
            (Purpose::Wanting, Some(wanted)) => self.enforce(Purpose::Changing, wanted),
            (Purpose::Refused, _) => self.keep(),
            (Purpose::Applied, _) => self.report(),
            (purpose, _) => panic!("nothing was to be saved while {purpose:?}"),
        }
    }

    /// Goes on after an assignment was enforced and verified, or was not. One that is wanted and meets an enforcer that
    /// does not answer stays wanted.
    ///
    /// # Panics
    /// When nothing was to be enforced.
    pub fn enforced(&mut self, outcome: Result<(), EnforceError>) -> AgentStep {
        match (self.purpose, outcome) {
            (Purpose::Changing, Ok(())) => {
                self.memory.applied = self.memory.wanted.take();
                self.is_enforced = true;
                self.save(Purpose::Applied)
            }
            (Purpose::Changing, Err(EnforceError::Unavailable(_))) => self.report(),
            (Purpose::Changing, Err(EnforceError::Refused(reason))) => {
                let wanted = self.memory.wanted.take().expect("it was enforced");
                self.refused = Some(AssignmentRefusal { epoch: wanted.epoch, reason });
                self.save(Purpose::Refused)
            }
            (Purpose::Keeping, outcome) => {
                self.is_enforced = outcome.is_ok();
                self.report()
            }
            (purpose, _) => panic!("nothing was to be enforced while {purpose:?}"),
        }
    }

    /// Goes on after advice was made, or could not be.
    pub fn advised(&mut self, outcome: Result<Advice, String>, epoch: u64) -> AgentStep {
        self.advice = Some(outcome.unwrap_or_else(|text| Advice { epoch, text }));
        self.report()
    }

    /// Goes on after an answer to a report, or after none came in time. `abilities` are the host's at present.
    pub fn answered(&mut self, answer: Option<AgentAnswer>, abilities: Abilities) -> AgentStep {
        self.abilities = abilities;
        let Some(answer) = answer else { return self.go_on() };
        match &self.memory.cluster {
            Some(own) if *own != answer.cluster => {
                return AgentStep::Stop(format!(
                    "the controller is that of cluster {}, and this agent belongs to cluster {own}",
                    answer.cluster
                ));
            }
            _ => self.memory.cluster = Some(answer.cluster),
        }
        self.ticket = Some(answer.ticket);
        self.curves = answer.curves;
        match answer.assignment.filter(|assignment| self.is_new(assignment)) {
            Some(assignment) if self.mode == AgentMode::Applying => {
                self.memory.wanted = Some(assignment);
                self.save(Purpose::Wanting)
            }
            Some(assignment) => {
                self.purpose = Purpose::Advising;
                AgentStep::Advise(assignment)
            }
            None => self.go_on(),
        }
    }

    /// Returns the assignment that is known to be in force.
    pub fn applied(&self) -> Option<&Assignment> {
        self.memory.applied.as_ref().filter(|_| self.is_enforced)
    }

    /// Returns the burst curves of a server that the controller has. Those after them are to be reported.
    pub fn curves_known(&self, server: &str) -> Option<&CurveMark> {
        self.curves.get(server)
    }

    /// Returns true for an assignment later than all that were wanted, applied, refused or advised on. Messages may come late
    /// and in any order, so that the epoch alone says what is later.
    fn is_new(&self, assignment: &Assignment) -> bool {
        let applied = self.memory.applied.as_ref().map(|applied| applied.epoch);
        let refused = self.refused.as_ref().map(|refused| refused.epoch);
        let advised = self.advice.as_ref().map(|advice| advice.epoch);
        let wanted = self.memory.wanted.as_ref().map(|wanted| wanted.epoch);
        [applied, wanted, refused, advised].into_iter().flatten().all(|epoch| epoch < assignment.epoch)
    }

    fn save(&mut self, purpose: Purpose) -> AgentStep {
        self.purpose = purpose;
        AgentStep::Save(self.memory.clone())
    }

    fn enforce(&mut self, purpose: Purpose, assignment: Assignment) -> AgentStep {
        self.purpose = purpose;
        AgentStep::Enforce(assignment)
    }

    /// Enforces the wanted assignment, or the applied one again.
    fn go_on(&mut self) -> AgentStep {
        match self.memory.wanted.clone() {
            Some(wanted) if self.mode == AgentMode::Applying => self.enforce(Purpose::Changing, wanted),
            _ => self.keep(),
        }
    }

    /// Enforces the applied assignment again, because others may have changed the host; reports if there is none.
    fn keep(&mut self) -> AgentStep {
        match self.memory.applied.clone() {
            Some(applied) if self.mode == AgentMode::Applying => self.enforce(Purpose::Keeping, applied),
            _ => self.report(),
        }
    }

    fn report(&mut self) -> AgentStep {
        self.purpose = Purpose::Reporting;
        AgentStep::Report(AgentReport {
            cluster: self.memory.cluster.clone(),
            ticket: self.ticket.take(),
            mode: self.mode,
            abilities: self.abilities.clone(),
            applied: self.applied().map_or(0, |applied| applied.epoch),
            refused: self.refused.clone(),
            advice: self.advice.clone(),
            observations: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Policy;

    fn assignment(epoch: u64) -> Assignment {
        let policy = Policy::new("tailwright", Vec::new(), Vec::new()).expect("an empty policy");
        let server = crate::ServerAssignment { server: "ssd-1".into(), policy, clients: Vec::new() };
        Assignment {
            cluster: "c".into(),
            host: "store-1".into(),
            epoch,
            hosts: String::new(),
            network: false,
            servers: vec![server],
        }
    }

    fn answer(epoch: u64) -> Option<AgentAnswer> {
        let ticket = Ticket { run: 1, number: epoch };
        Some(AgentAnswer {
            cluster: "c".into(),
            host: "store-1".into(),
            ticket,
            assignment: Some(assignment(epoch)),
            curves: BTreeMap::new(),
        })
    }

    fn start(mode: AgentMode, memory: AgentMemory) -> (AgentMachine, AgentStep) {
        AgentMachine::start(mode, memory, Abilities::default())
    }

    fn applied_in(step: &AgentStep) -> u64 {
        let AgentStep::Report(report) = step else { panic!("a report, not {step:?}") };
        report.applied
    }

    #[test]
    fn saves_enforces_saves_and_then_reports() {
        let (mut agent, first) = start(AgentMode::Applying, AgentMemory::default());
        assert_eq!(applied_in(&first), 0);
        let wanted = agent.answered(answer(7), Abilities::default());
        assert!(matches!(&wanted, AgentStep::Save(memory) if memory.wanted == Some(assignment(7))));
        assert_eq!(agent.saved(), AgentStep::Enforce(assignment(7)));
        let applied = agent.enforced(Ok(()));
        assert!(matches!(&applied, AgentStep::Save(memory) if memory.applied == Some(assignment(7))));
        assert_eq!(applied_in(&agent.saved()), 7);
    }

    #[test]
    fn a_restart_enforces_what_was_wanted_or_else_applied() {
        let applied = Some(assignment(3));
        let memory = AgentMemory { cluster: Some("c".into()), applied, wanted: None };
        let (mut agent, first) = start(AgentMode::Applying, memory.clone());
        assert_eq!(first, AgentStep::Enforce(assignment(3)));
        assert_eq!(applied_in(&agent.enforced(Ok(()))), 3);
        let (_, first) = start(AgentMode::Applying, AgentMemory { wanted: Some(assignment(4)), ..memory });
        assert_eq!(first, AgentStep::Enforce(assignment(4)));
    }

    #[test]
    fn late_messages_change_nothing() {
        let memory = AgentMemory { cluster: Some("c".into()), applied: Some(assignment(9)), wanted: None };
        let (mut agent, _) = start(AgentMode::Applying, memory);
        agent.enforced(Ok(()));
        // The applied one is enforced again, whatever was sent.
        assert_eq!(agent.answered(answer(8), Abilities::default()), AgentStep::Enforce(assignment(9)));
    }

    #[test]
    fn a_refusal_keeps_what_was_applied() {
        let memory = AgentMemory { cluster: Some("c".into()), applied: Some(assignment(1)), wanted: None };
        let (mut agent, _) = start(AgentMode::Applying, memory);
        agent.enforced(Ok(()));
        agent.answered(answer(2), Abilities::default());
        agent.saved();
        let refused = agent.enforced(Err(EnforceError::Refused("no front".into())));
        assert!(matches!(&refused, AgentStep::Save(memory) if memory.wanted.is_none()));
        assert_eq!(agent.saved(), AgentStep::Enforce(assignment(1)));
        let AgentStep::Report(report) = agent.enforced(Ok(())) else { panic!("a report") };
        assert_eq!(report.applied, 1);
        assert_eq!(report.refused, Some(AssignmentRefusal { epoch: 2, reason: "no front".into() }));
    }

    #[test]
    fn what_meets_no_enforcer_stays_wanted() {
        let (mut agent, _) = start(AgentMode::Applying, AgentMemory::default());
        agent.answered(answer(2), Abilities::default());
        agent.saved();
        let unavailable = Err(EnforceError::Unavailable("no proxy".into()));
        assert_eq!(applied_in(&agent.enforced(unavailable)), 0);
        assert_eq!(agent.answered(answer(2), Abilities::default()), AgentStep::Enforce(assignment(2)));
        agent.enforced(Err(EnforceError::Unavailable("no proxy".into())));
        assert!(matches!(agent.answered(answer(3), Abilities::default()), AgentStep::Save(_)));
        assert_eq!(agent.saved(), AgentStep::Enforce(assignment(3)));
    }

    #[test]
    fn an_adviser_enforces_nothing_and_confirms_nothing() {
        let memory = AgentMemory { cluster: Some("c".into()), applied: Some(assignment(1)), wanted: None };
        let (mut agent, first) = start(AgentMode::Advising, memory);
        assert_eq!(applied_in(&first), 0);
        assert_eq!(agent.answered(answer(2), Abilities::default()), AgentStep::Advise(assignment(2)));
        let advice = Advice { epoch: 2, text: "two limits".into() };
        let AgentStep::Report(report) = agent.advised(Ok(advice.clone()), 2) else { panic!("a report") };
        assert_eq!((report.applied, report.advice), (0, Some(advice)));
    }

    #[test]
    fn another_clusters_controller_is_refused() {
        let memory = AgentMemory { cluster: Some("other".into()), ..AgentMemory::default() };
        let (mut agent, _) = start(AgentMode::Applying, memory);
        assert!(matches!(agent.answered(answer(2), Abilities::default()), AgentStep::Stop(_)));
    }
}
