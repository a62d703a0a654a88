//! A soak test: real servers, a proxy before each, clients that know the expected value of every byte,
//! and faults. Policies change every second, connections are killed or half closed, servers and a proxy
//! are killed or drained and restarted, and hostile clients attack.
//!
//! `cargo bench -p enforce --bench soak -- SECONDS` (default 20). Ends with exit code 1 if acknowledged
//! data is lost, a byte is wrong, a connection was cut off without reason, or the proxy still holds state
//! at the end. The first proxy runs throughout: its memory is watched.

#![allow(unreachable_pub, reason = "modules of one program")]

mod client;
mod codec;
mod configurations;
mod hostile;
mod ledger;
mod report;
mod servers;
mod world;

use client::{Client, Plan, REGION};
use codec::Protocol;
use enforce::storage;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use servers::{PROXY, ProxyProcess, Servers};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};
use world::{Fronts, World, count};

/// Set in the second run, inside a namespace.
const INSIDE: &str = "TAILWRIGHT_SOAK_INSIDE";
/// A second address, because ganesha fails to find that of the loopback device; its files are in memory.
const SET_UP: &str = "ip link set lo up && ip link add v0 type veth peer name v1 && ip addr add 10.99.0.1/24 dev v0 \
    && ip link set v0 up && ip link set v1 up \
    && mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind /run/export /var/lib/nfs \
    && mount -t tmpfs tmpfs /var/lib/nfs && mkdir -p /var/lib/nfs/ganesha";
/// Number of connections of each protocol.
const CLIENTS: u32 = 4;

fn main() -> ExitCode {
    if let Some(folder) = std::env::var_os(PROXY) {
        configurations::run_proxy(Path::new(&folder));
        return ExitCode::SUCCESS;
    }
    let seconds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(20);
    if std::env::var_os(INSIDE).is_some() {
        let set_up = Command::new("sh").args(["-c", SET_UP]).status();
        assert!(set_up.is_ok_and(|status| status.success()), "the namespace is set up");
        return soak(Duration::from_secs(seconds), true);
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    if unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        let itself = std::env::current_exe().expect("a program has a path");
        let ended = unshare().arg(itself).arg(seconds.to_string()).env(INSIDE, "1").status();
        let code = ended.ok().and_then(|status| status.code()).and_then(|code| u8::try_from(code).ok());
        return ExitCode::from(code.unwrap_or(1));
    }
    testkit::skip("NFS in the soak: namespaces need root and `unshare`");
    soak(Duration::from_secs(seconds), false)
}

/// Returns the addresses of all servers and proxies. Without a separate namespace, free ports are used.
fn addresses(in_namespace: bool) -> [Fronts; 3] {
    if in_namespace {
        return [[127, 0, 0, 1], [127, 0, 2, 1], [127, 0, 2, 2]].map(Fronts::at);
    }
    let on = testkit::free_address;
    [(); 3].map(|()| Fronts { nbd: on(), memcached: on(), nfs: on(), mount: on() })
}

fn soak(time: Duration, in_namespace: bool) -> ExitCode {
    // Kept after a failure, for inspection.
    let folder =
        tempfile::Builder::new().prefix("tailwright-soak-").tempdir().expect("a folder to write in").keep();
    let [servers, first, second] = addresses(in_namespace);
    let world = World { proxies: vec![first, second], servers, ..World::default() };
    let running = Servers::start(&folder, &world, in_namespace);
    let protocols = running.protocols();
    let mut random = StdRng::seed_from_u64(1);
    let mut start = |number: usize, fronts| {
        let hosts = configurations::hosts(fronts, servers, "", &mut random);
        ProxyProcess::start(folder.join(format!("proxy{number}")), &hosts, fronts)
    };
    let first = start(0, first);
    let second = start(1, second);
    let sockets = [first.socket(), second.socket()];
    eprintln!("soak: {} s, {protocols:?}, folder {}", time.as_secs(), folder.display());
    let plans = plans(&protocols);
    let world = &world;
    let (memory, mut clients, mut alive) = std::thread::scope(|scope| {
        let clients: Vec<_> = plans
            .iter()
            .map(|plan| {
                scope.spawn(|| {
                    let mut client = Client::new(*plan, world);
                    client.run();
                    client
                })
            })
            .collect();
        (0..3).for_each(|seed| {
            let protocols = &protocols;
            scope.spawn(move || hostile::run(world, protocols, seed));
        });
        scope.spawn(|| policies(world, &sockets));
        let starter = scope.spawn(|| restarts(world, running, second));
        let watch = scope.spawn(|| watch(world, first, time));
        let (memory, first) = watch.join().expect("the watch ends");
        let clients: Vec<_> =
            clients.into_iter().map(|client| client.join().expect("a client ends")).collect();
        let alive = starter.join().expect("it ends");
        (memory, clients, (first, alive))
    });
    // By then, doubtful writes are settled.
    std::thread::sleep(Duration::from_secs(10));
    let left = storage::query_status(&sockets[0]).map(|status| status.snapshot);
    alive.1.0.revive(world);
    for client in &mut clients {
        if let Err(error) = client.read_all() {
            world.error(format!("the last reading failed: {error}"));
        }
    }
    drop(alive);
    let code = report::print(world, &memory, left, time);
    if code == 0 {
        let _ = std::fs::remove_dir_all(&folder);
    }
    ExitCode::from(code)
}

