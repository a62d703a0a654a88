//! Checks that a policy can be enforced.
//!
//! A limit has two forms: fractions of a stage's capacity, for people and plans, and absolute units,
//! which are enforced. They may differ only by the rounding of numbers for readers.

use super::enforcement::{CHANNELS_MAX, ServerEnforcement};
use super::error::{PolicyError, ROUNDING};
use super::limit::StageLimit;
use super::workload::{PolicyClient, PolicyHost, PolicyServer, PolicyWorkload};
use crate::{Stage, is_usable_name};
use std::collections::BTreeSet;

/// Refuses servers and workloads that cannot be enforced together.
pub(super) fn check(
    servers: &[PolicyServer],
    hosts: &[PolicyHost],
    workloads: &[PolicyWorkload],
) -> Result<(), PolicyError> {
    let names = servers.iter().map(|server| ("server", &server.name));
    let names = names.chain(hosts.iter().map(|host| ("host", &host.name)));
    let mut names = names.chain(workloads.iter().map(|workload| ("workload", &workload.name)));
    if let Some((what, name)) = names.find(|(_, name)| !is_usable_name(name)) {
        return Err(PolicyError::UnusableName(format!("{what} {name:?}")));
    }
    if let Some(name) = repeated(servers.iter().map(|server| server.name.as_str())) {
        return Err(PolicyError::RepeatedServer(name.to_owned()));
    }
    if let Some(name) = repeated(workloads.iter().map(|workload| workload.name.as_str())) {
        return Err(PolicyError::RepeatedWorkload(name.to_owned()));
    }
    if let Some(name) = repeated(hosts.iter().map(|host| host.name.as_str())) {
        return Err(PolicyError::RepeatedHost(name.to_owned()));
    }
    for host in hosts {
        let place = format!("host '{}'", host.name);
        check_number(&place, "network_bytes_per_s", host.network_bytes_per_s, POSITIVE)?;
    }
    for server in servers {
        let place = format!("server '{}'", server.name);
        check_number(&place, "network_bytes_per_s", server.network_bytes_per_s, POSITIVE)?;
        if let Some(enforcement) = &server.enforcement {
            check_enforcement(&place, enforcement)?;
        }
    }
    workloads.iter().try_for_each(|workload| {
        let server = servers.iter().find(|server| Some(&server.name) == workload.server.as_ref());
        check_workload(workload, server.map(|server| server.network_bytes_per_s))?;
        match &workload.client {
            Some(client) => check_client(workload, client, hosts),
            None if workload.admitted && !hosts.is_empty() => Err(PolicyError::impossible(
                &format!("workload '{}'", workload.name),
                "client",
                "null",
                "its place on the links of one of the policy's hosts",
            )),
            None => Ok(()),
        }
    })
}

/// Returns the first name that occurs a second time.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// A range of numbers with its description; the lower end is included or excluded.
#[derive(Clone, Copy)]
struct NumberRange {
    words: &'static str,
    with_zero: bool,
    max: f64,
}

const POSITIVE: NumberRange = NumberRange { words: "a number above 0", with_zero: false, max: f64::MAX };
const NOT_NEGATIVE: NumberRange = NumberRange { words: "0 or more seconds", with_zero: true, max: f64::MAX };
const NOT_NEGATIVE_BYTES: NumberRange =
    NumberRange { words: "0 or more bytes per second", with_zero: true, max: f64::MAX };
const DURATION: NumberRange =
    NumberRange { words: "seconds, above 0 and at most 1e9", with_zero: false, max: 1e9 };
/// A burst of zero is allowed: such a bucket passes one request after the other at its rate.
const BURST: NumberRange =
    NumberRange { words: "0 or more seconds, and at most 1e9", with_zero: true, max: 1e9 };
const WORK: NumberRange =
    NumberRange { words: "0 or more of the stage's units", with_zero: true, max: f64::MAX };
const FRACTION: NumberRange = NumberRange {
    words: "a fraction of the stage's capacity, above 0 and at most 1",
    with_zero: false,
    max: 1.0,
};

fn check_number(owner: &str, field: &str, value: f64, range: NumberRange) -> Result<(), PolicyError> {
    let is_within = value <= range.max && (value > 0.0 || (range.with_zero && value == 0.0));
    if is_within { Ok(()) } else { Err(PolicyError::impossible(owner, field, value, range.words)) }
}

/// Refuses terms of use that no enforcer can keep, or that leave the device idle.
fn check_enforcement(place: &str, enforcement: &ServerEnforcement) -> Result<(), PolicyError> {
    let owner = format!("{place}: enforcement");
    let ServerEnforcement { channels, outstanding, beside, reserve, .. } = *enforcement;
    for (field, value, is_possible, expected) in [
        ("channels", channels, (1..=CHANNELS_MAX).contains(&channels), "1 to 4096"),
        ("outstanding", outstanding, outstanding >= channels, "at least as many as channels"),
        ("beside", beside, beside <= outstanding, "at most as many as outstanding"),
        // With one request of the higher level more, every channel is busy while a request waits.
        ("beside", beside, beside >= channels.saturating_sub(1), "at least one fewer than channels"),
        ("reserve", reserve, reserve < outstanding, "fewer than outstanding"),
    ] {
        if !is_possible {
            return Err(PolicyError::impossible(&owner, field, value, expected));
        }
    }
    check_number(&owner, "best_effort_request_s", enforcement.best_effort_request_s, NOT_NEGATIVE)?;
    check_number(&owner, "packet_bytes", enforcement.packet_bytes, WORK)?;
    check_number(&owner, "link_burst_s", enforcement.link_burst_s.unwrap_or(0.0), NOT_NEGATIVE)?;
    check_number(&owner, "proxy_s", enforcement.proxy_s, NOT_NEGATIVE)
}

