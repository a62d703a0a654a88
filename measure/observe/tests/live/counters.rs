//! Causes that counters of the kernel name: quotas, dropped datagrams and connection attempts, retransmits. Each count is
//! compared with one that is taken at the other end, or by the kernel elsewhere.

use crate::clients::lines_over_tcp;
use crate::{addresses, may_observe, probes};
use observe::{
    ANSWER_RETRANSMITS, Cause, IntendedWaits, LISTEN_DROPS, ObservationReport, ObservationSettings,
    QUOTA_THROTTLED_TIME, QUOTA_THROTTLES, UDP_DROPS, observe,
};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testkit::live_servers::memcached;

/// Observes a port while something is done.
fn report_of<T: Send>(port: u16, work: impl FnOnce() -> T + Send) -> (ObservationReport, T) {
    let settings = ObservationSettings {
        probes: probes(port),
        duration: Duration::from_secs(120),
        cost_duration: Duration::ZERO,
        intended_waits: IntendedWaits::Included,
        cost_limit: None,
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut running = None;
        let attached = || {
            running = Some(scope.spawn(|| {
                let done = work();
                stop.store(true, Ordering::Relaxed);
                done
            }));
        };
        let report = observe(&settings, &stop, attached, &mut |_| {});
        let done = running.map(|work| work.join().expect("what is done does not panic"));
        (report.unwrap_or_else(|error| panic!("{error}")), done.expect("it was started"))
    })
}

/// A control group of version 1 with a quota, removed with the value.
struct QuotaGroup(PathBuf);

impl QuotaGroup {
    fn create(quota_us: u32, period_us: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/sys/fs/cgroup/cpu/tailwright-test-{}", std::process::id()));
        let made = fs::create_dir(&folder)
            .and_then(|()| fs::write(folder.join("cpu.cfs_period_us"), period_us.to_string()))
            .and_then(|()| fs::write(folder.join("cpu.cfs_quota_us"), quota_us.to_string()));
        match made {
            Ok(()) => Some(Self(folder)),
            Err(error) => {
                testkit::skip(&format!("no group with a CPU quota can be made: {error}"));
                None
            }
        }
    }

    fn take_in(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).expect("the group is ours");
    }

    fn counted(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.0.join("cpu.stat")).expect("the group is ours");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name} in {text}"))
    }
}

