//! The hosts of a cluster on this machine: one for each workload and each copy, and one for each server with its device,
//! its proxy and its queues on the link.

use super::halves::{ClusterHalves, EmulatedClass};
use crate::experiment::device_host::{DEVICE_PORT, DEVICE_PRIORITY, RunningProxy, start_device};
use crate::nbd::NbdServer;
use enforce::command::{CommandRunner, Programs};
use enforce::deployment::Deployment;
use enforce::network::{ApplyOptions, DesiredHost, StateStore, apply, desired_network, remove};
use enforce::storage::ProxyOptions;
use machine::virtual_network::{DEVICE, VirtualNetwork};
use model::{OperationError, Policy, PolicyServer};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tempfile::TempDir;

/// Prefix of the namespaces' names. Leftovers of an earlier run are removed first.
const PREFIX: &str = "twrun";
/// The name of the copy that reads from the server with this index.
pub(super) fn copy_name(server: usize) -> String {
    format!("copy-{}", server + 1)
}

/// The host of the workload with this index in the policy.
pub(super) fn workload_host(workload: usize) -> String {
    format!("w{workload}")
}

/// The host of the copy of the server with this index.
pub(super) fn copy_host(server: usize) -> String {
    format!("c{server}")
}

fn server_host(server: usize) -> String {
    format!("s{server}")
}

/// The machine as the cluster needs it; everything is removed when this is dropped.
pub(super) struct ClusterTestbed {
    lab: VirtualNetwork,
    /// State of the enforcer's queues, removed after the lab.
    folder: TempDir,
    hosts: Vec<DesiredHost>,
    proxies: Vec<RunningProxy>,
    devices: Vec<NbdServer>,
}

impl ClusterTestbed {
    /// Makes hosts, starts devices and proxies, and applies the policy at links and proxies.
    pub(super) fn new(
        policy: &Policy,
        halves: &ClusterHalves,
        realtime: bool,
    ) -> Result<Self, OperationError> {
        let servers = 0..policy.servers.len();
        let mut hosts: Vec<String> = (0..policy.workloads.len()).map(workload_host).collect();
        hosts.extend(servers.clone().flat_map(|server| [server_host(server), copy_host(server)]));
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(|error| {
            OperationError::machine(format_args!("no temporary folder: {error}"))
                .hint("see the variable TMPDIR")
        })?;
        let lab = VirtualNetwork::create(|line, input| Programs.run_line(line, input), PREFIX, &hosts)?;
        let mut testbed = Self { lab, folder, hosts: Vec::new(), proxies: Vec::new(), devices: Vec::new() };
        let deployment = testbed.deployment(policy)?;
        for (number, server) in policy.servers.iter().enumerate() {
            let class = halves.class(&server.class).expect("servers are of the cluster's classes");
            testbed.start_device(number, class, policy, realtime)?;
            testbed.start_proxy(number, &deployment, policy, class, realtime)?;
        }
        testbed.hosts = desired_network(policy, &deployment)?.hosts;
        for host in &testbed.hosts {
            apply(&mut Programs, host, &StateStore::new(testbed.folder.path()), ApplyOptions::default())?;
        }
        Ok(testbed)
    }

    fn start_device(
        &mut self,
        server: usize,
        class: &EmulatedClass,
        policy: &Policy,
        realtime: bool,
    ) -> Result<(), OperationError> {
        let mut names: Vec<String> = (0..policy.workloads.len()).map(workload_host).collect();
        names.push(copy_host(server));
        let listen = (Ipv4Addr::LOCALHOST, DEVICE_PORT).into();
        let netns = self.netns(&server_host(server));
        let priority = realtime.then_some(DEVICE_PRIORITY);
        let device = start_device(netns, listen, class.model, &names, priority, "an emulated SSD")?;
        self.devices.push(device);
        Ok(())
    }

    fn start_proxy(
        &mut self,
        server: usize,
        deployment: &Deployment,
        policy: &Policy,
        class: &EmulatedClass,
        realtime: bool,
    ) -> Result<(), OperationError> {
        let name = &policy.servers[server].name;
        let options =
            ProxyOptions::new(name, deployment.clone(), Some(policy.clone()), class.profile.clone());
        let proxy = RunningProxy::start(self.netns(&server_host(server)), options, realtime)?;
        self.proxies.extend(proxy);
        Ok(())
    }

    fn deployment(&self, policy: &Policy) -> Result<Deployment, OperationError> {
        let mut text = String::new();
        let fastest = policy.servers.iter().map(|server| server.network_bytes_per_s).fold(0.0, f64::max);
        for host in &self.lab.hosts {
            let rate = (0..policy.servers.len()).find(|&at| server_host(at) == host.name);
            let rate = rate.map_or(fastest, |at| policy.servers[at].network_bytes_per_s);
            let _ = write!(
                text,
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.{DEVICE} = \"{rate}B/s\"\n",
                host.name, host.netns
            );
        }
        for (number, server) in policy.servers.iter().enumerate() {
            text += &self.server_text(number, server);
        }
        for (number, workload) in policy.workloads.iter().enumerate() {
            let host = workload_host(number);
            let _ = write!(
                text,
                "[[client]]\nworkload = {:?}\nhost = \"{host}\"\naddress = [\"{}\"]\n",
                workload.name,
                self.ip(&host)
            );
        }
        Deployment::parse(&text)
    }

    fn server_text(&self, number: usize, server: &PolicyServer) -> String {
        let host = server_host(number);
        let address = self.ip(&server_host(number));
        let used = server.enforcement.map_or_else(String::new, |used| {
            format!(
                "outstanding = {}\nbeside = {}\nreserve = {}\n",
                used.outstanding, used.beside, used.reserve
            )
        });
        format!(
            "[[server]]\nname = {:?}\nhost = \"{host}\"\naddress = [\"{address}\"]\nport = [{DEVICE_PORT}]\n\
             [server.storage]\nprofile = \"-\"\n{used}\
             front = [{{ protocol = \"nbd\", listen = \"{address}\", forward = \"127.0.0.1\" }}]\n",
            server.name
        )
    }

    /// Stops the proxies and waits for their ends.
    ///
    /// # Errors
    /// When a proxy ended with an error.
    pub(super) fn stop_proxies(&mut self) -> Result<(), OperationError> {
        let mut ended = Ok(());
        for proxy in self.proxies.drain(..) {
            ended = ended.and(proxy.stop());
        }
        ended
    }

    /// The address at which clients reach the server with this index.
    pub(super) fn address(&self, server: usize) -> SocketAddr {
        SocketAddr::new(self.ip(&server_host(server)), DEVICE_PORT)
    }

    /// The network namespace of a host.
    pub(super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }
}

impl Drop for ClusterTestbed {
    fn drop(&mut self) {
        // A caller that needs the proxies' results has stopped them before.
        let _ = self.stop_proxies();
        self.devices.clear();
        // Queues that cannot be removed vanish with the namespaces; namespaces, with the next run.
        for host in &self.hosts {
            let _ =
                remove(&mut Programs, host, &StateStore::new(self.folder.path()), ApplyOptions::default());
        }
        let _ = self.lab.remove(|line, input| Programs.run_line(line, input));
    }
}