/// Refuses a workload with an unsound promise or limits, on a server with links of this bandwidth, if
/// known.
fn check_workload(workload: &PolicyWorkload, network: Option<f64>) -> Result<(), PolicyError> {
    let owner = format!("workload '{}'", workload.name);
    if workload.admitted {
        let why = "of an admitted workload";
        if workload.server.is_none() {
            return Err(PolicyError::impossible(
                &owner,
                "server",
                "null",
                format_args!("the name of the server {why}"),
            ));
        }
        if workload.priority.is_none() {
            let expected = format!("the priority {why}, 0 or more");
            return Err(PolicyError::impossible(&owner, "priority", "null", expected));
        }
    }
    if let Some(bound) = workload.bound_s {
        check_number(&owner, "bound_s", bound, NOT_NEGATIVE)?;
    }
    for (number, further) in workload.further_slos.iter().enumerate() {
        if let Some(bound) = further.bound_s {
            check_number(&format!("{owner}: further_slos[{number}]"), "bound_s", bound, NOT_NEGATIVE)?;
        }
    }
    if let Some(seconds) = workload.largest_request {
        check_number(&owner, "largest_request", seconds, DURATION)?;
    }
    if let Some(bytes) = workload.densest_answer {
        check_number(&owner, "densest_answer", bytes, NOT_NEGATIVE_BYTES)?;
    }
    for (number, limit) in workload.limits.iter().enumerate() {
        let capacity = if limit.stage == Stage::Storage { Some(1.0) } else { network };
        check_limit(&format!("{owner}: limits[{number}] at {}", limit.stage), limit, capacity)?;
    }
    Ok(())
}

/// Refuses a place on the links of a host that the policy does not have, limits that it cannot enforce, and delays that the
/// bound does not contain.
fn check_client(
    workload: &PolicyWorkload,
    client: &PolicyClient,
    hosts: &[PolicyHost],
) -> Result<(), PolicyError> {
    let owner = format!("workload '{}': client", workload.name);
    let Some(host) = hosts.iter().find(|host| host.name == client.host) else {
        return Err(PolicyError::impossible(&owner, "host", &client.host, "one of the policy's hosts"));
    };
    check_number(&owner, "request_delay_s", client.request_delay_s, NOT_NEGATIVE)?;
    check_number(&owner, "answer_delay_s", client.answer_delay_s, NOT_NEGATIVE)?;
    let delays = client.request_delay_s + client.answer_delay_s;
    if let Some(bound) = workload.bound_s.filter(|bound| delays > bound * (1.0 + ROUNDING)) {
        let field = "request_delay_s + answer_delay_s";
        let expected = format_args!("at most the bound_s of the workload, {bound}, which contains them");
        return Err(PolicyError::impossible(&owner, field, delays, expected));
    }
    for (number, limit) in client.limits.iter().enumerate() {
        let owner = format!("{owner}: limits[{number}] at {}", limit.stage);
        if limit.stage == Stage::Storage {
            return Err(PolicyError::impossible(&owner, "stage", limit.stage, "network-in or network-out"));
        }
        check_limit(&owner, limit, Some(host.network_bytes_per_s))?;
    }
    for stage in [Stage::NetworkIn, Stage::NetworkOut] {
        if client.limits.iter().all(|limit| limit.stage != stage) {
            let expected = format_args!("a limit at {stage}, which the bounds of others count");
            return Err(PolicyError::impossible(&owner, "limits", "without one", expected));
        }
    }
    Ok(())
}

/// Refuses a limit that no stage can enforce, or whose two forms differ at a stage of this capacity.
fn check_limit(owner: &str, limit: &StageLimit, capacity: Option<f64>) -> Result<(), PolicyError> {
    check_number(owner, "rate", limit.limit.rate, FRACTION)?;
    check_number(owner, "burst", limit.limit.burst, BURST)?;
    check_number(owner, "rate_per_s", limit.rate_per_s, POSITIVE)?;
    check_number(owner, "burst_work", limit.burst_work, WORK)?;
    check_number(owner, "allowance", limit.allowance, BURST)?;
    check_number(owner, "allowance_work", limit.allowance_work, WORK)?;
    let Some(capacity) = capacity else { return Ok(()) };
    check_same(owner, "rate_per_s", limit.rate_per_s, "rate", limit.limit.rate, capacity)?;
    check_same(owner, "burst_work", limit.burst_work, "burst", limit.limit.burst, capacity)?;
    check_same(owner, "allowance_work", limit.allowance_work, "allowance", limit.allowance, capacity)
}

/// Refuses an absolute value that differs from the relative one times the capacity.
fn check_same(
    owner: &str,
    field: &str,
    absolute: f64,
    relative_field: &str,
    relative: f64,
    capacity: f64,
) -> Result<(), PolicyError> {
    let expected = relative * capacity;
    if (absolute - expected).abs() <= ROUNDING * absolute.max(expected) {
        return Ok(());
    }
    let expected = format!("{expected}, which is {relative_field} times the capacity of {capacity}");
    Err(PolicyError::impossible(owner, field, absolute, expected))
}
