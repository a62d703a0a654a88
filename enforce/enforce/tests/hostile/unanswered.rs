//! Requests that the server never answers, beside a client of a higher priority.

use crate::mini::Mini;
use crate::proxy::{Running, Server, deployment, policy, profile, say};
use enforce::storage::ProxyOptions;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const GOLD: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 2, 1);
const CLIENTS: &str = r#"
    [[client]]
    workload = "gold"
    host = "here"
    address = ["127.0.1.1"]"#;
/// The time for which such requests counted for everyone.
const COUNTED_ONCE: Duration = Duration::from_secs(5);

fn start(server: SocketAddr) -> Running {
    let deployment = deployment("memcached", server, "outstanding = 4", CLIENTS);
    let policy = policy(&[("gold", 0, &[(1.0, 0.2)])]);
    Running::start(ProxyOptions::new("ssd", deployment, Some(policy), profile()))
}

fn connect(proxy: &Running, from: Ipv4Addr) -> TcpStream {
    let stream = testkit::connect_from(from, proxy.address).expect("the proxy listens");
    stream.set_nodelay(true).expect("a socket of TCP");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// Returns the latencies of this many requests, ascending.
fn latencies(stream: &mut TcpStream, count: usize) -> Vec<Duration> {
    let timed = |_| {
        let begun = Instant::now();
        say(stream, b"get none\r\n", b"END\r\n");
        begun.elapsed()
    };
    let mut all: Vec<Duration> = (0..count).map(timed).collect();
    all.sort_unstable();
    all
}

/// One client, and then one after the other, takes all places with requests that are never answered. The limit is
/// far above a stall of the machine, and far below the time for which such requests counted.
#[test]
fn what_is_never_answered_costs_its_own_workload() {
    let server = Mini::memcached();
    let proxy = start(server.address);
    let mut gold = connect(&proxy, GOLD);
    let alone = latencies(&mut gold, 300);
    let mut hostile = Vec::new();
    let mut beside = Vec::new();
    for round in 0..10 {
        let mut stream = connect(&proxy, STRANGER);
        stream.write_all(&b"get never\r\n".repeat(8)).unwrap();
        hostile.push(stream);
        if round == 0 {
            server.store.await_seen(300 + 4);
        }
        beside.extend(latencies(&mut gold, 100));
    }
    beside.sort_unstable();
    let [longest_alone, longest] = [&alone, &beside].map(|all| all[all.len() - 1]);
    println!(
        "p99 {:?} alone, {:?} beside; at most {longest_alone:?} alone, {longest:?} beside",
        alone[alone.len() * 99 / 100],
        beside[beside.len() * 99 / 100]
    );
    assert!(longest < COUNTED_ONCE / 4, "gold waited {longest:?} for the others' requests");
    // The workload itself has no more at the server than all may have.
    let seen = server.store.seen.load(std::sync::atomic::Ordering::SeqCst);
    assert!(seen <= 300 + 1000 + 4, "{seen} requests have reached the server");
}

/// While a server is stopped no client is closed, and every request is answered once it goes on.
#[test]
fn a_server_that_is_stopped_costs_no_connection() {
    let Some(server) = Server::memcached() else { return };
    let proxy = start(server.address);
    let mut clients: Vec<TcpStream> =
        (0..40).map(|number| connect(&proxy, if number % 4 == 0 { GOLD } else { STRANGER })).collect();
    for stream in &mut clients {
        say(stream, b"get none\r\n", b"END\r\n");
    }
    server.signal("STOP");
    for stream in &mut clients {
        stream.write_all(b"get none\r\nget none\r\n").unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
    let stopped = proxy.remote.status().unwrap();
    server.signal("CONT");
    for stream in &mut clients {
        say(stream, b"mn\r\n", b"END\r\nEND\r\nMN\r\n");
    }
    let snapshot = proxy.remote.status().unwrap();
    assert_eq!((snapshot.cut, snapshot.turned_away, snapshot.connections), (0, 0, 40));
    // Each of two workloads gives one place away while nothing is answered.
    assert!(stopped.released <= 2, "{stopped:?}");
}
