//! The conditions under which the hosts of a deployment run the servers of a policy.

use crate::deployment::DeploymentHost;
use crate::facade::hosts_file::HostsFile;
use crate::network;
use crate::storage::storage_conditions;
use model::{Condition, OperationError, Policy, ServerConditions};
use operation::ServerRun;
use std::path::Path;
use workload::device::StorageProfile;
use workload::profile_file::{profile_hash, read_profile};

/// Returns the conditions that the hosts file and its profiles state for the servers of a policy.
/// `packet_bytes` is the largest packet of the shaped devices, if known. A device profile on another
/// machine cannot be read here and is not compared; the proxy there compares it.
pub fn server_runs(policy: &Policy, hosts: &HostsFile, packet_bytes: Option<u64>) -> Vec<ServerRun> {
    let mut runs = Vec::new();
    for server in &policy.servers {
        let Some(place) = hosts.deployment.servers.iter().find(|place| place.name == server.name) else {
            continue;
        };
        let mut conditions = ServerConditions::default()
            .with(Condition::Packet, packet_bytes.map(|bytes| bytes as f64))
            .with(Condition::Network, slowest_link(policy, hosts, &server.name));
        if let Some(storage) = &place.storage {
            let path = hosts.path.parent().unwrap_or(Path::new("")).join(&storage.profile);
            let profile = read_profile(&path).ok();
            conditions = conditions.or(&storage_conditions(
                storage,
                policy.enforcement_of(&server.name),
                profile.as_ref(),
            ));
            conditions = with_profile_hash(conditions, profile.as_ref());
        }
        runs.push(ServerRun { server: server.name.clone(), conditions });
    }
    runs
}

/// Adds the hash of a profile's content to the conditions.
pub(super) fn with_profile_hash(
    conditions: ServerConditions,
    profile: Option<&StorageProfile>,
) -> ServerConditions {
    conditions.with(Condition::ProfileContent, profile.map(profile_hash).as_deref())
}

/// Refuses a client host of this machine whose device reports a lower speed than the policy's bounds count. The rates of
/// the hosts file are compared where limits are translated.
///
/// # Errors
/// The first such device, with both rates.
pub(super) fn check_client_links(policy: &Policy, hosts: &HostsFile) -> Result<(), OperationError> {
    for counted in &policy.hosts {
        let Some(host) = hosts.deployment.host(&counted.name) else { continue };
        if host.netns.is_some() || !is_this_machine(host) {
            continue;
        }
        for name in host.device.keys() {
            let Some(speed) = machine::identity::device_speed(name) else { continue };
            if speed < counted.network_bytes_per_s {
                return Err(OperationError::input(format_args!(
                    "{} {name}: bounds count links of {:.0} bytes/s, and the device reports {speed:.0}",
                    counted.name, counted.network_bytes_per_s
                ))
                .hint("correct `network` of the host in the cluster file and plan again"));
            }
        }
    }
    Ok(())
}

/// Returns the bandwidth of the slowest link between a server and the clients of its workloads, bytes per
/// second, without those of client hosts that the policy counts. Sources are the hosts file and the speeds that this
/// machine's devices report.
fn slowest_link(policy: &Policy, hosts: &HostsFile, server: &str) -> Option<f64> {
    let deployment = &hosts.deployment;
    let place = deployment.servers.iter().find(|place| place.name == server)?;
    let placed = policy.workloads.iter().filter(|workload| workload.server.as_deref() == Some(server));
    let clients = placed
        .filter(|workload| workload.client.is_none())
        .flat_map(|workload| deployment.clients.iter().filter(|at| at.workload == workload.name));
    let ends = clients.map(|client| (client.host.as_str(), client.device.as_deref()));
    let mut rates = Vec::new();
    for (host, device) in ends.chain([(place.host.as_str(), place.device.as_deref())]) {
        let Some(host) = deployment.host(host) else { continue };
        for (name, rate) in &host.device {
            if device.is_some_and(|device| device != name) {
                continue;
            }
            rates.push(rate.bytes_per_sec());
            // Devices of a network namespace are not in this sysfs.
            if host.netns.is_none() && is_this_machine(host) {
                rates.extend(machine::identity::device_speed(name));
            }
        }
    }
    rates.into_iter().min_by(f64::total_cmp)
}

fn is_this_machine(host: &DeploymentHost) -> bool {
    network::is_local(host, &machine::identity::host_name().unwrap_or_default())
}
