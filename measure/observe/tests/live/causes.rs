//! Causes that this test injects are found, with their price, and nothing is found where nothing was injected. Prints a
//! row for each: `cargo test -p observe --test live causes:: -- --nocapture --test-threads=1`.

use crate::clients::{Dialogue, Exchange, lines_over_tcp};
use crate::{Watched, addresses, may_observe, observe_while, probes, watch, watch_with};
use observe::{Cause, CauseReport, IntendedWaits, TakenOut};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use testkit::ServerAndClient;
use testkit::live_servers::{RunningServer, memcached, pinned_memcached};

/// How long a server is stopped at a time.
const STOP_TIME: Duration = Duration::from_millis(20);

/// How long the sleeping server sleeps in each request.
const SLEEP_TIME: Duration = Duration::from_millis(2);

/// How often packets for another port are sent, and not.
const FLOODS: usize = 5;

/// Only one cause is injected at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that ends with the value.
pub(crate) struct Background(pub(crate) Child);

impl Background {
    pub(crate) fn start(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap_or_else(|error| panic!("{program}: {error}")))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait(time: Duration) {
    let end = Instant::now() + time;
    while let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
        std::thread::park_timeout(rest);
    }
}

/// The mean time of a cause near p99.9, in nanoseconds.
fn price(report: &CauseReport, cause: Cause) -> f64 {
    report.percentiles.last().map_or(0.0, |near| near.mean(cause))
}

/// The most that a cause is to blame for near any percentile.
fn largest_share(report: &CauseReport, cause: Cause) -> f64 {
    report.percentiles.iter().map(|near| near.share(cause)).fold(0.0, f64::max)
}

fn requests_with(report: &CauseReport, cause: Cause) -> u64 {
    report.percentiles.iter().map(|near| near.with[cause as usize]).sum()
}

/// The mean time of a cause near all percentiles together.
fn typical_queue(report: &CauseReport, cause: Cause) -> f64 {
    report.percentiles.iter().map(|near| near.times[cause as usize] as f64).sum()
}

/// Prints what was injected and what was found, and checks that causes add up to latencies.
#[track_caller]
fn print_row(injected: &str, expected: Option<Cause>, watched: &Watched) {
    let report = &watched.report.causes;
    let [.., last] = &report.percentiles[..] else { panic!("requests were seen") };
    let mut causes = Cause::ALL.to_vec();
    causes.sort_by(|a, b| last.mean(*b).total_cmp(&last.mean(*a)));
    let found: Vec<String> = causes[..3]
        .iter()
        .map(|cause| {
            format!("{} {:.0}us {:.0}%", cause.name(), last.mean(*cause) / 1e3, last.share(*cause) * 100.0)
        })
        .collect();
    let actual = report.without(TakenOut::Nothing).expect("requests were kept").measured;
    let without = expected.and_then(|cause| report.without(TakenOut::Cause(cause)));
    let without = without.map_or("-".to_owned(), |without| {
        format!(
            "{:.0}-{:.0}us",
            without.percentiles[2].least as f64 / 1e3,
            without.percentiles[2].most as f64 / 1e3
        )
    });
    println!("| {injected} | {} | {:.0}us | {without} |", found.join(", "), actual[2] as f64 / 1e3);
    for near in &report.percentiles {
        let total: u128 = near.times.iter().sum();
        let requests = u128::from(near.requests);
        assert!(total >= requests * u128::from(near.latency_min), "{near:?}");
        assert!(total <= requests * u128::from(near.latency_max), "{near:?}");
    }
    let counts = watched.report.counts;
    let not_joined = counts.unrequested + counts.unanswered + counts.discarded;
    assert_eq!(report.requests + not_joined, watched.sent, "{counts:?}");
    // Under such load the kernel passes over its tracepoints now and then.
    assert!(not_joined * 10 <= watched.sent, "{counts:?}, {} events lost", watched.report.lost_events);
}

fn paced() -> Exchange {
    Exchange::new(Dialogue::Memcached, 1000).every(Duration::from_micros(500))
}

