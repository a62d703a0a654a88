//! Proxy and attackers as processes of their own: this program again, with a role from the environment.

use crate::attacks::RealAttack;
use crate::proxy::{deployment, policy};
use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyOptions};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use workload::device::StorageProfile;

const ROLE: &str = "TAILWRIGHT_REAL_ATTACK_ROLE";
const TARGET: &str = "TAILWRIGHT_REAL_ATTACK_TARGET";
const PROXY: &str = "proxy";
/// Above the priority client.
const PROXY_FIFO: u32 = 30;
/// About a server that answers from memory: 20 µs for an operation, and a gigabyte a second.
const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 512, "readBandwidth": 25e6, "writeBandwidth": 25e6 },
    { "requestSize": 1048576, "readBandwidth": 950e6, "writeBandwidth": 950e6 } ] }"#;
const CLIENTS: &str = r#"
    [[client]]
    workload = "gold"
    host = "here"
    address = ["127.0.1.1"]
    [[client]]
    workload = "silver"
    host = "here"
    address = ["127.0.1.2"]"#;

/// Plays the role that the environment names. Returns false without one.
pub fn play_role() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let target = std::env::var(TARGET).expect("a role has a target");
    if role == PROXY {
        run_proxy(&target);
    } else {
        let attack = RealAttack::named(&role).expect("a role is the proxy or an attack");
        attack.act(target.parse().expect("an address"));
    }
    true
}

fn run_proxy(target: &str) {
    let (protocol, server) = target.split_once(' ').expect("a protocol and an address");
    enforce::storage::raise_open_files();
    let server: SocketAddr = server.parse().expect("an address");
    let deployment: Deployment = deployment(protocol, server, "outstanding = 8", CLIENTS);
    let policy = policy(&[("gold", 0, &[(1.0, 0.2)]), ("silver", 1, &[(0.01, 0.03)])]);
    let profile = StorageProfile::from_json(PROFILE).expect("a right profile");
    let options = ProxyOptions::new("ssd", deployment, Some(policy), profile);
    let proxy = Proxy::bind(options).unwrap_or_else(|error| panic!("{error}"));
    let _ = machine::realtime::fifo(PROXY_FIFO);
    println!("listens at {}", proxy.addresses()[0]);
    let handle = proxy.handle();
    std::thread::spawn(move || {
        // The parent has ended.
        let _ = std::io::stdin().read(&mut [0]);
        handle.stop();
    });
    let _ = proxy.run();
}

/// A process that ends with this value.
pub struct RoleProcess {
    child: Child,
}

impl RoleProcess {
    fn start(script: &str, itself: &[&str], role: &str, target: &str) -> Self {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]).arg(std::env::current_exe().expect("a program has a path"));
        command.args(itself).env(ROLE, role).env(TARGET, target);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Self { child: child.expect("setsid of util-linux") }
    }

    /// Starts an attack at the lowest priority, in a scheduler group of its own.
    pub fn attack(attack: RealAttack, target: SocketAddr, itself: &[&str]) -> Self {
        let script = "echo 19 > /proc/self/autogroup; ulimit -n 8192; exec nice -n 19 \"$0\" \"$@\"";
        let process = Self::start(script, itself, attack.name(), &target.to_string());
        std::thread::sleep(attack.begins_after());
        process
    }

    /// Starts a proxy before a server. Returns its address.
    pub fn proxy(protocol: &str, server: SocketAddr, files: u32, itself: &[&str]) -> (Self, SocketAddr) {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let mut process = Self::start(&script, itself, PROXY, &format!("{protocol} {server}"));
        let mut lines = BufReader::new(process.child.stdout.take().expect("it is piped")).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("listens at ")?.parse().ok());
        (process, address.expect("the proxy says where it listens"))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// Returns the memory of a process, MiB.
pub fn memory_mib(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

/// Returns the CPU time that a process has used.
pub fn cpu_time(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or("").split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
