//! Hosts, servers and queues of an experiment on a link.

use super::super::analysis::SERVER;
use super::super::data::{Experiment, Server as Kind};
use super::super::demand::PlannedCase;
use super::super::ground::{inside, joined};
use super::disk;
use crate::nbd::{Config, Export, Server};
use crate::servers::{Lifetime, Memcached, Nbd, Place, Running, Service};
use enforce::command::Programs;
use enforce::deployment::Deployment;
use enforce::lab::{DEVICE, Lab};
use enforce::network::{Options, Store, WantedDevice, WantedHost, apply, remove, wanted};
use load::LoadTarget;
use model::{OperationError, Policy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use units::{Bytes, Nanos};

/// Namespaces of an experiment: what an earlier one left is removed first.
const PREFIX: &str = "twlink";
/// Above the generator's.
const SERVER_PRIORITY: u32 = 12;
const CACHE_PORT: u16 = 11211;
/// Of the first volume; each tenant's is its own.
const VOLUME_PORT: u16 = 10809;
const VOLUME: u64 = 64 << 20;
const CACHE: Bytes = Bytes(512 << 20);
/// Distinct values of each size that are asked for.
const KEYS: u32 = 2;
/// How long before a completion a disk stops sleeping.
const SPIN: Nanos = Nanos(20_000);
/// Reno, which fills queues as cubic does and which every namespace may choose; a window that is forgotten in every pause
/// would measure TCP.
const KERNEL: [(&str, &str); 2] = [
    ("/proc/sys/net/ipv4/tcp_congestion_control", "reno"),
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
];

/// It is removed when this is dropped.
pub(in super::super) struct LinkGround {
    lab: Lab,
    folder: PathBuf,
    hosts: Vec<WantedHost>,
    disks: Vec<Server>,
    servers: Vec<Running>,
}

impl LinkGround {
    /// Hosts and servers, with queues as wanted by the policy, or with one for all.
    pub(in super::super) fn new(
        case: &PlannedCase,
        policy: Option<&Policy>,
        realtime: bool,
    ) -> Result<Self, OperationError> {
        let tenants = case.case.tenants.iter().map(|tenant| tenant.name);
        let hosts: Vec<&str> = tenants.chain([SERVER]).collect();
        let lab = Lab::up(&mut Programs, PREFIX, &hosts)?;
        let folder = std::env::temp_dir().join(format!("{PREFIX}-{}", std::process::id()));
        let mut ground = Self { lab, folder, hosts: Vec::new(), disks: Vec::new(), servers: Vec::new() };
        for host in &ground.lab.hosts {
            joined(inside(&host.netns, None, set_kernel))??;
        }
        ground.serve(case, realtime.then_some(SERVER_PRIORITY))?;
        ground.hosts = ground.wanted(policy)?;
        for host in &ground.hosts {
            apply(&mut Programs, host, &Store::new(&ground.folder), Options::default())?;
        }
        Ok(ground)
    }

    fn serve(&mut self, case: &PlannedCase, priority: Option<u32>) -> Result<(), OperationError> {
        let any = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        if case.case.tenants.iter().any(|tenant| tenant.server == Kind::Cache) {
            let address = SocketAddr::new(any, CACHE_PORT);
            let service = Service::Memcached(Memcached { address, memory: CACHE, threads: 1 });
            self.start("cache", &service, priority)?;
        }
        for (at, (tenant, demand)) in case.case.tenants.iter().zip(&case.sent).enumerate() {
            let port = volume_port(at);
            if let Some(model) = disk(tenant, demand) {
                let exports = vec![Export { name: tenant.name.to_owned(), size: VOLUME }];
                let config = Config { model, exports, spin: SPIN };
                let start = move || {
                    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
                    Server::start(listener, config, Box::new(|_| {}))
                };
                let started = joined(inside(self.netns(SERVER), priority, start))?;
                let fault = |error| {
                    OperationError::machine(format_args!("an emulated disk: {error}")).hint("see `ulimit -n`")
                };
                self.disks.push(started.map_err(fault)?);
            } else if tenant.server == Kind::Memory {
                let service = Service::Nbd(Nbd { address: SocketAddr::new(any, port), size: Bytes(VOLUME) });
                self.start(tenant.name, &service, priority)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, name: &str, service: &Service, realtime: Option<u32>) -> Result<(), OperationError> {
        service.check()?;
        let place = Place {
            netns: Some(self.netns(SERVER).to_owned()),
            folder: self.folder.join("servers"),
            realtime,
            lifetime: Lifetime::Mine,
        };
        self.servers.push(Running::start(name, service, &place)?);
        Ok(())
    }

    /// Every host's device is shaped, whoever the policy names: what is compared differs in nothing else.
    fn wanted(&self, policy: Option<&Policy>) -> Result<Vec<WantedHost>, OperationError> {
        let deployment = self.deployment()?;
        let mut hosts = match policy {
            Some(policy) => wanted(policy, &deployment)?.hosts,
            None => {
                let bare =
                    |host: &enforce::deployment::Host| WantedHost { host: host.clone(), devices: Vec::new() };
                deployment.hosts.iter().map(bare).collect()
            }
        };
        for host in hosts.iter_mut().filter(|host| host.devices.is_empty()) {
            host.devices.push(WantedDevice {
                name: DEVICE.to_owned(),
                link_bytes_per_s: Experiment::LINK_BITS_PER_S / 8.0,
                lanes: Vec::new(),
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
                Experiment::LINK_BITS_PER_S / 1e6
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

    /// What a tenant's requests are sent to.
    pub(in super::super) fn target(&self, case: &PlannedCase, at: usize) -> LoadTarget {
        let server = |port| SocketAddr::new(self.ip(SERVER), port);
        let tenant = &case.case.tenants[at];
        match tenant.server {
            Kind::Cache => LoadTarget::Memcached { server: server(CACHE_PORT), keys: KEYS },
            // nbdkit has one volume, whatever it is called.
            Kind::Disk { .. } | Kind::Memory | Kind::Ssd => {
                LoadTarget::Nbd { server: server(volume_port(at)), export: tenant.name.to_owned() }
            }
        }
    }

    pub(in super::super) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("hosts are asked for by their names").netns
    }

    fn ip(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("hosts are asked for by their names").ipv4.into()
    }
}

fn volume_port(tenant: usize) -> u16 {
    VOLUME_PORT + u16::try_from(tenant).expect("few tenants")
}

/// Of the namespace that the thread is in.
fn set_kernel() -> Result<(), OperationError> {
    for (file, value) in KERNEL {
        std::fs::write(file, value).map_err(|error| {
            OperationError::machine(format_args!("{file} cannot be '{value}': {error}"))
                .hint("run as root, with /proc/sys writable")
        })?;
    }
    Ok(())
}

impl Drop for LinkGround {
    fn drop(&mut self) {
        self.servers.clear();
        self.disks.clear();
        // What is left goes with the namespaces, or is removed by the next experiment.
        for host in &self.hosts {
            let _ = remove(&mut Programs, host, &Store::new(&self.folder), Options::default());
        }
        let _ = self.lab.down(&mut Programs);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
