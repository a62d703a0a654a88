//! Real traffic between network namespaces, and the hosts that it needs.
#![allow(dead_code, unused_imports, reason = "tests and benchmark use their parts")]

mod calls;
mod udp;

pub(crate) use calls::{Calls, Latencies, answer, call, pour, wait_for};
pub(crate) use udp::{Arrivals, HEADERS, PAYLOAD, conformance, greedy, record, spans};

use enforce::command::{CommandRunner, Programs, SystemCommand};
use enforce::deployment::Deployment;
use enforce::network::{ApplyOptions, ApplyReport, DesiredHost, StateStore, apply, desired_network};
use machine::virtual_network::VirtualNetwork;
use model::{PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Stage, StageLimit};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Returns the reason why traffic tests cannot run here.
pub(crate) fn lacking() -> Option<String> {
    if !enforce::command::may_configure_networks() {
        return Some("without root no network namespaces can be made".into());
    }
    let features = match enforce::network::probe_kernel(&mut Programs) {
        Ok(features) => features,
        Err(error) => return Some(error.to_string()),
    };
    for feature in features.iter().filter(|it| it.needed || ["veth", "bridge"].contains(&it.name)) {
        if let Some(lack) = &feature.lack {
            return Some(format!("this kernel lacks {}: {lack}", feature.name));
        }
    }
    None
}

/// A virtual network that is removed on drop, and a folder for state files that is not created yet.
pub(crate) struct Testbed {
    pub(crate) network: VirtualNetwork,
    pub(crate) state: PathBuf,
    /// Parent of the state folder, removed on drop.
    _folder: TempDir,
}

impl Testbed {
    pub(crate) fn new(names: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("twn-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let network = VirtualNetwork::create(|line, input| Programs.run_line(line, input), &prefix, names)
            .unwrap_or_else(|error| panic!("{error}"));
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self { network, state: folder.path().join("state"), _folder: folder }
    }

    pub(crate) fn store(&self) -> StateStore {
        StateStore::new(&self.state)
    }

    pub(crate) fn netns(&self, host: &str) -> &str {
        &self.network.host(host).expect("the network has it").netns
    }

    pub(crate) fn ipv4(&self, host: &str) -> IpAddr {
        self.network.host(host).expect("the network has it").ipv4.into()
    }

    pub(crate) fn run(&self, line: &str) -> String {
        Programs.run(&SystemCommand::new(line)).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Returns the text of a hosts file: every host with its device at `link`, the switch, and the lines
    /// in `more`.
    pub(crate) fn hosts_file(&self, link: &str, switch: Option<(&str, &str)>, more: &str) -> String {
        let mut text = String::new();
        for host in &self.network.hosts {
            text += &format!(
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.eth0 = \"{link}\"\n",
                host.name, host.netns
            );
        }
        if let Some((to, rate)) = switch {
            let port = &self.network.host(to).expect("the network has it").port;
            let netns = &self.network.switch;
            text += &format!(
                "[[host]]\nname = \"switch\"\nnetns = \"{netns}\"\nswitch = true\ndevice.{port} = \"{rate}\"\n"
            );
        }
        text + more
    }

    /// Returns the bytes that a device of a host has sent since its queueing discipline was installed.
    pub(crate) fn sent_bytes(&self, host: &str, device: &str) -> u64 {
        let printed = self.run(&format!("tc -n {} -statistics qdisc show dev {device}", self.netns(host)));
        let (_, rest) = printed.split_once(" Sent ").expect("tc prints a counter");
        rest.split(' ').next().and_then(|bytes| bytes.parse().ok()).expect("the counter is a number")
    }

    pub(crate) fn apply_all(&self, policy: &Policy, hosts: &str) -> Vec<ApplyReport> {
        let report = |host: &DesiredHost| {
            apply(&mut Programs, host, &self.store(), ApplyOptions::default())
                .unwrap_or_else(|error| panic!("{error}"))
        };
        self.desired_hosts(policy, hosts).iter().map(report).collect()
    }

    pub(crate) fn desired_hosts(&self, policy: &Policy, hosts: &str) -> Vec<DesiredHost> {
        let deployment = Deployment::parse(hosts).unwrap_or_else(|error| panic!("{error}\n{hosts}"));
        desired_network(policy, &deployment).unwrap_or_else(|error| panic!("{error}")).hosts
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = self.network.remove(|line, input| Programs.run_line(line, input));
    }
}

/// A workload of a test policy: name, priority, and ⟨bytes/s, bytes⟩ at network-in and network-out.
#[derive(Clone)]
pub(crate) struct Tenant<'a>(pub(crate) &'a str, pub(crate) u32, pub(crate) &'a [(f64, f64)]);

/// Capacity of the tests' links, bytes per second: 100 Mbit/s.
const LINK: f64 = 12.5e6;

/// Returns a policy that places all tenants on the server `s`.
pub(crate) fn policy(tenants: &[Tenant]) -> Policy {
    let workload = |Tenant(name, priority, pairs): &Tenant| {
        let links = [Stage::NetworkIn, Stage::NetworkOut];
        let placement = PolicyPlacement {
            server: "s".into(),
            priority: PerStage::from_fn(|_| *priority),
            bound_s: Some(0.5),
            limits: links.iter().flat_map(|stage| limits(*stage, pairs)).collect(),
        };
        PolicyWorkload::admitted(*name, "99% < 1s".parse().expect("an SLO"), placement)
    };
    let server = PolicyServer {
        name: "s".into(),
        class: "s".into(),
        network_bytes_per_s: LINK,
        storage_profile: "none".into(),
        storage_profile_hash: None,
        enforcement: None,
    };
    Policy::new("by hand", vec![server], tenants.iter().map(workload).collect())
        .unwrap_or_else(|error| panic!("{error}"))
}

fn limits(stage: Stage, pairs: &[(f64, f64)]) -> Vec<StageLimit> {
    let limit = |&(rate_per_s, burst_work): &(f64, f64)| {
        let limit = RateLimit { rate: rate_per_s / LINK, burst: burst_work / LINK };
        StageLimit::new(stage, limit, LINK)
    };
    pairs.iter().map(limit).collect()
}

/// Runs a function in a separate thread within a network namespace.
pub(crate) fn within<T: Send + 'static>(
    netns: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let netns = netns.to_owned();
    std::thread::spawn(move || {
        machine::netns::enter(&netns).unwrap_or_else(|error| panic!("{error}"));
        work()
    })
}

fn any(ipv6: bool, port: u16) -> SocketAddr {
    if ipv6 { format!("[::]:{port}") } else { format!("0.0.0.0:{port}") }.parse().expect("an address")
}

/// A tenant that owns its limits.
pub(crate) type Workload<'a> = (&'a str, u32, Vec<(f64, f64)>);
