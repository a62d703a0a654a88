//! Runs against real servers, where they are installed: nbdkit, memcached, nginx, and nfs-ganesha in a namespace.

mod common;

use common::{MS, Server, options, play, poisson, values, volume, workload};
use load::{ClientHost, LoadOptions, LoadReport, LoadTarget, LoadWorkload, MemcachedTransport, OfferedLoad};
use model::{Op, RequestOutcome};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use testkit::nfs::{FOR_EVERYBODY, GaneshaServer, NamespacedTest, ProcessNumbers, nfs_export};
use units::{Bytes, Nanos};

fn all_done(report: &LoadReport) -> bool {
    report.observations.requests.iter().all(|request| matches!(request.outcome, RequestOutcome::Done(_)))
}

fn verified(duration_ms: u64) -> LoadOptions {
    LoadOptions { verify_data: true, warm_up: Nanos(100 * MS), ..options(duration_ms) }
}

/// Reads and writes of several sizes on several connections: every request is answered, and reads return
/// the data that was written.
fn read_and_write(target: &LoadTarget, sizes: &[u64], connections: usize) -> LoadReport {
    let report = play_sizes(target, sizes, connections);
    assert!(all_done(&report), "{:?}", report.warnings);
    check_data(&report);
    report
}

fn play_sizes(target: &LoadTarget, sizes: &[u64], connections: usize) -> LoadReport {
    let requests = poisson(2000.0, 1000, 11, sizes);
    let observed = requests.iter().filter(|request| request.arrival >= Nanos(100 * MS)).count();
    let report =
        play(vec![workload("w", target.clone(), connections, OfferedLoad::Open(requests))], &verified(1000))
            .unwrap();
    assert_eq!(report.observations.requests.len(), observed);
    report
}

fn check_data(report: &LoadReport) {
    assert_eq!((report.comparison.mismatches, &report.comparison.first), (0, &None));
    assert!(report.comparison.bytes > Bytes(1 << 20), "{:?}", report.comparison);
}

/// Datagrams that the kernel has dropped because a receive buffer was full, which happens to a program that waits for a
/// CPU.
fn dropped_datagrams() -> u64 {
    let snmp = std::fs::read_to_string("/proc/net/snmp").expect("Linux");
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let names = lines.next().expect("names of the counters");
    let values = lines.next().expect("their values");
    let mut counters = names.split(' ').zip(values.split(' '));
    let (_, dropped) = counters.find(|(name, _)| *name == "RcvbufErrors").expect("one of the counters");
    dropped.parse().expect("a number")
}

#[test]
fn nbd() {
    let Some(server) = Server::nbdkit("4M") else { return };
    let target = volume(server.address);
    read_and_write(&target, &[4096, 65536], 3);
    let offered = OfferedLoad::Closed { in_flight: 16, op: Op::Read, size: Bytes(1 << 20), sequential: true };
    let report = play(vec![workload("w", target, 2, offered)], &options(200)).unwrap();
    assert!(all_done(&report) && report.observations.requests.len() > 16);
}

#[test]
fn memcached() {
    let Some(server) = Server::memcached() else { return };
    let target = values(server.address, 20);
    let report = read_and_write(&target, &[100, 4000, 20000], 4);
    assert_eq!(report.counters[0].misses, 0);
    // Every value was stored before the clock started: only contents that are being written are
    // unknown.
    assert!(report.comparison.unknown.0 * 4 < report.comparison.bytes.0, "{:?}", report.comparison);
    let target = values(server.address, 1);
    let offered =
        OfferedLoad::Closed { in_flight: 1, op: Op::Write, size: Bytes(64 << 20), sequential: false };
    let error = play(vec![workload("w", target, 1, offered)], &options(100)).unwrap_err();
    let hint = error.hint.as_deref().unwrap_or_default();
    assert!(error.message.contains("too large") && hint.contains("-I"), "{error:?}");
}

/// Over UDP, reads return the data that was written, for values of one datagram and of many, with keys of
/// a given size.
#[test]
fn memcached_by_udp() {
    let Some(server) = Server::memcached_with_udp() else { return };
    let target = LoadTarget::Memcached {
        server: server.address,
        transport: MemcachedTransport::Udp,
        keys: 20,
        key_size: Some(64),
    };
    let mut report = None;
    for _ in 0..10 {
        let dropped = dropped_datagrams();
        let played = play_sizes(&target, &[100, 1024, 20_000], 4);
        if all_done(&played) {
            report = Some(played);
            break;
        }
        assert!(dropped_datagrams() > dropped, "requests were lost, and no datagram was dropped");
    }
    let Some(report) = report else {
        return testkit::skip("the kernel dropped datagrams in ten rounds: the machine is too busy");
    };
    check_data(&report);
    assert_eq!(report.counters[0].misses, 0);
    let largest = OfferedLoad::Closed { in_flight: 2, op: Op::Write, size: Bytes(60_000), sequential: false };
    let report = play(vec![workload("w", target.clone(), 1, largest)], &options(200)).unwrap();
    assert!(all_done(&report) && report.observations.requests.len() > 10, "{:?}", report.warnings);
    let larger = OfferedLoad::Closed { in_flight: 1, op: Op::Write, size: Bytes(60_001), sequential: false };
    let error = play(vec![workload("w", target, 1, larger)], &options(1)).unwrap_err();
    assert!(error.hint.as_deref().unwrap_or_default().contains("memcached://"), "{error:?}");
}

