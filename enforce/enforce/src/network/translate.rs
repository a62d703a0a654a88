//! Translates a policy and a deployment into the desired state of every device: traffic classes with a level of
//! priority, token buckets and matches.
//!
//! Limits at network-in are enforced where requests leave the clients, those at network-out where replies
//! leave the server. Traffic is thus held back at its source, before it shares a link (thesis §2.2.2:
//! each end host prioritises and limits its own traffic, and switches follow the marks). Traffic without
//! a workload goes last, unlimited.
//!
//! Not covered: clients that the deployment does not name. Their packets have no mark and go last at
//! switches, but no limit applies to them.

use super::desired::{DesiredDevice, DesiredHost, DesiredNetwork, TrafficClass};
use super::levels::PriorityLevels;
use super::packet_match::PacketMatch;
use super::route::{HostDevice, Route};
use crate::deployment::{Deployment, DeploymentHost, DeploymentServer, PacketFilters, all_at_once};
use model::PRIORITY_LEVELS;
use model::{OperationError, Policy, PolicyWorkload, Stage};
use std::collections::BTreeMap;
use units::ByteRate;

/// Relative tolerance of comparisons, for sums of rounded rates.
const TOLERANCE: f64 = 1e-9;

/// Maximum rate and burst, in bytes per second and bytes, within the safe range of tc's arithmetic.
const BYTES_MAX: f64 = 1e18;

type ClassesByDevice<'a> = BTreeMap<HostDevice<'a>, Vec<TrafficClass>>;

/// Returns the desired state of the hosts of `deployment` under `policy`.
///
/// # Errors
/// When policy and deployment contradict each other, or traffic of two workloads is indistinguishable.
pub fn desired_network(policy: &Policy, deployment: &Deployment) -> Result<DesiredNetwork, OperationError> {
    let levels = PriorityLevels::new(policy);
    let mut warnings = levels.warnings(policy);
    let mut classes = ClassesByDevice::new();
    for route in routes(policy, deployment)? {
        let workload = route.workload();
        warnings.extend(route.warnings(deployment));
        warnings.extend(storage_warning(workload, deployment));
        for (device, class) in route.classes(&levels, deployment)? {
            classes.entry(device).or_default().push(class);
        }
    }
    // A device may carry the traffic of several servers.
    let bursts = policy.servers.iter().filter_map(|server| server.enforcement?.link_burst_s);
    let burst_s = bursts.min_by(f64::total_cmp);
    let hosts: Vec<DesiredHost> =
        deployment.hosts.iter().map(|host| desired_host(host, &classes, deployment, burst_s)).collect();
    for host in &hosts {
        check_capacity(host, policy)?;
        check_distinguishable(host)?;
        check_expressible(host)?;
        warnings.extend(host_warnings(host));
    }
    let mut overloads: Vec<String> = hosts.iter().flat_map(overloads).collect();
    overloads.extend(servers_on_client_hosts(policy, deployment));
    Ok(DesiredNetwork { hosts, warnings, overloads })
}

/// Returns the routes of all admitted workloads.
///
/// # Errors
/// When the deployment is incomplete; the error lists everything missing.
fn routes<'a>(policy: &'a Policy, deployment: &'a Deployment) -> Result<Vec<Route<'a>>, OperationError> {
    let mut routes = Vec::new();
    let mut errors = Vec::new();
    for workload in policy.workloads.iter().filter(|workload| workload.admitted) {
        match Route::new(workload, deployment) {
            Ok(route) => routes.push(route),
            Err(_) => errors.extend(Route::mistakes(workload, deployment)),
        }
    }
    if errors.len() < 2 {
        return errors.pop().map_or(Ok(routes), Err);
    }
    let messages: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
    let hint = "`tailwright apply --template POLICY.json` prints a hosts file that has all of them";
    Err(all_at_once(&messages).hint(hint))
}

fn desired_host(
    host: &DeploymentHost,
    classes: &ClassesByDevice<'_>,
    deployment: &Deployment,
    burst_s: Option<f64>,
) -> DesiredHost {
    let mut devices = Vec::new();
    for (name, rate) in &host.device {
        let classes = if host.switch {
            (0..PRIORITY_LEVELS).map(|level| switch_class(level, deployment.dscp[level])).collect()
        } else if let Some(classes) = classes.get(&(host.name.as_str(), name.as_str())) {
            classes.clone()
        } else {
            continue;
        };
        let link_bytes_per_s = rate.bytes_per_sec();
        devices.push(DesiredDevice { name: name.clone(), link_bytes_per_s, burst_s, classes });
    }
    DesiredHost { host: host.clone(), devices }
}

/// Returns the class of one level at a switch, which recognises its packets by the mark that their sender
/// set.
fn switch_class(level: usize, dscp: u8) -> TrafficClass {
    let matches = [false, true].map(|ipv6| PacketMatch { dscp: Some(dscp), ..PacketMatch::any(ipv6) });
    TrafficClass {
        name: format!("level {level}"),
        level,
        buckets: Vec::new(),
        matches: matches.to_vec(),
        mark: None,
    }
}

