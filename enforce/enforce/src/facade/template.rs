//! A hosts file for a policy, with placeholders for values that the user must fill in.

use crate::deployment::front_protocols;
use model::{Policy, PolicyWorkload};
use operation::marks::MARK;
use operation::text::{host_of, link_rate, toml_comment, toml_string};
use std::collections::BTreeSet;

/// Returns the text of a hosts file with every server and every admitted workload of the policy. Values
/// for the user to fill in are marked `CHANGE`: devices, addresses, and parameters of the proxy before
/// the storage. Names of hosts may stay.
pub fn hosts_template(policy: &Policy) -> String {
    let renamed = if policy.hosts.is_empty() { "Hosts" } else { "Hosts of servers" };
    let mut text = format!(
        "# Where the servers and workloads of the policy are. Replace each {MARK}; docs/reference/hosts-file.md\n\
         # describes every field. {renamed} may have other names; what `hostname` says makes --host unnecessary. Workloads of one host share\n\
         # its [[host]].\n"
    );
    let placed: BTreeSet<&str> = admitted(policy).filter_map(|workload| workload.server.as_deref()).collect();
    for server in policy.servers.iter().filter(|server| placed.contains(server.name.as_str())) {
        let link = link_rate(server.network_bytes_per_s).unwrap_or_else(|| MARK.to_owned());
        text += &server_tables(&server.name, &server.storage_profile, &link);
    }
    for host in &policy.hosts {
        let link = link_rate(host.network_bytes_per_s).unwrap_or_else(|| MARK.to_owned());
        text += &host_table(&host.name, &link);
    }
    for workload in admitted(policy) {
        let host = match &workload.client {
            Some(client) => client.host.clone(),
            None => {
                let host = host_of(&workload.name);
                text += &host_table(&host, MARK);
                host
            }
        };
        text += &client_table(&workload.name, &host);
    }
    for workload in policy.workloads.iter().filter(|workload| !workload.admitted) {
        let name = toml_string(&workload.name);
        text +=
            &format!("\n# {name} is not admitted: its clients are served last, with or without an entry.\n");
    }
    text
}

fn admitted(policy: &Policy) -> impl Iterator<Item = &PolicyWorkload> {
    policy.workloads.iter().filter(|workload| workload.admitted)
}

fn server_tables(name: &str, profile: &str, link: &str) -> String {
    let host = toml_string(&host_of(name));
    let name = toml_string(name);
    let profile = toml_comment(profile);
    let protocols = front_protocols();
    format!(
        "
[[host]]
name = {host}
device = {{ {MARK} = \"{link}\" }} # the device that replies leave by, such as eth0, and what its link carries

[[server]]
name = {name} # as in the policy
host = {host}
address = [\"{MARK}\"] # where clients reach it, such as 10.0.0.9

[server.storage] # the proxy in front of the server; without a proxy delete this table: then limits at storage are not enforced
profile = \"{MARK}\" # the file of the device profile '{profile}', relative to this one
front = [
  {{ protocol = \"{MARK}\", listen = \"{MARK}\", forward = \"{MARK}\" }}, # {protocols}; such as 10.0.0.9; such as 127.0.0.1
]
"
    )
}

fn host_table(name: &str, link: &str) -> String {
    let name = toml_string(name);
    format!(
        "
[[host]]
name = {name}
device = {{ {MARK} = \"{link}\" }} # the device that requests leave by, such as eth0, and what its link carries, such as 1Gbps
"
    )
}

fn client_table(workload: &str, host: &str) -> String {
    let host = toml_string(host);
    let name = toml_string(workload);
    format!(
        "
[[client]]
workload = {name} # as in the policy
host = {host}
address = [\"{MARK}\"] # where its requests come from, such as 10.0.0.1 or 10.0.1.0/24
"
    )
}
