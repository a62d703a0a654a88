//! Events as sentences.

use agent::AgentMode;
use controller::{AlertState, Event, Role};
use units::plural;

/// Says what an event of the history changed.
pub(super) fn described(event: &Event) -> String {
    match event {
        Event::Founded { cluster } => format!("cluster {cluster} began"),
        Event::ClassesDescribed(described) => {
            let names: Vec<&str> = described.classes.iter().map(|known| known.class.class.as_str()).collect();
            format!("classes were described: {}; safety margin {}", names.join(", "), described.safety_margin)
        }
        Event::HostsDescribed(described) => format!(
            "the hosts file was replaced: {}, {}",
            plural(described.hosts.len() as u64, "host"),
            plural(described.servers.len() as u64, "server")
        ),
        Event::TokenIssued(token) => format!("token {} was issued for {}", token.name, holder(&token.role)),
        Event::TokenRevoked { name } => format!("token {name} was revoked"),
        Event::AgentSeen { host, mode, abilities } => {
            let mode = match mode {
                AgentMode::Advising => "advises",
                AgentMode::Applying => "applies",
            };
            let proxies = plural(abilities.storage.len() as u64, "server");
            format!("the agent of host {host} reported: it {mode}, and finds a proxy before {proxies}")
        }
        Event::AgentAdvised { host, epoch, text } => {
            format!("the agent of host {host} on assignment {epoch}: {text}")
        }
        Event::AgentWarned { host, warnings } if warnings.is_empty() => {
            format!("the agent of host {host} has no more warnings")
        }
        Event::AgentWarned { host, warnings } => {
            format!("the agent of host {host} warns: {}", warnings.join("; "))
        }
        Event::WorkloadAdmitted(admission) => {
            format!("workload {} was admitted to {}", admission.request.full_name(), admission.change.server)
        }
        Event::WorkloadRefused { request, reason } => {
            format!("workload {} was refused: {reason}", request.full_name())
        }
        Event::WorkloadRenewed(renewal) => {
            format!("workload {} was renewed: {}", renewal.request.full_name(), renewal.reason)
        }
        Event::RenewalRefused { request, reason } => {
            format!("workload {} was not renewed: {reason}", request.full_name())
        }
        Event::WorkloadRemoved { tenant, name, change } => {
            format!("workload {tenant}/{name} was removed from {}", change.server)
        }
        Event::Applied { host, epoch } => format!("host {host} enforces assignment {epoch}"),
        Event::Refused { host, epoch, reason, changes } => {
            let workloads: usize = changes.iter().map(|change| change.workloads.len()).sum();
            let withdrawn = plural(workloads as u64, "workload");
            format!("host {host} refused assignment {epoch}: {reason}; {withdrawn} withdrawn")
        }
        Event::Regressed { host, epoch } => {
            format!(
                "host {host} fell back to assignment {epoch}; what it had confirmed after that does not count"
            )
        }
        Event::VerdictChanged { tenant, name, verdict, reason, .. } => {
            format!("workload {tenant}/{name} is now {}: {reason}", verdict.word())
        }
        Event::BurnChanged { tenant, name, state, reason, .. } => {
            let change = match state {
                AlertState::Firing => "burns its error budget",
                AlertState::Resolved => "burns its error budget less",
            };
            format!("workload {tenant}/{name} {change}: {reason}")
        }
        Event::AlertChanged { reason, .. } => reason.clone(),
        Event::Restored { .. } => {
            "the history was restored from a backup; nothing that hosts confirmed counts".to_owned()
        }
    }
}

fn holder(role: &Role) -> String {
    match role {
        Role::Operator => "an operator".to_owned(),
        Role::Tenant { tenant } => format!("tenant {tenant}"),
        Role::Agent { host } => format!("the agent of host {host}"),
        Role::Metrics => "readers of metrics".to_owned(),
    }
}
