//! The traffic classes that the requests and replies of an admitted workload need on the devices of hosts.
//!
//! Requests are limited on every outgoing device of clients, replies on the outgoing device of the
//! server. Devices cannot share a token bucket, so a workload with clients on several devices divides its
//! limits by the shares in the deployment.

use super::desired::{FrameBucket, TrafficClass};
use super::levels::PriorityLevels;
use super::packet_match::PacketMatch;
use crate::address::AddressPrefix;
use crate::deployment::{Deployment, DeploymentClient, DeploymentServer};
use model::{OperationError, PolicyWorkload, Stage};
use std::collections::BTreeMap;
use units::plural;

/// Device of a host's traffic to itself.
const LOOPBACK: &str = "lo";

/// Names of a host and of one of its devices.
pub(super) type HostDevice<'a> = (&'a str, &'a str);

/// An admitted workload, its server, and its clients.
pub(super) struct Route<'a> {
    workload: &'a PolicyWorkload,
    server: &'a DeploymentServer,
    clients: Vec<&'a DeploymentClient>,
}

/// Returns the server of a workload.
fn server_of<'a>(
    workload: &PolicyWorkload,
    deployment: &'a Deployment,
) -> Result<&'a DeploymentServer, OperationError> {
    let at = workload.server.as_deref().unwrap_or_default();
    deployment.servers.iter().find(|server| server.name == at).ok_or_else(|| {
        let name = &workload.name;
        OperationError::input(format_args!(
            "the policy places {name} on '{at}', which is no [[server]] of the hosts file"
        ))
        .hint("add it, with its host and addresses")
    })
}

/// Returns the clients of a workload, at least one.
fn clients_of<'a>(
    workload: &PolicyWorkload,
    deployment: &'a Deployment,
) -> Result<Vec<&'a DeploymentClient>, OperationError> {
    let clients: Vec<&DeploymentClient> =
        deployment.clients.iter().filter(|client| client.workload == workload.name).collect();
    if clients.is_empty() {
        let name = &workload.name;
        let message = format!("{name} is admitted, but the hosts file has no [[client]] of it");
        return Err(OperationError::input(message).hint(
            "add where its requests come from: without limits on them no workload on its server has a guarantee",
        ));
    }
    Ok(clients)
}

impl<'a> Route<'a> {
    /// Finds server and clients of a workload.
    ///
    /// # Errors
    /// When the deployment does not name them, or their addresses are of different versions of IP.
    pub(super) fn new(
        workload: &'a PolicyWorkload,
        deployment: &'a Deployment,
    ) -> Result<Self, OperationError> {
        let server = server_of(workload, deployment)?;
        let clients = clients_of(workload, deployment)?;
        let name = &workload.name;
        let at = &server.name;
        let route = Self { workload, server, clients };
        route.check_host(deployment)?;
        match route.clients.iter().find(|client| route.matches(client, Stage::NetworkIn).is_empty()) {
            Some(client) => Err(OperationError::input(format_args!(
                "{name} on {} and server {at} have no addresses of the same version of IP",
                client.host
            ))
            .hint("give both an IPv4 or both an IPv6 address")),
            None => Ok(route),
        }
    }

    /// Checks that requests come from the host whose links the bound counts.
    fn check_host(&self, deployment: &Deployment) -> Result<(), OperationError> {
        let Some(counted) = &self.workload.client else { return Ok(()) };
        let name = &self.workload.name;
        let devices = self.clients_by_device(deployment);
        if let Some((host, _)) = devices.keys().find(|(host, _)| *host != counted.host) {
            return Err(OperationError::input(format_args!(
                "the bound of {name} counts the links of host '{}', but the hosts file has a client of it on '{host}'",
                counted.host
            ))
            .hint(format!("change the `host` of the workload in the cluster file to '{host}' and plan again, or that of the client")));
        }
        if devices.len() > 1 {
            return Err(OperationError::input(format_args!(
                "the bound of {name} counts one link out of host '{}', but the hosts file has clients of it on {}",
                counted.host,
                plural(devices.len(), "device")
            ))
            .hint("give all of them one device"));
        }
        Ok(())
    }

