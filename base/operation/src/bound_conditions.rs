//! Checks that the bounds of a policy apply to a run, for every kind of run: simulation, hosts, proxy,
//! verification.
//!
//! If a server is used in another way than its bounds assume, and in the unsafe direction, a run would appear
//! to keep a promise that was never made. It is refused, unless the user requests a run without bounds; then
//! the first line of the answer says that bounds do not apply.

use crate::observer::{Notice, ProgressObserver};
use model::{Condition, ConditionDifference, OperationError, Policy, Safety, ServerConditions};
use std::collections::BTreeSet;

/// The conditions under which a server of a policy runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerRun {
    /// The name that the server has in the policy.
    pub server: String,
    /// Known conditions of the run.
    pub conditions: ServerConditions,
}

/// The servers of a run to which the bounds of a policy do not apply.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokenBounds {
    /// First line of the answer.
    pub sentence: String,
    servers: BTreeSet<String>,
}

impl BrokenBounds {
    /// Returns true if the bounds of the workloads on this server do not apply.
    pub fn concern(&self, server: &str) -> bool {
        self.servers.contains(server)
    }
}

/// Compares the runs of servers with the assumptions of a policy's bounds. Returns the servers to which bounds
/// do not apply: `without_bounds` accepts that, or the document is of a version whose bounds do not hold. Such
/// documents are accepted so that their enforcement continues.
///
/// # Errors
///
/// When bounds do not apply and `without_bounds` is not set.
pub fn check_conditions(
    policy: &Policy,
    runs: &[ServerRun],
    without_bounds: bool,
    observer: &dyn ProgressObserver,
) -> Result<Option<BrokenBounds>, OperationError> {
    let mut broken: Vec<String> = Vec::new();
    let mut servers: BTreeSet<String> = BTreeSet::new();
    let mut remedies: Vec<String> = Vec::new();
    for ServerRun { server, conditions } in runs.iter().filter(|run| policy.promises_on(&run.server)) {
        let differences = policy.assumed_conditions(server).differences(conditions);
        let of = |safety| differences.iter().filter(move |difference| difference.safety == safety);
        for difference in of(Safety::Unsafe) {
            broken.push(format!("server '{server}': {difference}"));
            servers.insert(server.clone());
            let remedy = difference.remedy();
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        // The profile's content identifies it better than its name.
        let is_named = policy.assumed_conditions(server).get(Condition::ProfileContent).is_some();
        let unstated = of(Safety::NotStated)
            .filter(|difference| !is_named || difference.row.condition != Condition::ProfileName);
        note_unstated(server, unstated, observer);
        for difference in
            of(Safety::Safe).filter(|difference| difference.row.condition == Condition::Channels)
        {
            observer.notice(Notice::Note(format!("server '{server}': {difference}")));
        }
    }
    let outdated = outdated_bounds(policy, runs.iter().map(|run| run.server.as_str()));
    if broken.is_empty() && outdated.is_none() {
        return Ok(None);
    }
    let is_refused = !broken.is_empty() && !without_bounds;
    broken.extend(outdated);
    let names = runs.iter().map(|run| &run.server);
    servers.extend(names.filter(|server| has_outdated_promises(policy, server)).cloned());
    let mut sentence = format!("bounds do not apply: {}", broken.join("; "));
    if !is_refused {
        let others = policy.workloads.iter().filter(|workload| {
            let is_run = |server: &str| runs.iter().any(|run| run.server == server);
            let server = workload.server.as_deref().filter(|server| is_run(server));
            workload.bound_s.is_some() && server.is_some_and(|server| !servers.contains(server))
        });
        match others.count() {
            0 => {}
            1 => sentence += "; the bound of the workload on another server does",
            count => sentence += &format!("; those of the {count} workloads on other servers do"),
        }
        return Ok(Some(BrokenBounds { sentence, servers }));
    }
    remedies.push("or --without-bounds, whose answer says that bounds do not apply".to_owned());
    Err(OperationError::input(sentence).hint(remedies.join("; ")))
}

/// Returns a sentence about those of the servers whose bounds do not hold for all traffic within the limits,
/// because the document's version includes the enforcers' allowance in its limits.
pub fn outdated_bounds<'a>(policy: &Policy, servers: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let outdated = servers.into_iter().filter(|server| has_outdated_promises(policy, server));
    let names: Vec<String> = outdated.map(|server| format!("'{server}'")).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "server {}: the policy is of version 1, whose limits for devices with several channels contain what enforcers allow \
         beyond them, so that traffic within the limits may exceed its bound; `tailwright plan -o policy.json` writes a \
         new one",
        names.join(", ")
    ))
}

/// Returns true if the policy promises latencies on this server that do not hold for all traffic within the limits.
fn has_outdated_promises(policy: &Policy, server: &str) -> bool {
    policy.promises_on(server) && policy.has_outdated_bounds(server)
}

