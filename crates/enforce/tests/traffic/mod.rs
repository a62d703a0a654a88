//! Real traffic between network namespaces, and the hosts that it needs.
#![allow(dead_code, unused_imports, reason = "tests and benchmark use their parts")]

mod calls;
mod udp;

pub(crate) use calls::{Calls, Latencies, answer, call, pour};
pub(crate) use udp::{HEADERS, PAYLOAD, conformance, greedy, record};

use model::{PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Stage, StageLimit};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use tailwright_enforce::command::{Command, Programs, Run};
use tailwright_enforce::deployment::Deployment;
use tailwright_enforce::lab::{self, Lab};
use tailwright_enforce::network::{Options, Report, Store, WantedHost, apply, wanted};

/// Why traffic tests cannot run here.
pub(crate) fn lacking() -> Option<String> {
    if !tailwright_enforce::command::may_configure_networks() {
        return Some("without root no network namespaces can be made".into());
    }
    let abilities = match tailwright_enforce::network::probe(&mut Programs) {
        Ok(abilities) => abilities,
        Err(fault) => return Some(fault.to_string()),
    };
    let wanted = |name: &str| ["veth", "bridge"].contains(&name);
    let missing = abilities.iter().find(|a| (a.needed || wanted(a.name)) && a.lack.is_some());
    missing.map(|a| format!("this kernel lacks {}: {}", a.name, a.lack.as_deref().unwrap_or_default()))
}

/// A lab that goes with the value, and a folder for states.
pub(crate) struct Ground {
    pub(crate) lab: Lab,
    pub(crate) state: std::path::PathBuf,
}

impl Ground {
    pub(crate) fn new(names: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("twn-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let lab = Lab::up(&mut Programs, &prefix, names).unwrap_or_else(|fault| panic!("{fault}"));
        Self { lab, state: std::env::temp_dir().join(format!("{prefix}-state")) }
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(&self.state)
    }

    pub(crate) fn netns(&self, host: &str) -> &str {
        &self.lab.host(host).expect("the lab has it").netns
    }

    pub(crate) fn ipv4(&self, host: &str) -> IpAddr {
        self.lab.host(host).expect("the lab has it").ipv4.into()
    }

    pub(crate) fn run(&self, line: &str) -> String {
        Programs.run(&Command::new(line)).unwrap_or_else(|fault| panic!("{line}: {fault}"))
    }

    /// Text of a hosts file: every host with its device at `link`, the switch, and the lines given.
    pub(crate) fn hosts_file(&self, link: &str, switch: Option<(&str, &str)>, more: &str) -> String {
        let mut text = String::new();
        for host in &self.lab.hosts {
            text += &format!(
                "[[host]]\nname = \"{}\"\nnetns = \"{}\"\ndevice.eth0 = \"{link}\"\n",
                host.name, host.netns
            );
        }
        if let Some((to, rate)) = switch {
            let port = &self.lab.host(to).expect("the lab has it").port;
            let netns = &self.lab.switch;
            text += &format!(
                "[[host]]\nname = \"switch\"\nnetns = \"{netns}\"\nswitch = true\ndevice.{port} = \"{rate}\"\n"
            );
        }
        text + more
    }

    pub(crate) fn apply_all(&self, policy: &Policy, hosts: &str) -> Vec<Report> {
        let report = |host: &WantedHost| {
            apply(&mut Programs, host, &self.store(), Options::default())
                .unwrap_or_else(|fault| panic!("{fault}"))
        };
        self.wanted(policy, hosts).iter().map(report).collect()
    }

    pub(crate) fn wanted(&self, policy: &Policy, hosts: &str) -> Vec<WantedHost> {
        let deployment = Deployment::parse(hosts).unwrap_or_else(|fault| panic!("{fault}\n{hosts}"));
        wanted(policy, &deployment).unwrap_or_else(|fault| panic!("{fault}")).hosts
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = self.lab.down(&mut Programs);
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

#[derive(Clone)]
/// A workload of a test policy: name, priority, and ⟨bytes/s, bytes⟩ at network-in and network-out.
pub(crate) struct Tenant<'a>(pub(crate) &'a str, pub(crate) u32, pub(crate) &'a [(f64, f64)]);

/// All on the server `s`.
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
        network_bytes_per_s: 12.5e6,
        storage_profile: "none".into(),
    };
    Policy::new("by hand", vec![server], tenants.iter().map(workload).collect())
}

fn limits(stage: Stage, pairs: &[(f64, f64)]) -> Vec<StageLimit> {
    let limit = RateLimit::default();
    pairs
        .iter()
        .map(|&(rate_per_s, burst_work)| StageLimit { stage, limit, rate_per_s, burst_work })
        .collect()
}

/// Runs in a thread of its own within a network namespace.
pub(crate) fn within<T: Send + 'static>(
    netns: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let netns = netns.to_owned();
    std::thread::spawn(move || {
        lab::enter(&netns).unwrap_or_else(|fault| panic!("{fault}"));
        work()
    })
}

fn any(ipv6: bool, port: u16) -> SocketAddr {
    if ipv6 { format!("[::]:{port}") } else { format!("0.0.0.0:{port}") }.parse().expect("an address")
}

/// A tenant that owns its limits.
pub(crate) type Workload<'a> = (&'a str, u32, Vec<(f64, f64)>);