#[test]
fn nothing_injected() {
    let _alone = alone();
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let watched = watch(addresses(&server)[0], &paced());
    print_row("nothing", None, &watched);
    let report = &watched.report.causes;
    assert_eq!(requests_with(report, Cause::Stopped), 0, "{report:?}");
    // Its threads wait for each other's locks now and then.
    assert!(requests_with(report, Cause::Asleep) * 100 <= report.requests, "{report:?}");
    let names = report.percentiles.iter().flat_map(|near| &near.interferers);
    assert!(names.clone().all(|(who, _)| who.name != "yes"), "{:?}", names.collect::<Vec<_>>());
}

#[test]
pub(crate) fn a_hog_on_the_cpu_of_the_server() {
    let _alone = alone();
    let cpu = (std::thread::available_parallelism().expect("there are CPUs").get() - 1).to_string();
    let Some(server) = may_observe().then(|| pinned_memcached(1, &cpu)).flatten() else { return };
    let hogs: Vec<Background> = (0..2).map(|_| Background::start("taskset", &["-c", &cpu, "yes"])).collect();
    let watched = watch(addresses(&server)[0], &paced());
    let numbers: Vec<u32> = hogs.iter().map(|hog| hog.0.id()).collect();
    drop(hogs);
    print_row("two processes `yes` on its CPU", Some(Cause::OtherProcess), &watched);
    let report = &watched.report.causes;
    let near = report.percentiles.last().expect("requests were seen");
    let is_hog =
        |(who, _): &&(observe::InterferingProcess, u128)| who.name == "yes" && numbers.contains(&who.process);
    let named = report.percentiles.iter().flat_map(|near| &near.interferers);
    assert!(named.clone().any(|who| is_hog(&who)), "{:?}", named.collect::<Vec<_>>());
    assert!(near.share(Cause::OtherProcess) > 0.3, "{near:?}");
    let without = report.without(TakenOut::Cause(Cause::OtherProcess)).expect("it was seen");
    let actual = report.without(TakenOut::Nothing).expect("requests were kept");
    assert!(without.percentiles[2].least < actual.measured[2]);
}

/// No CPU is ever idle, wherever workers are woken and moved: nothing counts as waking an idle one.
#[test]
fn hogs_on_every_cpu_leave_none_idle() {
    let _alone = alone();
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    testkit::program("taskset").expect("util-linux is installed");
    let cpus = std::thread::available_parallelism().expect("there are CPUs").get();
    let hogs: Vec<Background> =
        (0..cpus).map(|cpu| Background::start("taskset", &["-c", &cpu.to_string(), "yes"])).collect();
    let watched = watch(addresses(&server)[0], &paced());
    drop(hogs);
    print_row("a process `yes` on each CPU", Some(Cause::OtherProcess), &watched);
    let report = &watched.report.causes;
    for cause in [Cause::IdleCpu, Cause::HeldBack] {
        assert!(largest_share(report, cause) < 0.02, "{cause:?}: {report:?}");
    }
}

#[test]
fn a_server_that_is_stopped_now_and_then() {
    let _alone = alone();
    let Some(server) = may_observe().then(|| memcached(1)).flatten() else { return };
    let exchange = paced();
    let done = AtomicBool::new(false);
    let (watched, stopped) = std::thread::scope(|scope| {
        let pulses = scope.spawn(|| pulse(&server, &done));
        let watched = watch(addresses(&server)[0], &exchange);
        done.store(true, Ordering::Relaxed);
        (watched, pulses.join().expect("signals can be sent"))
    });
    print_row(&format!("stopped for {:.0}us", stopped.as_secs_f64() * 1e6), Some(Cause::Stopped), &watched);
    let report = &watched.report.causes;
    // One request of each client can wait while the server is stopped, from soon after the stop to its end.
    let price = price(report, Cause::Stopped);
    assert!(price > 0.3 * STOP_TIME.as_nanos() as f64, "{report:?}");
    assert!(price <= stopped.as_nanos() as f64, "{report:?}");
    assert!(largest_share(report, Cause::Stopped) > 0.5, "{report:?}");
}

/// Stops the server again and again; returns the longest time.
fn pulse(server: &RunningServer, done: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let start = Instant::now();
        server.signal("STOP");
        wait(STOP_TIME);
        server.signal("CONT");
        longest = longest.max(start.elapsed());
        wait(STOP_TIME);
    }
    longest
}

/// Answers each line after a sleep.
fn sleeping_server(listener: &TcpListener, connections: usize) {
    std::thread::scope(|scope| {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().expect("clients connect");
            scope.spawn(move || {
                let mut buffer = [0; 64];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    wait(SLEEP_TIME);
                    stream.write_all(b"ok\n").expect("clients read");
                }
            });
        }
    });
}

