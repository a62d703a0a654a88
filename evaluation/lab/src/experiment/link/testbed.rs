//! The hosts, servers and queues of an experiment on a link.

use super::super::case_plan::CasePlan;
use super::super::definition::{LabExperiment, SERVER, TenantServer};
use super::super::device_host::{DEVICE_PORT, DEVICE_PRIORITY, VOLUME_SIZE, start_device};
use super::super::namespace_thread::{join, spawn_in};
use super::work::tenant_disk;
use crate::device::SsdModel;
use crate::nbd::NbdServer;
use crate::servers::{
    LabService, MemcachedServer, NbdkitServer, ServerEnvironment, ServerLifetime, ServerProcess,
};
use enforce::command::{CommandRunner, Programs};
use enforce::deployment::Deployment;
use enforce::network::{
    ApplyOptions, DesiredDevice, DesiredHost, StateStore, apply, desired_network, remove,
};
use load::{LoadTarget, MemcachedTransport};
use machine::virtual_network::{DEVICE, VirtualNetwork};
use model::{OperationError, Policy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tempfile::TempDir;
use units::Bytes;

/// Prefix of the namespaces' names. Leftovers of an earlier experiment are removed first.
const PREFIX: &str = "twlink";
const CACHE_PORT: u16 = 11211;
const CACHE_SIZE: Bytes = Bytes(512 << 20);
/// Distinct values of each size that are looked up.
const KEYS: u32 = 2;
/// Kernel settings of every host. Reno fills queues as cubic does, and every namespace may choose it. A window that is
/// forgotten in every pause would make the experiment measure TCP.
const KERNEL_SETTINGS: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_congestion_control", "reno"),
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
];

/// The machine as the experiment needs it; everything is removed when this is dropped.
pub(in super::super) struct LinkTestbed {
    lab: VirtualNetwork,
    /// The folder for logs of servers and for the enforcer's state of the queues. It is removed after the
    /// lab.
    folder: TempDir,
    hosts: Vec<DesiredHost>,
    disks: Vec<NbdServer>,
    servers: Vec<ServerProcess>,
}

impl LinkTestbed {
    /// Makes hosts, starts servers, and sets up the queues of a policy, or one queue for all tenants.
    pub(in super::super) fn new(
        case: &CasePlan,
        policy: Option<&Policy>,
        realtime: bool,
    ) -> Result<Self, OperationError> {
        let tenants = case.case.tenants.iter().map(|tenant| tenant.name);
        let hosts: Vec<&str> = tenants.chain([SERVER]).collect();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(|error| {
            OperationError::machine(format_args!("no temporary folder: {error}"))
                .hint("see the variable TMPDIR")
        })?;
        let lab = VirtualNetwork::create(|line, input| Programs.run_line(line, input), PREFIX, &hosts)?;
        let mut testbed = Self { lab, folder, hosts: Vec::new(), disks: Vec::new(), servers: Vec::new() };
        for host in &testbed.lab.hosts {
            join(spawn_in(&host.netns, None, change_kernel_settings))??;
        }
        testbed.start_servers(case, realtime.then_some(DEVICE_PRIORITY))?;
        testbed.hosts = testbed.shaped_hosts(policy)?;
        for host in &testbed.hosts {
            apply(&mut Programs, host, &StateStore::new(testbed.folder.path()), ApplyOptions::default())?;
        }
        Ok(testbed)
    }

    fn start_servers(&mut self, case: &CasePlan, priority: Option<u32>) -> Result<(), OperationError> {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        if case.case.tenants.iter().any(|tenant| tenant.server == TenantServer::Cache) {
            let address = SocketAddr::new(any, CACHE_PORT);
            let server = MemcachedServer { address, memory: CACHE_SIZE, threads: 1 };
            self.start_service("cache", &LabService::Memcached(server), priority)?;
        }
        for (index, (tenant, sent)) in case.case.tenants.iter().zip(&case.sent).enumerate() {
            if let Some(model) = tenant_disk(tenant, sent) {
                self.start_disk(tenant.name, model, volume_port(index), priority)?;
            } else if tenant.server == TenantServer::Memory {
                let address = SocketAddr::new(any, volume_port(index));
                let server = NbdkitServer { address, size: Bytes(VOLUME_SIZE) };
                self.start_service(tenant.name, &LabService::Nbd(server), priority)?;
            }
        }
        Ok(())
    }