    /// Returns everything that the deployment lacks for a workload.
    pub(super) fn mistakes(workload: &PolicyWorkload, deployment: &Deployment) -> Vec<OperationError> {
        let server = server_of(workload, deployment).err();
        let clients = clients_of(workload, deployment).err();
        let missing: Vec<OperationError> = server.into_iter().chain(clients).collect();
        if missing.is_empty() {
            Route::new(workload, deployment).err().into_iter().collect()
        } else {
            missing
        }
    }

    /// Returns the workload of this route.
    pub(super) fn workload(&self) -> &'a PolicyWorkload {
        self.workload
    }

    /// Returns warnings about ineffective limits and priorities: none of their packets leaves by the
    /// device that enforces them.
    pub(super) fn warnings(&self, deployment: &Deployment) -> Vec<String> {
        let place = |host: &str, device: Option<&str>| {
            let (host, device) = deployment.device(host, device).expect("a deployment is checked");
            (host.name.clone(), device.to_owned())
        };
        let at = place(&self.server.host, self.server.device.as_deref());
        let is_beside_server = |client: &DeploymentClient| {
            at.1 != LOOPBACK && place(&client.host, client.device.as_deref()) == at
        };
        let mut warnings = Vec::new();
        if self.clients.iter().any(|client| is_beside_server(client)) {
            warnings.push(format!(
                "{}: its limits and priority at network-in cannot take effect: the hosts file has a client of it on {}, \
                 where server {} is, and requests do not leave that host by {}; give the client the host that sends them",
                self.workload.name, at.0, self.server.name, at.1,
            ));
        }
        warnings
    }

    /// Returns the traffic classes of the workload: one on each outgoing device of its clients, and one
    /// for the replies on the server's device.
    ///
    /// # Errors
    /// When clients are on several devices and the deployment does not divide the limits among them.
    pub(super) fn classes(
        &self,
        levels: &PriorityLevels,
        deployment: &'a Deployment,
    ) -> Result<Vec<(HostDevice<'a>, TrafficClass)>, OperationError> {
        let mut classes = Vec::new();
        for (device, clients) in self.clients_by_device(deployment) {
            let share = self.share(&clients)?;
            let matches = clients.iter().flat_map(|client| self.matches(client, Stage::NetworkIn)).collect();
            classes.push((device, self.class(Stage::NetworkIn, share, matches, levels, deployment)));
        }
        let (host, device) = deployment
            .device(&self.server.host, self.server.device.as_deref())
            .expect("a deployment is checked");
        let mut matches: Vec<PacketMatch> =
            self.clients.iter().flat_map(|client| self.matches(client, Stage::NetworkOut)).collect();
        matches.sort();
        matches.dedup();
        let replies = self.class(Stage::NetworkOut, 1.0, matches, levels, deployment);
        classes.push(((host.name.as_str(), device), replies));
        Ok(classes)
    }

    fn clients_by_device(
        &self,
        deployment: &'a Deployment,
    ) -> BTreeMap<HostDevice<'a>, Vec<&'a DeploymentClient>> {
        let mut devices: BTreeMap<HostDevice<'_>, Vec<&DeploymentClient>> = BTreeMap::new();
        for &client in &self.clients {
            let (host, device) =
                deployment.device(&client.host, client.device.as_deref()).expect("a deployment is checked");
            devices.entry((&host.name, device)).or_default().push(client);
        }
        devices
    }

    /// Returns the fraction of the workload's limits for the device of these clients, above 0 to 1.
    fn share(&self, clients: &[&DeploymentClient]) -> Result<f64, OperationError> {
        let name = &self.workload.name;
        let total: f64 = self.clients.iter().filter_map(|client| client.share).sum();
        // The tolerance accepts shares such as three times 1/3.
        if total > 1.0 + 1e-9 {
            return Err(OperationError::input(format_args!("the shares of {name} add up to {total}"))
                .hint("together they may be 1 at most"));
        }
        let has_all_clients = clients.len() == self.clients.len();
        if has_all_clients && clients.iter().all(|client| client.share.is_none()) {
            return Ok(1.0);
        }
        let shares: Option<f64> = clients.iter().map(|client| client.share).sum();
        shares.ok_or_else(|| {
            OperationError::input(format_args!(
                "{name} has clients on several devices, which cannot share its token buckets"
            ))
            .hint("give each of its [[client]] entries a share; they may add up to 1")
        })
    }

    fn class(
        &self,
        stage: Stage,
        share: f64,
        matches: Vec<PacketMatch>,
        levels: &PriorityLevels,
        deployment: &Deployment,
    ) -> TrafficClass {
        let mut buckets = Vec::new();
        for limit in self.workload.limits_at(stage) {
            buckets.push(FrameBucket {
                rate_bytes_per_s: share * limit.rate_per_s,
                burst_bytes: share * limit.bucket_work(),
            });
        }
        let of_server = levels.level(self.workload, stage);
        let of_client = levels.client_level(self.workload, stage);
        let (level, next) =
            if stage == Stage::NetworkIn { (of_client, of_server) } else { (of_server, of_client) };
        let mark = Some(deployment.dscp[next]);
        TrafficClass { name: format!("{} {stage}", self.workload.name), level, buckets, matches, mark }
    }

    /// Returns every combination of ports and of addresses of the same version of IP.
    fn matches(&self, client: &DeploymentClient, stage: Stage) -> Vec<PacketMatch> {
        let server_ports =
            if client.server_port.is_empty() { &self.server.port } else { &client.server_port };
        let mut matches = Vec::new();
        for &server in &self.server.address {
            let mut client_addresses = vec![None];
            if !client.address.is_empty() {
                let same_version = client.address.iter().filter(|it| it.is_ipv6() == server.is_ipv6());
                client_addresses = same_version.map(|address| Some(*address)).collect();
            }
            for address in client_addresses {
                for (port, server_port) in port_pairs(&client.port, server_ports) {
                    let ends = [(address, port), (Some(server), server_port)];
                    matches.push(self.packet_match(client, stage, ends));
                }
            }
        }
        matches
    }

    /// Returns the match for packets between the two ends, client and server, in the direction of the
    /// stage.
    fn packet_match(
        &self,
        client: &DeploymentClient,
        stage: Stage,
        ends: [(Option<AddressPrefix>, Option<u16>); 2],
    ) -> PacketMatch {
        let [client_end, server_end] = ends;
        let is_request = stage == Stage::NetworkIn;
        let (from, to) = if is_request { (client_end, server_end) } else { (server_end, client_end) };
        // Only the client's host knows the control group of the sending process.
        let cgroup = client.cgroup.as_ref().filter(|_| is_request);
        PacketMatch {
            ipv6: server_end.0.is_some_and(AddressPrefix::is_ipv6),
            from: from.0,
            to: to.0,
            protocol: (from.1.or(to.1)).map(|_| self.server.protocol),
            from_port: from.1,
            to_port: to.1,
            dscp: client.dscp,
            cgroup: cgroup.map(|path| path.trim_matches('/').to_owned()),
        }
    }
}

/// Returns all combinations of two lists of ports; an empty list stands for any port.
fn port_pairs(clients: &[u16], servers: &[u16]) -> Vec<(Option<u16>, Option<u16>)> {
    let mut pairs = Vec::new();
    for client in ports_or_any(clients) {
        for server in ports_or_any(servers) {
            pairs.push((client, server));
        }
    }
    pairs
}

fn ports_or_any(ports: &[u16]) -> Vec<Option<u16>> {
    if ports.is_empty() { vec![None] } else { ports.iter().copied().map(Some).collect() }
}