/// Notes in one line the assumptions of the bounds that a policy does not state.
fn note_unstated<'a>(
    server: &str,
    differences: impl Iterator<Item = &'a ConditionDifference>,
    observer: &dyn ProgressObserver,
) {
    let names: Vec<&str> = differences.map(|difference| difference.row.name).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        observer.notice(Notice::Note(format!(
            "server '{server}': not stated in this policy, and not compared: {names}"
        )));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;
    use model::{PerStage, PolicyPlacement, PolicyServer, PolicyWorkload, ServerEnforcement};

    fn policy(bound_s: Option<f64>) -> Policy {
        let enforcement = ServerEnforcement {
            channels: 2,
            outstanding: 2,
            beside: 1,
            reserve: 0,
            best_effort_request_s: 0.005,
            packet_bytes: 65536.0,
            link_burst_s: None,
            proxy_s: 0.0,
        };
        let server = PolicyServer {
            name: "ssd".into(),
            class: "ssd".into(),
            network_bytes_per_s: 1e8,
            storage_profile: "flash".into(),
            storage_profile_hash: Some("a".into()),
            enforcement: Some(enforcement),
        };
        let priority = PerStage::default();
        let placement = PolicyPlacement { server: "ssd".into(), priority, bound_s, limits: Vec::new() };
        let workload = PolicyWorkload::admitted("mail", "99% < 1s".parse().expect("an SLO"), placement);
        Policy::new("tailwright", vec![server], vec![workload]).expect("it is sound")
    }

    fn run(conditions: ServerConditions) -> [ServerRun; 1] {
        [ServerRun { server: "ssd".into(), conditions }]
    }

    #[test]
    fn unsafe_runs_are_refused_or_said_in_the_first_line() {
        let sixteen = run(ServerConditions::default().with(Condition::Channels, Some(16_u32)));
        let refused =
            check_conditions(&policy(Some(0.1)), &sixteen, false, &Silent).expect_err("16 are more than 2");
        assert!(
            refused.message.starts_with("bounds do not apply: server 'ssd': channels: 16"),
            "{}",
            refused.message
        );
        let hint = refused.hint.expect("a remedy");
        assert!(hint.contains("--channels 16") && hint.contains("--without-bounds"), "{hint}");
        let said = check_conditions(&policy(Some(0.1)), &sixteen, true, &Silent).expect("it is accepted");
        assert!(said.is_some_and(|said| said.sentence.starts_with("bounds do not apply: ")));
        // Without a promise there is nothing to break.
        assert_eq!(check_conditions(&policy(None), &sixteen, false, &Silent), Ok(None));
    }

    #[test]
    fn bounds_of_version_1_do_not_apply_to_several_channels() {
        let mut document = serde_json::to_value(policy(Some(0.1))).expect("JSON");
        document["version"] = 1.into();
        let read = |document: &serde_json::Value| Policy::from_json(&document.to_string()).expect("a policy");
        let two = run(ServerConditions::default().with(Condition::Channels, Some(2_u32)));
        let said = check_conditions(&read(&document), &two, false, &Silent).expect("it is accepted");
        let said = said.expect("bounds do not apply");
        assert!(said.sentence.starts_with("bounds do not apply: "), "{}", said.sentence);
        assert!(said.sentence.contains("version 1") && said.concern("ssd"), "{}", said.sentence);
        document["servers"][0]["enforcement"]["channels"] = 1.into();
        let one = run(ServerConditions::default().with(Condition::Channels, Some(1_u32)));
        assert_eq!(check_conditions(&read(&document), &one, false, &Silent), Ok(None));
    }

    #[test]
    fn bounds_on_other_servers_apply() {
        let mut two = policy(Some(0.1));
        let mut other = two.servers[0].clone();
        other.name = "other".into();
        two.servers.push(other);
        let mut web = two.workloads[0].clone();
        (web.name, web.server) = ("web".into(), Some("other".into()));
        two.workloads.push(web);
        let of = |server: &str, channels: u32| ServerRun {
            server: server.into(),
            conditions: ServerConditions::default().with(Condition::Channels, Some(channels)),
        };
        let runs = [of("ssd", 16), of("other", 2)];
        let broken =
            check_conditions(&two, &runs, true, &Silent).expect("it is accepted").expect("16 channels");
        assert!(broken.concern("ssd") && !broken.concern("other"));
        assert!(
            broken.sentence.ends_with("; the bound of the workload on another server does"),
            "{broken:?}"
        );
        let refused = check_conditions(&two, &runs, false, &Silent).expect_err("16 channels").message;
        assert!(!refused.contains("another server"), "{refused}");
        // The other server is not a part of this run.
        let broken = check_conditions(&two, &runs[..1], true, &Silent).expect("it is accepted");
        assert!(broken.is_some_and(|broken| !broken.sentence.contains("another server")));
    }

    #[test]
    fn safe_runs_are_accepted() {
        let one = run(ServerConditions::default().with(Condition::Channels, Some(1_u32)));
        assert_eq!(check_conditions(&policy(Some(0.1)), &one, false, &Silent), Ok(None));
        assert_eq!(check_conditions(&policy(Some(0.1)), &[], false, &Silent), Ok(None));
    }
}
