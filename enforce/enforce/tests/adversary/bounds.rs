//! Conservation at the server, and properties of single connections.

use crate::alone_on_the_machine;
use crate::caller::{BLOCK, Caller};
use crate::ground::{GOLD, Ground, GroundSetting, SILVER, stranger, usual_clients, usual_policy};
use crate::oracle::ServedRequest;
use crate::proxy::{Running, Server, deployment, policy, profile, say};
use crate::scripts::named;
use crate::scripts::silence::{quiet_gets_text, silent_text};
use crate::server::RunningServer;
use crate::trial::HostileTrial;
use enforce::storage::ProxyOptions;
use model::ServerEnforcement;
use std::io::Write;
use std::time::{Duration, Instant};
use testkit::Rounds;
use testkit::connect_from;
use units::Nanos;
use wire::Protocol;

/// Requests of each connection.
const REQUESTS: u64 = 400;

/// Every request reaches the server once and is answered once, and the number at the server stays within
/// the bound.
#[test]
fn every_request_is_answered_once() {
    let _alone = alone_on_the_machine();
    for protocol in [Protocol::Nbd, Protocol::Nfs, Protocol::Memcached] {
        let ground = Ground::new(GroundSetting::SMALL);
        std::thread::scope(|scope| {
            for number in 0..6 {
                let ground = &ground;
                scope.spawn(move || {
                    let tag = b'0' + number;
                    let from = if number == 0 { GOLD } else { stranger(number) };
                    let mut caller =
                        Caller::connect(&ground.fronts, protocol, from, tag).expect("a handshake");
                    for _ in 0..REQUESTS {
                        caller.read(BLOCK);
                        caller.write(&[7; 100]);
                    }
                    caller.send().expect("the proxy reads");
                    for _ in 0..2 * REQUESTS {
                        caller.reply().expect("every request is answered");
                    }
                });
            }
        });
        let counts = ground.server.counts();
        assert!(counts.most_at_once <= 4, "{} were at the server", counts.most_at_once);
        for tag in b'0'..b'6' {
            let count = counts.tag(tag);
            assert_eq!((count.arrived, count.answered), (2 * REQUESTS, 2 * REQUESTS), "{protocol:?}");
        }
    }
}

/// The proxy's count of best effort beyond the bounds is what the server saw.
#[test]
fn best_effort_that_bounds_do_not_count_is_counted() {
    let _alone = alone_on_the_machine();
    let expected = GroundSetting::SMALL.cost.of(1, 64 << 10);
    let used = ServerEnforcement {
        channels: 4,
        outstanding: 4,
        beside: 3,
        reserve: 0,
        // The profile rounds outward.
        best_effort_request_s: Nanos(expected + 1000).as_secs(),
        packet_bytes: 0.0,
        link_burst_s: None,
        proxy_s: 0.0,
    };
    let mut policy = usual_policy();
    policy.servers[0].enforcement = Some(used);
    let setting = GroundSetting::SMALL;
    let server = RunningServer::start(setting.channels, setting.cost);
    let ground = Ground::before(server, setting, usual_clients(), Some(policy));
    std::thread::scope(|scope| {
        for (tag, from) in [(b'g', GOLD), (b's', SILVER), (b'0', stranger(0)), (b'1', stranger(1))] {
            let ground = &ground;
            scope.spawn(move || {
                let mut caller =
                    Caller::connect(&ground.fronts, Protocol::Nbd, from, tag).expect("a handshake");
                let sizes = [4096, 64 << 10, 65 << 10, 1 << 20];
                (0..40).for_each(|number| caller.read(sizes[number % sizes.len()]));
                caller.send().expect("the proxy reads");
                (0..40).for_each(|_| drop(caller.reply().expect("every request is answered")));
            });
        }
    });
    let status = ground.handle.status().expect("the proxy runs");
    let told = |name: &str| status.workloads.iter().find(|of| of.workload == name).map(|of| of.unexpected);
    let counts = ground.server.counts();
    let seen = |tags: &[u8]| {
        let larger = |served: &&ServedRequest| tags.contains(&served.tag) && served.cost_ns > expected + 1000;
        counts.served.iter().filter(larger).count() as u64
    };
    assert_eq!((told("(unknown)"), seen(b"01")), (Some(40), 40));
    // Gold keeps its limits with one request at a time. Silver's excess is best effort.
    assert!(told("silver").expect("it was there") > 0, "{status:?}");
    assert!(told("silver") <= Some(seen(b"s")), "{status:?}");
}

/// Quiet gets that miss are not answered; they count until the request behind them is answered.
#[test]
fn quiet_gets_are_bounded() {
    let _alone = alone_on_the_machine();
    let ground = Ground::new(GroundSetting::SMALL);
    let mut stream = connect_from(stranger(1), ground.fronts.of(Protocol::Memcached)).expect("it listens");
    assert_eq!(say(&mut stream, &quiet_gets_text(), b"MN\r\n"), b"MN\r\n");
    let counts = ground.server.counts();
    assert_eq!(counts.tag(b'f').arrived, 1000);
    assert!(counts.most_at_once <= 4, "{} were at the server", counts.most_at_once);
}

/// A client's answer to a call of the server is forwarded at once, beside the client's own requests.
#[test]
fn answers_to_the_server_do_not_wait_behind_requests() {
    let _alone = alone_on_the_machine();
    let trial = HostileTrial::new(named("slow-callback"));
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let alone = trial.alone().p99() / 1e6;
        let (_, seen) = trial.beside_script();
        assert!(seen.callback_ms > 0.0, "the server calls");
        let longest = seen.longest_ns as f64 / 1e6;
        let is_soon = seen.callback_ms <= 10.0 * (alone + longest);
        if is_soon { Ok(()) } else { Err(format!("{} ms, a request takes {longest} ms", seen.callback_ms)) }
    });
}

/// The real memcached does not answer commands with `noreply`.
#[test]
fn silence_of_the_real_memcached() {
    let _alone = alone_on_the_machine();
    let Some(server) = Server::memcached() else { return };
    let clients = "[[client]]\nworkload = \"gold\"\nhost = \"here\"\naddress = [\"127.0.1.1\"]";
    Rounds { count: 3, must_hold: 2 }.check(|| {
        let deployment = deployment("memcached", server.address, "outstanding = 4", clients);
        let policy = policy(&[("gold", 0, &[(1.0, 1000.0)])]);
        let proxy = Running::start(ProxyOptions::new("ssd", deployment, Some(policy), profile()));
        let mut gold = connect_from(GOLD, proxy.address).expect("the proxy listens");
        let mut longest = || {
            let mut longest = Duration::ZERO;
            for _ in 0..200 {
                if longest > Duration::from_secs(1) {
                    break;
                }
                let begun = Instant::now();
                say(&mut gold, b"get nothing\r\n", b"END\r\n");
                longest = longest.max(begun.elapsed());
            }
            longest
        };
        let alone = longest();
        let mut hostile = connect_from(stranger(1), proxy.address).expect("the proxy listens");
        hostile.write_all(&silent_text()).expect("the proxy reads");
        // Time for the command to arrive.
        std::thread::sleep(Duration::from_millis(50));
        let beside = longest();
        if beside < 200 * alone { Ok(()) } else { Err(format!("alone {alone:?}, beside {beside:?}")) }
    });
}