/// Refuses a host whose links are slower than the policy's bounds count.
fn check_capacity(host: &DesiredHost, policy: &Policy) -> Result<(), OperationError> {
    let counted = policy.hosts.iter().find(|counted| counted.name == host.host.name);
    for device in &host.devices {
        let place = format!("{} {}", host.host.name, device.name);
        let link = rate(device.link_bytes_per_s);
        if let Some(counted) = counted
            && device.link_bytes_per_s < counted.network_bytes_per_s * (1.0 - TOLERANCE)
        {
            let counted = rate(counted.network_bytes_per_s);
            return Err(OperationError::input(format_args!(
                "{place}: bounds count links of {counted}, and the hosts file says that it has {link}"
            ))
            .hint("correct the hosts file, or `network` of the host in the cluster file and plan again"));
        }
    }
    Ok(())
}

/// Returns a rate for people.
fn rate(bytes_per_s: f64) -> String {
    ByteRate::from_bytes_per_sec(bytes_per_s)
        .map_or_else(|| format!("{bytes_per_s:e} bytes/s"), |rate| rate.to_string())
}

/// Refuses a host on which a packet may belong to two classes, or whose filters cannot express a match.
fn check_distinguishable(host: &DesiredHost) -> Result<(), OperationError> {
    for device in &host.devices {
        let place = format!("{} {}", host.host.name, device.name);
        let mut owners: BTreeMap<&PacketMatch, &str> = BTreeMap::new();
        for class in &device.classes {
            for packets in &class.matches {
                if let Some(other) = owners.insert(packets, &class.name).filter(|other| *other != class.name)
                {
                    return Err(OperationError::input(format_args!(
                        "{place}: traffic of {other} and of {} looks the same: {}",
                        class.name,
                        packets.nft_expression()
                    ))
                    .hint("tell them apart by address, port, server_port, dscp or (for requests) cgroup"));
                }
                if host.host.filters == PacketFilters::Tc && packets.u32_expression().is_none() {
                    return Err(OperationError::input(format_args!(
                        "{place}: filters = \"tc\" cannot tell the cgroup of {}",
                        class.name
                    ))
                    .hint("use filters = \"nft\", or an address or port"));
                }
            }
        }
    }
    Ok(())
}

/// Refuses rates and bursts outside the range of tc, which would silently use the nearest value.
fn check_expressible(host: &DesiredHost) -> Result<(), OperationError> {
    for device in &host.devices {
        let place = format!("{} {}", host.host.name, device.name);
        let mut numbers = vec![("the link", device.link_bytes_per_s)];
        for class in &device.classes {
            for bucket in &class.buckets {
                numbers.push((class.name.as_str(), bucket.rate_bytes_per_s));
                // A bucket without a burst still passes a frame.
                numbers.push((class.name.as_str(), bucket.burst_bytes.max(1.0)));
            }
        }
        if let Some((name, number)) =
            numbers.iter().find(|(_, number)| !(*number > 0.0 && *number <= BYTES_MAX))
        {
            return Err(OperationError::input(format_args!(
                "{place}: {name}: tc does not accept a rate or burst of {number:e} bytes"
            ))
            .hint("above 0 and at most 1e18"));
        }
    }
    Ok(())
}

/// Warns that limits at the storage stage are not enforced if no proxy stands before the workload's
/// server.
fn storage_warning(workload: &PolicyWorkload, deployment: &Deployment) -> Option<String> {
    let server = deployment.servers.iter().find(|server| Some(&server.name) == workload.server.as_ref())?;
    let has_limits = workload.limits.iter().any(|limit| limit.stage == Stage::Storage);
    (has_limits && server.storage.is_none()).then(|| {
        format!(
            "{}: its limits at storage are not enforced: server {} has no [server.storage], so no proxy",
            workload.name, server.name
        )
    })
}

fn host_warnings(host: &DesiredHost) -> Vec<String> {
    let mut warnings = Vec::new();
    if host.host.filters == PacketFilters::Tc && !host.host.switch && !host.devices.is_empty() {
        warnings
            .push(format!("{}: filters = \"tc\" sets no DSCP marks: switches serve it last", host.host.name));
    }
    warnings
}

/// Says of each device whose limits let more pass than its link sends that they do.
fn overloads(host: &DesiredHost) -> Vec<String> {
    let mut overloads = Vec::new();
    for device in &host.devices {
        let total: f64 = device.classes.iter().filter_map(sustained_rate).sum();
        if total > device.link_bytes_per_s * (1.0 + TOLERANCE) {
            overloads.push(format!(
                "{} {}: limits add up to {}, and the link has {}: no bound holds for workloads that use them",
                host.host.name,
                device.name,
                rate(total),
                rate(device.link_bytes_per_s)
            ));
        }
    }
    overloads
}

/// Names the servers whose answers leave by links that bounds count for the clients of a host alone.
fn servers_on_client_hosts(policy: &Policy, deployment: &Deployment) -> Vec<String> {
    let is_counted = |name: &str| policy.hosts.iter().any(|host| host.name == name);
    let is_used =
        |name: &str| policy.workloads.iter().any(|workload| workload.server.as_deref() == Some(name));
    let servers =
        deployment.servers.iter().filter(|server| is_counted(&server.host) && is_used(&server.name));
    let said = |server: &DeploymentServer| {
        format!(
            "server '{}' is on host '{}', whose links the bounds count for its clients alone: no bound holds for them",
            server.name, server.host
        )
    };
    servers.map(said).collect()
}

/// Returns the long-run rate of a class in bytes per second; `None` if nothing limits it.
fn sustained_rate(class: &TrafficClass) -> Option<f64> {
    class.buckets.iter().map(|bucket| bucket.rate_bytes_per_s).min_by(f64::total_cmp)
}