impl Drop for QuotaGroup {
    fn drop(&mut self) {
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_cpu_quota_is_named_and_its_time_is_that_of_the_kernel() {
    if !may_observe() {
        return;
    }
    let Some(group) = QuotaGroup::create(3_000, 50_000) else { return };
    let Some(server) = memcached(1) else { return };
    group.take_in(server.id());
    let address = addresses(&server)[0];
    let (report, counted) = report_of(server.port(), || {
        // Its groups are known from its first request on.
        lines_over_tcp(address, 1, 1, &[]);
        let before = [group.counted("nr_throttled"), group.counted("throttled_time")];
        lines_over_tcp(address, 3, 6000, &[]);
        [group.counted("nr_throttled") - before[0], group.counted("throttled_time") - before[1]]
    });
    let [throttled, throttled_ns] = counted;
    let counters = &report.counters;
    assert!(throttled >= 5, "the quota does not hold: {counters:?}");
    let named = counters.throttled.first().expect("the group is named");
    assert!(named.group.ends_with(&format!("tailwright-test-{}", std::process::id())), "{named:?}");
    assert_eq!(named.quota.map(|quota| (quota.quota_us, quota.period_us)), Some((3_000, 50_000)));
    assert!(named.command.as_ref().is_some_and(|command| command.contains("6000")), "{named:?}");
    let seen = [counters.total(&QUOTA_THROTTLES), counters.total(&QUOTA_THROTTLED_TIME)];
    println!(
        "kernel {throttled} times, {throttled_ns} ns; reported {seen:?}; threads {}",
        counters.threads_throttled_ns
    );
    // The last throttling may end after the clients have, and the first may come before the server's groups are read:
    // that takes until its first request has been joined.
    let nearly = |kernel: u64, tolerance: u64| kernel.saturating_sub(tolerance)..=kernel + tolerance;
    assert!(nearly(throttled, 2).contains(&seen[0]), "{seen:?} of {counted:?}");
    assert!(nearly(throttled_ns, 100_000_000).contains(&seen[1]), "{seen:?} of {counted:?}");
    // One thread of the server works: what it waited for is what the kernel has counted.
    let ratio = counters.threads_throttled_ns as f64 / seen[1] as f64;
    assert!((0.9..=1.02).contains(&ratio), "{ratio}: {counters:?}");
    let near = report.causes.percentiles.last().expect("requests were seen");
    let others = near.share(Cause::OtherProcess);
    assert!(near.share(Cause::Throttled) > 0.5 && near.share(Cause::Throttled) > others, "{near:?}");
}

#[test]
fn dropped_datagrams_are_those_that_clients_miss() {
    if !may_observe() {
        return;
    }
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    rustix::net::sockopt::set_socket_recv_buffer_size(&server, 4096).expect("it is ours");
    let address = server.local_addr().expect("it is bound");
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let (report, (sent, answered)) = report_of(address.port(), || {
        let mut sent = 0;
        let mut answered = 0;
        let mut buffer = [0; 64];
        for _ in 0..50 {
            for _ in 0..40 {
                client.send_to(b"question", address).expect("it can be sent");
                sent += 1;
            }
            // The server answers what has found room.
            server.set_nonblocking(true).expect("it is ours");
            while let Ok((count, peer)) = server.recv_from(&mut buffer) {
                server.send_to(&buffer[..count], peer).expect("it can be sent");
            }
            client.set_nonblocking(true).expect("it is ours");
            while client.recv_from(&mut buffer).is_ok() {
                answered += 1;
            }
        }
        (sent, answered)
    });
    let dropped = report.counters.total(&UDP_DROPS);
    println!("{sent} sent, {answered} answered, {dropped} dropped");
    assert!(dropped > 0, "nothing was dropped");
    assert_eq!(dropped, sent - answered, "{:?}", report.counters);
    let losses: Vec<&str> = report.counters.losses().map(|count| count.counter.name).collect();
    assert!(losses.contains(&"udp_drops"), "{losses:?}");
}

#[test]
fn connection_attempts_that_are_dropped_are_those_that_do_not_connect() {
    if !may_observe() {
        return;
    }
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
        .expect("a socket can be made");
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
    rustix::net::listen(&socket, 3).expect("it is bound");
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().expect("it is bound");
    let (report, (tried, connected)) = report_of(address.port(), || {
        // Shorter than the second after which a client tries again.
        let attempts: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| TcpStream::connect_timeout(&address, Duration::from_millis(600)).ok())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        (attempts.len(), attempts.iter().flatten().count())
    });
    let dropped = report.counters.total(&LISTEN_DROPS);
    println!("{tried} tried, {connected} connected, {dropped} dropped");
    if dropped == 0 {
        let found =
            machine::network_counts::of_namespaces_with(&[address.port()].into(), &Default::default());
        if found.values().all(|network| network.listen_drops.is_empty()) {
            testkit::skip("the kernel does not describe its sockets (no tcp_diag)");
            return;
        }
    }
    assert_eq!(dropped, (tried - connected) as u64, "{:?}", report.counters);
    assert!(dropped > 0);
}

/// A rule that drops some of the packets of a port, removed with the value.
struct DroppingRule;

impl DroppingRule {
    const TABLE: &str = "tailwright_test_drops";

    fn create(port: u16) -> Option<Self> {
        let table = Self::TABLE;
        let rules = format!(
            "table ip {table} {{ chain input {{ type filter hook input priority 0; tcp sport {port} \
             meta length > 60 numgen random mod 100 < 5 counter drop; }}; }}"
        );
        let _ = Command::new("nft").args(["delete", "table", "ip", table]).output();
        let made = Command::new("nft").arg(&rules).output();
        if made.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self);
        }
        testkit::skip(&format!("packets cannot be dropped by nft: {made:?}"));
        None
    }

    /// The packets that the kernel has dropped.
    fn dropped() -> u64 {
        let listed =
            Command::new("nft").args(["list", "table", "ip", Self::TABLE]).output().expect("nft runs");
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let count =
            text.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        count.unwrap_or_else(|| panic!("a counter in {text}"))
    }
}

impl Drop for DroppingRule {
    fn drop(&mut self) {
        let _ = Command::new("nft").args(["delete", "table", "ip", Self::TABLE]).output();
    }
}

#[test]
fn segments_that_are_sent_again_are_those_that_were_dropped() {
    if !may_observe() {
        return;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let Some(_rule) = DroppingRule::create(address.port()) else { return };
    let (report, dropped) = report_of(address.port(), || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a client connects");
                let mut buffer = [0; 64];
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                    stream.write_all(&[7; 200]).expect("the client reads");
                }
            });
            let mut stream = TcpStream::connect(address).expect("the server accepts");
            let mut answer = [0; 200];
            for _ in 0..400 {
                stream.write_all(b"question").expect("the server reads");
                stream.read_exact(&mut answer).expect("the server answers");
            }
        });
        DroppingRule::dropped()
    });
    let again = report.counters.total(&ANSWER_RETRANSMITS);
    println!("{dropped} answers dropped, {again} segments sent again");
    assert!(dropped > 0, "no packet was dropped in 400");
    // The kernel passes over a run of a program now and then. A loss probe may be sent for an answer whose
    // acknowledgement is late on a busy machine.
    assert!(
        again * 10 >= dropped * 8 && again <= dropped * 3 + 10,
        "{again} of {dropped}: {:?}",
        report.counters
    );
}