#[test]
fn a_server_that_sleeps_in_requests() {
    let _alone = alone();
    if !may_observe() {
        return;
    }
    for intended in [IntendedWaits::Included, IntendedWaits::Excluded] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let watched = std::thread::scope(|scope| {
            scope.spawn(|| sleeping_server(&listener, 2));
            observe_while(probes(address.port()), intended, || lines_over_tcp(address, 2, 200, &[]))
        });
        let report = &watched.report.causes;
        let typical = &report.percentiles[0];
        print_row(&format!("sleeps {SLEEP_TIME:?}, {intended:?}"), Some(Cause::Asleep), &watched);
        if intended == IntendedWaits::Included {
            assert!(typical.mean(Cause::Asleep) >= SLEEP_TIME.as_nanos() as f64, "{report:?}");
            assert!(typical.share(Cause::Asleep) > 0.5, "{report:?}");
        } else {
            let sleep = SLEEP_TIME.as_nanos();
            assert_eq!(requests_with(report, Cause::Asleep), 0, "{report:?}");
            assert!(report.left_out >= sleep * u128::from(watched.sent), "{report:?}");
        }
    }
}

/// memcached gives connections to its threads in turn: every other one is with the same thread.
#[test]
fn connections_that_are_all_with_one_worker() {
    let _alone = alone();
    let Some(server) = may_observe().then(|| memcached(2)).flatten() else { return };
    let address = addresses(&server)[0];
    let clients = [true, false].repeat(6);
    let one = watch_with(address, || lines_over_tcp(address, 12, 2000, &clients));
    print_row("all connections with one worker of two", Some(Cause::OtherIdle), &one);
    let both = watch_with(address, || lines_over_tcp(address, 6, 2000, &[]));
    print_row("the same with both workers", Some(Cause::OtherIdle), &both);
    let one = &one.report.causes;
    let both = &both.report.causes;
    // The other worker has nothing to do but for its first requests.
    let of_other_idle = |report: &CauseReport| {
        let [other_idle, all_busy] =
            [Cause::OtherIdle, Cause::AllBusy].map(|cause| typical_queue(report, cause));
        other_idle / (other_idle + all_busy)
    };
    assert!(of_other_idle(one) > 0.99, "{one:?}");
    assert!(of_other_idle(both) < of_other_idle(one), "{both:?}");
}

/// Packets for another port of the server's host, whose receive work is done by the server's CPU.
#[test]
fn a_flood_of_packets_for_another_port() {
    let _alone = alone();
    if !may_observe() {
        return;
    }
    let Some(network) = ServerAndClient::create() else { return };
    let Some(server) = network.pinned_memcached("1") else { return };
    if !network.receive_on_cpus("2") {
        testkit::skip("the kernel does not let receive work be moved to a CPU");
        return;
    }
    let address = network.addresses(server.port())[0];
    let exchange = paced().from(network.client());
    let mut without = 0.0;
    let mut with = 0.0;
    // In turn, because others use this machine, too.
    for _ in 0..FLOODS {
        let calm = watch(address, &exchange);
        print_row("nothing, two hosts", Some(Cause::Softirq), &calm);
        without += price(&calm.report.causes, Cause::Softirq);
        let done = AtomicBool::new(false);
        let flooded = std::thread::scope(|scope| {
            scope.spawn(|| flood(network.client(), SocketAddr::new(address.ip(), 9), &done));
            let flooded = watch(address, &exchange);
            done.store(true, Ordering::Relaxed);
            flooded
        });
        print_row("a flood of packets for another port", Some(Cause::Softirq), &flooded);
        with += price(&flooded.report.causes, Cause::Softirq);
    }
    // Times: the share of a request that nothing delays is large whatever it is made of.
    assert!(with > without, "softirq near p99.9 in {FLOODS} rounds: {with} ns with, {without} ns without");
}

fn flood(netns: &str, to: SocketAddr, done: &AtomicBool) {
    machine::netns::enter(netns).unwrap_or_else(|error| panic!("{error}"));
    machine::affinity::pin(0).expect("there is a CPU 0");
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    while !done.load(Ordering::Relaxed) {
        // Nobody listens: what comes back of that is of no interest.
        let _ = socket.send_to(&[0; 1200], to);
    }
}