/// A server loses every third datagram and answers the others: lost requests are counted as lost, and
/// delay neither a closed loop nor the end of the run.
#[test]
fn lost_datagrams() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Values are stored by TCP at the same port.
    let listener = std::net::TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut command = [0; 4096];
            while std::io::Read::read(&mut stream, &mut command).unwrap_or(0) > 0 {
                std::io::Write::write_all(&mut stream, b"STORED\r\n").unwrap();
            }
        }
    });
    let received = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = received.clone();
    std::thread::spawn(move || {
        let mut datagram = [0; 2048];
        for number in 1.. {
            let (count, client) = socket.recv_from(&mut datagram).unwrap();
            assert!(count > 8);
            counter.store(number, std::sync::atomic::Ordering::SeqCst);
            if number % 3 != 0 {
                let answer = [&datagram[..8], b"VALUE k 0 3\r\nabc\r\nEND\r\n"].concat();
                socket.send_to(&answer, client).unwrap();
            }
        }
    });
    let target = LoadTarget::Memcached {
        server: address,
        transport: MemcachedTransport::Udp,
        keys: 1,
        key_size: None,
    };
    let offered = OfferedLoad::Closed { in_flight: 3, op: Op::Read, size: Bytes(3), sequential: false };
    let report = play(vec![workload("w", target, 1, offered)], &options(2500)).unwrap();
    let count = |wanted: fn(&RequestOutcome) -> bool| {
        report.observations.requests.iter().filter(|request| wanted(&request.outcome)).count()
    };
    let sent = received.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(count(|outcome| *outcome == RequestOutcome::Lost), sent / 3);
    assert_eq!(count(|outcome| matches!(outcome, RequestOutcome::Done(_))), sent - sent / 3);
    // All three in flight were lost after nine requests at the latest: a client that waited for ever
    // would have stopped.
    assert!(sent > 9 && report.observations.requests.len() == sent, "{sent}");
}

/// Connections that end after 20 to 40 requests, as in *Tales of the Tail*: every request is answered,
/// over as many connections as necessary.
#[test]
fn connections_of_few_requests() {
    let Some(server) = Server::memcached() else { return };
    let requests = poisson(4000.0, 1000, 5, &[1024]);
    let total = requests.len();
    let few = LoadWorkload {
        requests_per_connection: Some(20..=40),
        ..workload("w", values(server.address, 10), 3, OfferedLoad::Open(requests))
    };
    let report = play(vec![few.clone()], &options(1000)).unwrap();
    assert!(all_done(&report) && report.observations.requests.len() == total, "{:?}", report.warnings);
    let counters = report.counters[0];
    assert_eq!((counters.disconnects, counters.reconnects, report.warnings.len()), (0, 0, 0));
    // Those that are open at the end have taken fewer.
    let renewals = usize::try_from(counters.renewals).unwrap();
    assert!((total / 40 - 3..=total / 20).contains(&renewals), "{renewals} for {total}");
    let refused = LoadWorkload { requests_per_connection: Some(0..=3), ..few };
    assert!(play(vec![refused], &options(1)).is_err());
}

#[test]
fn echo() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    let requests = poisson(2000.0, 500, 3, &[1, 128, 70_000]);
    let total = requests.len();
    let target = LoadTarget::Echo { server };
    let report =
        play(vec![workload("w", target.clone(), 2, OfferedLoad::Open(requests))], &options(500)).unwrap();
    assert!(all_done(&report) && report.observations.requests.len() == total, "{:?}", report.warnings);
    let verified = LoadOptions { verify_data: true, ..options(1) };
    let offered = OfferedLoad::Closed { in_flight: 1, op: Op::Read, size: Bytes(128), sequential: false };
    let error = play(vec![workload("w", target, 1, offered)], &verified).unwrap_err();
    assert!(error.message.contains("cannot be verified"), "{error:?}");
}

fn http_target(server: std::net::SocketAddr, path: &str) -> LoadTarget {
    format!("http://{server}{path}").parse().unwrap()
}