    fn start_disk(
        &mut self,
        tenant: &str,
        model: SsdModel,
        port: u16,
        priority: Option<u32>,
    ) -> Result<(), OperationError> {
        let listen = (Ipv4Addr::UNSPECIFIED, port).into();
        let volumes = [tenant.to_owned()];
        let disk = start_device(self.netns(SERVER), listen, model, &volumes, priority, "an emulated disk")?;
        self.disks.push(disk);
        Ok(())
    }

    fn start_service(
        &mut self,
        name: &str,
        service: &LabService,
        realtime: Option<u32>,
    ) -> Result<(), OperationError> {
        service.check_programs()?;
        let environment = ServerEnvironment {
            netns: Some(self.netns(SERVER).to_owned()),
            folder: self.folder.path().join("servers"),
            realtime,
            lifetime: ServerLifetime::WithStarter,
        };
        self.servers.push(ServerProcess::start(name, service, &environment)?);
        Ok(())
    }

    /// Queues of all hosts. Hosts that the policy does not name are shaped too, so that policies differ in
    /// nothing else.
    fn shaped_hosts(&self, policy: Option<&Policy>) -> Result<Vec<DesiredHost>, OperationError> {
        let deployment = self.deployment()?;
        let mut hosts = match policy {
            Some(policy) => desired_network(policy, &deployment)?.hosts,
            None => {
                let hosts = deployment.hosts.iter();
                hosts.map(|host| DesiredHost { host: host.clone(), devices: Vec::new() }).collect()
            }
        };
        for host in hosts.iter_mut().filter(|host| host.devices.is_empty()) {
            host.devices.push(DesiredDevice {
                name: DEVICE.to_owned(),
                link_bytes_per_s: LabExperiment::LINK_BITS_PER_S / 8.0,
                burst_s: None,
                classes: Vec::new(),
            });
        }
        Ok(hosts)
    }

    fn deployment(&self) -> Result<Deployment, OperationError> {
        let mut text = String::new();
        for host in &self.lab.hosts {
            text += &format!(
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.{DEVICE} = \"{}Mbps\"\n",
                host.name,
                host.netns,
                LabExperiment::LINK_BITS_PER_S / 1e6
            );
        }
        let server = self.ip(SERVER);
        text += &format!("[[server]]\nname = \"{SERVER}\"\nhost = \"{SERVER}\"\naddress = [\"{server}\"]\n");
        for host in self.lab.hosts.iter().filter(|host| host.name != SERVER) {
            text += &format!(
                "[[client]]\nworkload = \"{name}\"\nhost = \"{name}\"\naddress = [\"{}\"]\n",
                host.ipv4,
                name = host.name
            );
        }
        Deployment::parse(&text)
    }

    /// The server to which the tenant with this index sends its requests.
    pub(in super::super) fn target(&self, case: &CasePlan, index: usize) -> LoadTarget {
        let tenant = &case.case.tenants[index];
        match tenant.server {
            TenantServer::Cache => LoadTarget::Memcached {
                server: SocketAddr::new(self.ip(SERVER), CACHE_PORT),
                transport: MemcachedTransport::Tcp,
                keys: KEYS,
                key_size: None,
            },
            // nbdkit has one volume and grants it under any name.
            TenantServer::Disk { .. } | TenantServer::Memory | TenantServer::Ssd => LoadTarget::Nbd {
                server: SocketAddr::new(self.ip(SERVER), volume_port(index)),
                export: tenant.name.to_owned(),
            },
        }
    }

    /// The network namespace of a host.
    pub(in super::super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }
}

fn volume_port(tenant: usize) -> u16 {
    DEVICE_PORT + u16::try_from(tenant).expect("few tenants")
}

/// Changes the settings of the namespace that the calling thread is in.
fn change_kernel_settings() -> Result<(), OperationError> {
    for (file, value) in KERNEL_SETTINGS {
        std::fs::write(file, value).map_err(|error| {
            OperationError::machine(format_args!("{file} cannot be '{value}': {error}"))
                .hint("run as root, with /proc/sys writable")
        })?;
    }
    Ok(())
}

impl Drop for LinkTestbed {
    fn drop(&mut self) {
        self.servers.clear();
        self.disks.clear();
        // Queues that cannot be removed vanish with the namespaces; namespaces, with the next experiment.
        for host in &self.hosts {
            let _ =
                remove(&mut Programs, host, &StateStore::new(self.folder.path()), ApplyOptions::default());
        }
        let _ = self.lab.remove(|line, input| Programs.run_line(line, input));
    }
}
