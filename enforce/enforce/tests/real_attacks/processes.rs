//! Proxy and attackers as processes of their own: this program again, with a role from the environment.

use crate::attacks::RealAttack;
use crate::proxy::{deployment, policy};
use crate::victim::VictimSample;
use enforce::deployment::Deployment;
use enforce::storage::{Proxy, ProxyOptions};
use model::{Observations, RequestOutcome};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use units::Nanos;
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
    // Without polling: server and client share the CPUs with the proxy, and would wait for it.
    let options = ProxyOptions {
        record: 1 << 20,
        busy_poll_max: Nanos::ZERO,
        ..ProxyOptions::new("ssd", deployment, Some(policy), profile)
    };
    let mut proxy = Proxy::bind(options).unwrap_or_else(|error| panic!("{error}"));
    let _ = machine::realtime::fifo(PROXY_FIFO);
    println!("listens at {}", proxy.addresses()[0]);
    let handle = proxy.handle();
    let started_at = proxy.started_at();
    let marked_at = std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let marked_at = machine::clock::real_time().saturating_sub(started_at);
        // Ends when the parent says so, or has ended.
        let _ = std::io::stdin().read(&mut [0]);
        handle.stop();
        Nanos(marked_at)
    });
    let report = proxy.run().unwrap_or_else(|error| panic!("{error}"));
    let marked_at = marked_at.join().expect("it reads");
    let [waiting, served] = stages(&report.observations, marked_at).map(|stage| stage.p99());
    println!("stages {waiting} {served}");
}

/// Returns how long requests of gold waited in the proxy, and how long they were at the server, of those that came
/// later than this.
fn stages(observations: &Observations, later_than: Nanos) -> [VictimSample; 2] {
    let gold = observations.workloads.iter().position(|name| name == "gold");
    let mut stages = [VictimSample::default(), VictimSample::default()];
    for request in &observations.requests {
        let RequestOutcome::Done(end) = request.outcome else { continue };
        if Some(request.workload as usize) == gold && request.intended > later_than {
            stages[0].latencies.push((request.sent - request.intended).as_secs() * 1e3);
            stages[1].latencies.push((end - request.sent).as_secs() * 1e3);
        }
    }
    for stage in &mut stages {
        stage.latencies.sort_unstable_by(f64::total_cmp);
    }
    stages
}

/// A process that ends with this value.
pub struct RoleProcess {
    child: Child,
    output: Option<Lines<BufReader<ChildStdout>>>,
}

impl RoleProcess {
    fn start(script: &str, itself: &[&str], role: &str, target: &str) -> Self {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]).arg(std::env::current_exe().expect("a program has a path"));
        command.args(itself).env(ROLE, role).env(TARGET, target);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("setsid of util-linux");
        let output = child.stdout.take().map(|output| BufReader::new(output).lines());
        Self { child, output }
    }

    /// Starts an attack at a low priority, in a session and scheduler group of its own.
    pub fn attack(attack: RealAttack, target: SocketAddr, itself: &[&str]) -> Self {
        let script = "ulimit -n 8192; exec nice -n 5 \"$0\" \"$@\"";
        let process = Self::start(script, itself, attack.name(), &target.to_string());
        std::thread::sleep(attack.begins_after());
        process
    }

    /// Starts a proxy before a server. Returns its address.
    pub fn proxy(protocol: &str, server: SocketAddr, files: u32, itself: &[&str]) -> (Self, SocketAddr) {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let mut process = Self::start(&script, itself, PROXY, &format!("{protocol} {server}"));
        let address = process.told("listens at ").parse().expect("an address");
        (process, address)
    }

    /// Returns the rest of the next line of its output that begins so.
    fn told(&mut self, beginning: &str) -> String {
        let lines = self.output.as_mut().expect("it is piped").map_while(Result::ok);
        let rest =
            lines.filter_map(|line| line.split_once(beginning).map(|(_, rest)| rest.to_owned())).next();
        rest.unwrap_or_else(|| panic!("the process has ended without '{beginning}'"))
    }

    /// Tells a proxy that the attack begins.
    pub fn mark(&mut self) {
        let input = self.child.stdin.as_mut().expect("it is piped");
        input.write_all(b"m").expect("the proxy reads");
    }

    /// Ends a proxy. Returns the 99th percentiles of gold's time in the proxy and at the server since the mark,
    /// milliseconds.
    pub fn stages(mut self) -> [f64; 2] {
        drop(self.child.stdin.take());
        let told = self.told("stages ");
        let (waiting, served) = told.split_once(' ').expect("two numbers");
        [waiting, served].map(|ms| ms.parse().expect("a number"))
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