#[test]
fn http() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("www")).unwrap();
    let body: Vec<u8> = (0..10_000u32).map(|n| n.to_le_bytes()[0]).collect();
    std::fs::write(folder.path().join("www/file"), body).unwrap();
    std::fs::write(folder.path().join("www/chunks.html"), "<!--# echo var=\"uri\" -->".repeat(2000)).unwrap();
    // A temporary folder is private, and nginx's workers would lose the rights of root.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let shown = folder.path().display().to_string();
    let server = Server::start("nginx", |port| {
        let configuration = format!(
            "daemon off; master_process off; pid {shown}/pid; error_log {shown}/log; events {{}}\n\
             http {{ access_log off; keepalive_requests 300; client_body_temp_path {shown}/body;\n\
             proxy_temp_path {shown}/p; fastcgi_temp_path {shown}/f; uwsgi_temp_path {shown}/u; scgi_temp_path {shown}/s;\n\
             server {{ listen 127.0.0.1:{port}; root {shown}/www; ssi on; }} }}"
        );
        std::fs::write(folder.path().join("conf"), configuration).unwrap();
        ["-p", &shown, "-c", &format!("{shown}/conf"), "-e", &format!("{shown}/log")]
            .map(String::from)
            .to_vec()
    });
    if let Some(server) = server {
        let requests: Vec<_> = poisson(2000.0, 500, 3, &[10_000])
            .into_iter()
            .map(|r| model::Request { op: Op::Read, ..r })
            .collect();
        let total = requests.len();
        let mut asked = std::net::TcpStream::connect(server.address).unwrap();
        asked.write_all(b"GET /chunks.html HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        asked.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("Transfer-Encoding: chunked"), "{}", &answer[..answer.len().min(300)]);
        // A file of fixed length, and a page that is made as it is sent: in chunks.
        for path in ["/file", "/chunks.html"] {
            let target = http_target(server.address, path);
            let offered = OfferedLoad::Open(requests.clone());
            let report = play(vec![workload("w", target, 2, offered)], &options(500)).unwrap();
            assert!(
                all_done(&report) && report.observations.requests.len() == total,
                "{path}: {:?}",
                report.warnings
            );
            // It closes connections after 300 requests, and says so: nothing fails.
            assert!(report.counters[0].disconnects >= 2, "{path}: {:?}", report.counters);
        }
        let target = http_target(server.address, "/nothing");
        let offered = OfferedLoad::Closed { in_flight: 1, op: Op::Read, size: Bytes(1), sequential: false };
        let report = play(vec![workload("w", target, 1, offered)], &options(50)).unwrap();
        assert!(
            report
                .observations
                .requests
                .iter()
                .all(|request| matches!(request.outcome, RequestOutcome::Failed(_)))
        );
        assert!(
            report.warnings.iter().any(|warning| warning.contains("status 404")),
            "{:?}",
            report.warnings
        );
    }
}

#[test]
fn nfs_in_a_namespace() {
    let test = NamespacedTest {
        name: "nfs_in_a_namespace",
        processes: ProcessNumbers::Own,
        programs: &[],
        set_up: "ip addr add 10.99.0.1/32 dev lo && ip netns add client",
    };
    test.run(against_nfs);
}

fn against_nfs() {
    let mut server = GaneshaServer::start(None, &[nfs_export(1, "/export", FOR_EVERYBODY)]);
    let target: LoadTarget = "nfs://10.99.0.1/export/file?size=4MiB".parse().unwrap();
    // The server is ready once the export can be mounted.
    let nothing = || vec![workload("w", target.clone(), 1, OfferedLoad::Open(Vec::new()))];
    while play(nothing(), &options(1)).is_err() {
        server.check_runs();
    }
    assert_eq!(std::fs::metadata("/run/export/file").unwrap().len(), 4 << 20);
    let bound = LoadWorkload {
        client: ClientHost { netns: None, bind: Some("127.0.0.1".parse().unwrap()) },
        ..workload("bound", target.clone(), 1, OfferedLoad::Open(poisson(200.0, 200, 1, &[4096])))
    };
    assert!(all_done(&play(vec![bound], &options(200)).unwrap()));
    read_and_write(&target, &[4096, 65536, 262_144], 3);
    let kept = std::fs::metadata("/run/export/file").unwrap().len();
    assert_eq!(kept, 4 << 20, "places stay inside of the file");
    check_unreachable(&target);
}

/// Workloads in a namespace without a route to the server, and in one that does not exist.
fn check_unreachable(target: &LoadTarget) {
    let nothing = workload("far", target.clone(), 1, OfferedLoad::Open(Vec::new()));
    let from_netns = |netns: &str| LoadWorkload {
        client: ClientHost { netns: Some(netns.to_owned()), bind: None },
        ..nothing.clone()
    };
    let error = play(vec![from_netns("client")], &options(1)).unwrap_err();
    assert!(
        error.message.contains("workload far") && error.message.contains("in namespace client"),
        "{error:?}"
    );
    let error = play(vec![from_netns("nobody")], &options(1)).unwrap_err();
    assert!(error.message.contains("nobody cannot be entered"), "{error:?}");
}
