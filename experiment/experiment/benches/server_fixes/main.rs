//! Figures 5 to 11 of *Tales of the Tail* with live servers of this machine, beside the paper's values.
//! They show the paper's fixes one after the other, p99 and p99.9 (T6 − T1) as times and as multiples of
//! the ideal, and the latency between client and server.
//!
//! `cargo bench -p experiment --bench server_fixes [-- --server memcached --part fixes --seconds 4
//! --rounds 5]`; requires root. Servers: `null-rpc`, `memcached`, `memcached-udp`, `nginx`; parts:
//! `fixes` (Fig. 5, 6, 8, 10), `cores` (Fig. 7), `network` (Fig. 11); several are separated by commas.
//! `--guard` is the time for which requests do not count after a switch, in seconds. A period waits,
//! `--quiet-wait` seconds at most, until other processes leave the machine idle, and is played again if
//! they disturbed it.
//!
//! The server has one CPU; client, wire and observer have the other. Server and client have a namespace
//! each, joined by veth, and RPS steers receive work to the CPU of the host that would do it. A
//! background process computes on the server's CPU for about 25 ms and sleeps for 50. Every period starts
//! a server of its own, sets the fixes as knobs of `experiment`, and undoes them; rounds have every arm
//! once, in random order. Figures are medians over rounds, with the least and the largest. The ideal is
//! one queue with the measured arrivals and the amortised service time of a server that has no pause
//! (section 3.2). All of it is observed, also at saturation.

mod cores;
mod fixes;
mod network;
#[path = "../support/mod.rs"]
mod support;

use model::OperationError;
use std::process::ExitCode;
use std::time::Duration;
use support::rounds::BenchArguments;
use support::server::{ServerKind, ServerPlan, null_rpc, serve_null_rpc_if_asked};
use support::site::{PeriodTimes, Site};

/// Computation time of a request of the null RPC server: long enough for the generator, on another CPU, to
/// keep up.
const WORK: Duration = Duration::from_micros(60);

/// Parameters of a run of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repetition {
    pub(crate) rounds: usize,
    pub(crate) seed: u64,
}

fn main() -> ExitCode {
    match serve_null_rpc_if_asked().and_then(|()| run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), OperationError> {
    let arguments = BenchArguments::read();
    let counted = Duration::from_secs_f64(arguments.value("--seconds", 4.0));
    let guard = Duration::from_secs_f64(arguments.value("--guard", 0.7));
    let quiet_wait = Duration::from_secs_f64(arguments.value("--quiet-wait", 20.0));
    let repetition =
        Repetition { rounds: arguments.value("--rounds", 5), seed: arguments.value("--seed", 1) };
    let state = experiment::default_state_folder()
        .ok_or_else(|| OperationError::machine("there is no folder for the journal"))?;
    let Some(mut site) = Site::open(&state, PeriodTimes { guard, counted, quiet_wait })? else {
        return Ok(());
    };
    site.stop_on_signals().map_err(OperationError::machine)?;
    print_machine(&site, repetition);
    for server in servers() {
        let is_wanted = arguments.asks_for("--server", server.name) && arguments.asks_for("--part", "fixes");
        if is_wanted && !site.is_stopped() && server.is_installed() {
            fixes::compare(&mut site, &server, repetition)?;
        }
    }
    if arguments.asks_for("--part", "cores") && !site.is_stopped() {
        cores::compare(&mut site, repetition)?;
    }
    println!(
        "Fig. 9, NUMA: not observable here unless the machine has several nodes; this one has {}.",
        nodes()
    );
    if arguments.asks_for("--part", "network") && !site.is_stopped() {
        network::compare(&mut site)?;
    }
    if site.is_stopped() {
        println!("interrupted: what was set is undone, and the rest is not measured");
    }
    Ok(())
}

/// The servers of the paper, on one CPU.
fn servers() -> [ServerPlan; 4] {
    let memcached = |udp| ServerKind::Memcached { udp, threads: 1, arguments: &[] };
    [
        ServerPlan::on_one_cpu("null-rpc", ServerKind::NullRpc(null_rpc(None, WORK))),
        ServerPlan::on_one_cpu("memcached", memcached(false)),
        ServerPlan::on_one_cpu("memcached-udp", memcached(true)),
        ServerPlan::on_one_cpu("nginx", ServerKind::Nginx { workers: 1 }),
    ]
}

fn print_machine(site: &Site, repetition: Repetition) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    println!(
        "Linux {}, load average before {}; periods of {} s after {} s, {} rounds",
        read("/proc/sys/kernel/osrelease"),
        read("/proc/loadavg"),
        site.times.counted.as_secs_f64(),
        site.times.guard.as_secs_f64(),
        repetition.rounds
    );
}

/// The number of NUMA nodes.
fn nodes() -> usize {
    let entries = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count().max(1)
}