fn plans(protocols: &[Protocol]) -> Vec<Plan> {
    let mut plans = Vec::new();
    for protocol in protocols {
        for number in 0..CLIENTS {
            let owner = u32::try_from(plans.len() + 1).expect("few clients");
            plans.push(Plan {
                owner,
                protocol: *protocol,
                from: Ipv4Addr::new(127, 0, 1, u8::try_from(owner).expect("few clients")),
                base: if *protocol == Protocol::Nbd { u64::from(number) * REGION } else { 0 },
                depth: [1, 8, 16, 32][number as usize],
                per_second: 150.0,
                seed: owner.into(),
            });
        }
    }
    plans
}

/// Configures another policy and other hosts every second, for each proxy.
fn policies(world: &World, sockets: &[PathBuf; 2]) {
    let mut random = StdRng::seed_from_u64(2);
    while !world.stopped() {
        world.pause(Duration::from_secs(1));
        for (number, socket) in sockets.iter().enumerate() {
            let turns = world.proxy_turns[number].load(SeqCst);
            let policy = configurations::policy(&mut random);
            let fields = configurations::fields(&mut random);
            let hosts = configurations::hosts(world.proxies[number], world.servers, &fields, &mut random);
            match storage::send_policy(socket, Some(&policy), hosts) {
                Ok(_) => count(&world.tally.policies, 1),
                Err(_) if turns % 2 == 1 || world.proxy_turns[number].load(SeqCst) != turns => {}
                Err(error) => world.error(format!("a policy was refused: {error}")),
            }
        }
    }
}

/// Restarts a server every half minute, and the second proxy every two minutes; more often in short runs.
fn restarts(world: &World, mut servers: Servers, mut proxy: ProxyProcess) -> (Servers, ProxyProcess) {
    let mut random = StdRng::seed_from_u64(3);
    let protocols = servers.protocols();
    world.pause(Duration::from_secs(4));
    for round in 0usize.. {
        if world.stopped() {
            break;
        }
        if round % 4 == 3 {
            proxy.again(round % 8 == 3, 1, world);
        } else {
            servers.again(protocols[round % protocols.len()], world);
        }
        let pause = if round < 8 { 3..6 } else { 20..40 };
        for _ in 0..random.random_range(pause) {
            world.pause(Duration::from_secs(1));
            servers.check(world);
        }
    }
    (servers, proxy)
}

/// Samples the memory of the first proxy every second, KiB.
fn watch(world: &World, mut proxy: ProxyProcess, time: Duration) -> (Vec<u64>, ProxyProcess) {
    let begun = Instant::now();
    let mut memory = Vec::new();
    while begun.elapsed() < time {
        std::thread::sleep(Duration::from_secs(1));
        memory.extend(proxy.resident());
        if !proxy.lives() {
            world.error("the first proxy has died".to_owned());
            count(&world.tally.cut, 1);
            break;
        }
        if memory.len() % 60 == 0 {
            report::progress(world, begun.elapsed(), &memory);
        }
    }
    world.stop.store(true, SeqCst);
    (memory, proxy)
}
