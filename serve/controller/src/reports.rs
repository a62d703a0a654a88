//! Effects of the reports of agents.
//!
//! A report counts only with the ticket of the latest answer: one that a network delayed or repeated says nothing about
//! the present. An agent whose report does not count gets a ticket with the answer, and reports again.

use crate::alert::{AlertKind, AlertState};
use crate::event::Event;
use crate::state::ClusterState;
use agent::AgentReport;

/// Result of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportOutcome {
    /// Events, in order; often none.
    Events(Vec<Event>),
    /// The hosts file has no such host.
    Unknown(String),
    /// The agent belongs to another cluster.
    Foreign(String),
}

impl ClusterState {
    pub(crate) fn judge_report(&self, host: &str, report: &AgentReport, is_latest: bool) -> ReportOutcome {
        let Some(state) = self.hosts.get(host) else {
            return ReportOutcome::Unknown(format!("the hosts file has no host '{host}'"));
        };
        if let Some(cluster) = report.cluster.as_ref().filter(|cluster| **cluster != self.cluster) {
            let own = &self.cluster;
            return ReportOutcome::Foreign(format!("the agent is of cluster {cluster}, and this is {own}"));
        }
        if !is_latest {
            return ReportOutcome::Events(Vec::new());
        }
        let mut events = Vec::new();
        let host = host.to_owned();
        if state.is_silent {
            events.push(Event::AlertChanged {
                alert: AlertKind::AgentSilent,
                state: AlertState::Resolved,
                host: Some(host.clone()),
                reason: format!("the agent of host {host} reports again"),
            });
        }
        let seen = (report.mode, report.abilities.clone());
        if state.agent.as_ref() != Some(&seen) {
            let (mode, abilities) = seen;
            events.push(Event::AgentSeen { host: host.clone(), mode, abilities });
        }
        if let Some(advice) = report.advice.as_ref().filter(|advice| state.advice.as_ref() != Some(advice)) {
            let text = advice.text.clone();
            events.push(Event::AgentAdvised { host: host.clone(), epoch: advice.epoch, text });
        }
        if report.warnings != state.warnings {
            events.push(Event::AgentWarned { host: host.clone(), warnings: report.warnings.clone() });
        }
        let applied = report.applied;
        if applied < state.applied || applied > self.wanted_epoch(&host) {
            events.push(Event::Regressed { host, epoch: applied });
        } else if applied > state.applied && self.is_granted(&host, applied) {
            events.push(Event::Applied { host, epoch: applied });
        } else if let Some(refused) = &report.refused
            && refused.epoch == self.wanted_epoch(&host)
        {
            let changes = self.withdrawals(&host);
            let reason = refused.reason.clone();
            // Without changes to take back it is asked again; its agent takes longer each time.
            events.push(Event::Refused { host, epoch: refused.epoch, reason, changes });
        }
        ReportOutcome::Events(events)
    }
}
