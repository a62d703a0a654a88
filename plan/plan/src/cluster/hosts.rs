//! Hosts of clients in a cluster file: what is contradictory in them.

use crate::cluster::rules::{RuleSite, SitedError};
use model::{ClientHost, Cluster, NAME_EXPECTED, ServerClass, is_usable_name};
use operation::text::meant_word;

/// The smallest packet that a link can be said to send: the smallest frame of an Ethernet.
pub(super) const PACKET_MIN: u64 = 64;

/// Counts the largest packet of the file at every link, if there are client hosts: a bucket may be in debt by a packet of
/// the host that shapes it, and a switch passes the debts on to the next link, whatever packets that one sends.
pub(super) fn count_largest_packet(classes: &mut [ServerClass], hosts: &mut [ClientHost]) {
    let Some(of_hosts) = hosts.iter().map(|host| host.packet).max() else { return };
    let largest = classes.iter().map(|class| class.packet).fold(of_hosts, Ord::max);
    classes.iter_mut().for_each(|class| class.packet = largest);
    hosts.iter_mut().for_each(|host| host.packet = largest);
}

/// Checks that every workload is on a host of the file, if it has hosts.
pub(super) fn check_hosts(cluster: &Cluster) -> Result<(), SitedError> {
    for (index, host) in cluster.hosts.iter().enumerate() {
        let name = &host.name;
        let at = RuleSite::Host(index);
        if !is_usable_name(name) {
            return Err((at, format!("host {name:?}: {NAME_EXPECTED}")));
        }
        if cluster.hosts[..index].iter().any(|other| other.name == *name) {
            return Err((at, format!("host '{name}' is given twice; expected unique names")));
        }
        if host.packet.0 < PACKET_MIN {
            let packet = host.packet;
            return Err((at, format!("host '{name}': packet is {packet}, expected at least {PACKET_MIN}B")));
        }
    }
    for (index, workload) in cluster.workloads.iter().enumerate() {
        let name = &workload.name;
        let known = cluster.hosts.iter().map(|host| host.name.as_str());
        let problem = match &workload.host {
            None if cluster.hosts.is_empty() => continue,
            Some(host) if known.clone().any(|name| name == host) => continue,
            None => format!(
                "workload '{name}' has no `host`: expected one of the file, because the bounds of all workloads count \
                 the links of their hosts where some do"
            ),
            Some(host) => {
                let meant = meant_word(host, known);
                format!(
                    "workload '{name}': host is '{host}', which is no [[host]] of the file: expected the name of one, \
                     with its `network`{meant}"
                )
            }
        };
        return Err((RuleSite::Workload(index), problem));
    }
    Ok(())
}
