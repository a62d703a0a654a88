//! Policies on the real kernel: their configuration, their effect on traffic, and complete removal.
//! Requires root; the tests run one after the other, because they measure.

mod traffic;

use enforce::command::{CommandRunner, Programs, SystemCommand};
use enforce::network::{ApplyOptions, apply, remove};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use testkit::wait_until;
use traffic::{
    Arrivals, Calls, HEADERS, Tenant, Testbed, answer, call, conformance, greedy, lacking, policy, pour,
    record, spans,
};

/// Waits for the turn of a test; none if the machine lacks something.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    match lacking() {
        Some(lack) => {
            testkit::skip(&lack);
            None
        }
        // A failed test leaves nothing that matters here.
        None => Some(TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)),
    }
}

/// Returns a hosts file with one client per workload on `client`, distinguished by the server's ports
/// from 7001.
fn hosts(
    testbed: &Testbed,
    workloads: &[&str],
    client: &str,
    link: &str,
    switch: Option<(&str, &str)>,
) -> String {
    let server = testbed.network.host("server").expect("the network has it");
    let mut more = format!(
        "[[server]]\nname = \"s\"\nhost = \"server\"\naddress = [\"{}\", \"{}\"]\nprotocol = \"udp\"\n",
        server.ipv4, server.ipv6
    );
    let client = testbed.network.host(client).expect("the network has it");
    for (port, workload) in (7001..).zip(workloads) {
        more += &format!(
            "[[client]]\nworkload = \"{workload}\"\nhost = \"{}\"\naddress = [\"{}\", \"{}\"]\nserver_port = [{port}]\n",
            client.name, client.ipv4, client.ipv6
        );
    }
    testbed.hosts_file(link, switch, &more)
}

/// Returns the output of tc, ip and nft for a namespace, without counters and carrier state.
fn picture(netns: &str) -> String {
    let link = Programs
        .run(&SystemCommand::new(&format!("ip -n {netns} -details link show dev eth0")))
        .expect("eth0");
    let (_, sizes) = link.split_once("numtxqueues").expect("details");
    let mut text = sizes.to_owned();
    for line in [
        format!("tc -n {netns} qdisc show"),
        format!("tc -n {netns} -details class show dev eth0"),
        format!("tc -n {netns} filter show dev eth0"),
        format!("ip netns exec {netns} nft list ruleset"),
    ] {
        // tc prints classes in the order of its hash table.
        let printed = Programs.run(&SystemCommand::new(&line)).unwrap_or_else(|error| panic!("{error}"));
        let mut lines: Vec<&str> =
            printed.lines().map(|line| line.split(" direct_packets").next().expect("a part")).collect();
        lines.sort_unstable();
        text += &lines.join("\n");
    }
    text
}

const NESTED: [Tenant; 3] = [
    Tenant("a", 0, &[(1e6, 100e3), (4e6, 20e3)]),
    Tenant("b", 1, &[(500e3, 50e3)]),
    Tenant("c", 2, &[(800e3, 200e3), (2e6, 60e3), (6e6, 10e3)]),
];

#[test]
fn traffic_keeps_to_its_token_buckets() {
    let Some(_turn) = turn() else { return };
    testkit::Rounds { count: 5, must_hold: 3 }.check(keep_to_token_buckets);
}

fn keep_to_token_buckets() -> Result<(), String> {
    let testbed = Testbed::new(&["client", "server"]);
    testbed.apply_all(&policy(&NESTED), &hosts(&testbed, &["a", "b", "c"], "client", "100Mbps", None));
    let stop = Arc::new(AtomicBool::new(false));
    let server = testbed.ipv4("server");
    let ipv6 = testbed.network.host("server").expect("the network has it").ipv6;
    // Long enough for the slowest bucket to be exhausted several times over.
    let is_enough = |arrivals: &Arrivals, _: bool| spans(arrivals, Duration::from_millis(2500));
    // b uses IPv6; the last sender belongs to no workload and fills the rest of the link.
    let to =
        |port| if port == 7002 { SocketAddr::from((ipv6, port)) } else { SocketAddr::from((server, port)) };
    let recorders: Vec<_> =
        (7001..=7003).map(|port| record(testbed.netns("server"), port, port == 7002, is_enough)).collect();
    let senders: Vec<_> =
        (7001..=7004).map(|port| greedy(testbed.netns("client"), to(port), &stop)).collect();
    let recorded: Vec<_> =
        recorders.into_iter().map(|recorder| recorder.join().expect("a recorder ends")).collect();
    stop.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().expect("a sender ends"));
    for (mut arrivals, Tenant(name, _, pairs)) in recorded.into_iter().zip(&NESTED) {
        assert!(arrivals.len() > 500, "{name}: {} packets", arrivals.len());
        if *name == "b" {
            arrivals.iter_mut().for_each(|(_, bytes)| *bytes += 20);
        }
        for (index, (rate, burst)) in pairs.iter().enumerate() {
            let kept = conformance(&arrivals, *rate, *burst);
            if kept.fullest > 1.01 || (index == 0 && kept.steady < 0.99) {
                return Err(format!("{name} ⟨{rate}, {burst}⟩: {kept:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn once_is_enough_and_removal_leaves_nothing() {
    let Some(_turn) = turn() else { return };
    let testbed = Testbed::new(&["client", "server"]);
    let netns: Vec<String> = ["client", "server"].map(|host| testbed.netns(host).to_owned()).to_vec();
    let before: Vec<String> = netns.iter().map(|netns| picture(netns)).collect();
    for filters in ["", "tc"] {
        let mut hosts = hosts(&testbed, &["a", "b", "c"], "client", "100Mbps", None);
        if filters == "tc" {
            hosts = hosts.replace("device.eth0", "filters = \"tc\"\ndevice.eth0");
        }
        let first = testbed.apply_all(&policy(&NESTED), &hosts);
        assert!(first.iter().all(|report| !report.commands.is_empty()), "{first:?}");
        let set_up: Vec<String> = netns.iter().map(|netns| picture(netns)).collect();
        let second = testbed.apply_all(&policy(&NESTED), &hosts);
        assert!(second.iter().all(|report| report.commands.is_empty()), "{filters}: {second:#?}");

        // A change by others is repaired, and nothing else is touched.
        testbed.run(&format!(
            "tc -n {} class change dev eth0 parent 7a17:1 classid 7a17:8 htb rate 1000 ceil 9000000",
            netns[0]
        ));
        let repaired = testbed.apply_all(&policy(&NESTED), &hosts);
        assert_eq!(
            repaired.iter().map(|report| report.commands.len()).collect::<Vec<_>>(),
            [1, 0],
            "{repaired:#?}"
        );
        assert_eq!(repaired[0].commands[0].matches("class replace").count(), 1, "{repaired:#?}");
        assert_eq!(netns.iter().map(|netns| picture(netns)).collect::<Vec<_>>(), set_up);

        for desired in testbed.desired_hosts(&policy(&NESTED), &hosts) {
            remove(&mut Programs, &desired, &testbed.store(), ApplyOptions::default())
                .unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(netns.iter().map(|netns| picture(netns)).collect::<Vec<_>>(), before, "{filters}");
    }
}

#[test]
fn policies_change_under_traffic_without_losing_a_packet() {
    let Some(_turn) = turn() else { return };
    for filters in ["nft", "tc"] {
        let testbed = Testbed::new(&["client", "server"]);
        let with = |workloads: &[&str]| {
            hosts(&testbed, workloads, "client", "100Mbps", None)
                .replace("device.eth0", &format!("filters = \"{filters}\"\ndevice.eth0"))
        };
        testbed.apply_all(&policy(&NESTED[..2]), &with(&["a", "b"]));
        // Until some time after the last packet, in case one arrives twice.
        let is_enough = |arrivals: &Arrivals, is_quiet: bool| arrivals.len() >= PACKETS && is_quiet;
        let recorder = record(testbed.netns("server"), 7001, false, is_enough);
        let to = SocketAddr::from((testbed.ipv4("server"), 7001));
        let sent = traffic::within(testbed.netns("client"), move || send_steadily(to, PACKETS));
        let buckets: [&[(f64, f64)]; 4] =
            [&[(2e6, 1e5)], &[(2e6, 1e5), (4e6, 2e4)], &[], &[(3e6, 1e5), (4e6, 5e4), (5e6, 2e4)]];
        let mut commands = 0;
        for change in buckets {
            let a = Tenant("a", 3, change);
            let reports = testbed.apply_all(&policy(&[NESTED[1].clone(), a]), &with(&["a", "b"]));
            commands += reports.iter().map(|report| report.commands.len()).sum::<usize>();
            assert!(
                reports.iter().all(|report| report.warnings.iter().all(|w| !w.contains("waited"))),
                "{reports:?}"
            );
        }
        assert!(commands > 8, "the policy did change");
        let sent = sent.join().expect("the sender ends");
        let arrived = recorder.join().expect("a recorder ends").len();
        assert_eq!(arrived, sent, "{filters}: packets were lost");
    }
}

/// Number of packets that have to arrive while the policy changes.
const PACKETS: usize = 800;

/// Sends this many packets at a steady pace of 1000 a second, which every limit of the test lets through in time.
fn send_steadily(to: SocketAddr, count: usize) -> usize {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port is free");
    let start = Instant::now();
    for number in 0..count {
        socket.send_to(&[0; traffic::PAYLOAD], to).expect("the queue has room");
        traffic::wait_for(start + Duration::from_millis(number as u64 + 1));
    }
    count
}

#[test]
fn a_switch_goes_by_the_marks() {
    let Some(_turn) = turn() else { return };
    testkit::Rounds { count: 5, must_hold: 3 }.check(go_by_the_marks);
}

fn go_by_the_marks() -> Result<(), String> {
    let testbed = Testbed::new(&["client", "stranger", "server"]);
    let tenants = [Tenant("a", 4, &[(1e6, 50e3)])];
    // The port to the server carries a quarter of the stranger's limit.
    let hosts = hosts(&testbed, &["a"], "client", "80Mbps", Some(("server", "20Mbps")));
    testbed.apply_all(&policy(&tenants), &hosts);
    let stop = Arc::new(AtomicBool::new(false));
    let is_enough = |arrivals: &Arrivals, _: bool| spans(arrivals, Duration::from_millis(2000));
    let recorder = record(testbed.netns("server"), 7001, false, is_enough);
    let to = |port| SocketAddr::from((testbed.ipv4("server"), port));
    let senders = [
        greedy(testbed.netns("client"), to(7001), &stop),
        greedy(testbed.netns("stranger"), to(7002), &stop),
    ];
    let arrivals = recorder.join().expect("a recorder ends");
    stop.store(true, Ordering::Relaxed);
    senders.into_iter().for_each(|sender| sender.join().expect("a sender ends"));
    let kept = conformance(&arrivals, 1e6, 50e3);
    if kept.steady < 0.97 {
        return Err(format!("{kept:?}"));
    }
    let port = &testbed.network.host("server").expect("the network has it").port;
    let classes = testbed.run(&format!("tc -n {} -statistics class show dev {port}", testbed.network.switch));
    let marked =
        classes.split("class htb ").find(|class| class.starts_with("7a17:f ")).expect("the first level");
    let sent = marked.split_once("Sent ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(sent.is_some_and(|bytes| bytes > 100 * (traffic::PAYLOAD as u64 + HEADERS)), "{classes}");
    Ok(())
}

#[test]
fn small_replies_are_not_behind_a_bulk_transfer() {
    let Some(_turn) = turn() else { return };
    let calls = Calls { per_s: 100.0, reply_bytes: 20_000, seconds: 0.8 };
    // Replies and the bulk transfer leave the server by the same device, with the same capacity both
    // ways; the bulk belongs to no workload. Unprotected, neither do the replies.
    let measure = |owner: &str| {
        let testbed = Testbed::new(&["client", "server"]);
        let mut text = hosts(&testbed, &["rpc", "other"], "client", "100Mbps", None);
        text = text.replace("\"udp\"", "\"tcp\"");
        testbed.apply_all(&policy(&[Tenant(owner, 0, &[])]), &text);
        let stop = Arc::new(AtomicBool::new(false));
        let server = answer(testbed.netns("server"), 7001, calls.reply_bytes);
        let bulk =
            pour(testbed.netns("server"), testbed.netns("client"), testbed.ipv4("client"), 9000, &stop);
        // A third of a second of the link: the bulk has filled its queue and reached its steady rate.
        wait_until(Duration::from_secs(60), "the bulk transfer fills the link", || {
            testbed.sent_bytes("server", "eth0") > 4_000_000
        });
        let to = SocketAddr::from((testbed.ipv4("server"), 7001));
        let latencies = call(testbed.netns("client"), to, calls).join().expect("the caller ends");
        stop.store(true, Ordering::Relaxed);
        bulk.into_iter().for_each(|end| end.join().expect("the bulk ends"));
        server.join().expect("the server ends");
        latencies.at(0.5)
    };
    testkit::Rounds { count: 5, must_hold: 3 }.check(|| {
        let protected = measure("rpc");
        let unprotected = measure("other");
        let said = || format!("p50 protected {protected} s, unprotected {unprotected} s");
        (protected * 3.0 < unprotected).then_some(()).ok_or_else(said)
    });
}

#[test]
fn what_is_somebody_elses_is_left_alone() {
    let Some(_turn) = turn() else { return };
    let testbed = Testbed::new(&["client", "server"]);
    let sizes = "gso_max_size 30000 gso_max_segs 20";
    testbed.run(&format!("ip -n {} link set dev eth0 {sizes}", testbed.netns("client")));
    testbed.run(&format!("tc -n {} qdisc add dev eth0 root handle 5: htb", testbed.netns("client")));
    let before = picture(testbed.netns("client"));
    let hosts = hosts(&testbed, &["a"], "client", "100Mbps", None);
    let desired = testbed.desired_hosts(&policy(&NESTED[..1]), &hosts);
    let refused = apply(&mut Programs, &desired[0], &testbed.store(), ApplyOptions::default());
    assert!(refused.is_err_and(|error| error.message.contains("qdisc htb 5:")));
    assert_eq!(picture(testbed.netns("client")), before);
    let taken =
        apply(&mut Programs, &desired[0], &testbed.store(), ApplyOptions { replace: true, dry_run: false });
    assert!(taken.is_ok(), "{taken:?}");
    let removed = remove(&mut Programs, &desired[0], &testbed.store(), ApplyOptions::default());
    assert!(removed.is_ok_and(|report| report.warnings[0].contains("qdisc htb 5:")));
    let after = picture(testbed.netns("client"));
    assert!(after.contains(sizes) && !after.contains("htb"), "{after}");
}

#[test]
fn a_dry_run_changes_nothing_and_says_all() {
    let Some(_turn) = turn() else { return };
    let testbed = Testbed::new(&["client", "server"]);
    let hosts = hosts(&testbed, &["a", "b", "c"], "client", "100Mbps", None);
    let before = picture(testbed.netns("client"));
    let desired = testbed.desired_hosts(&policy(&NESTED), &hosts);
    let dry = ApplyOptions { dry_run: true, replace: false };
    let shown =
        apply(&mut Programs, &desired[0], &testbed.store(), dry).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(picture(testbed.netns("client")), before);
    assert!(!testbed.state.exists());
    let done = apply(&mut Programs, &desired[0], &testbed.store(), ApplyOptions::default());
    assert_eq!(done.map(|report| report.commands), Ok(shown.commands));
}

#[test]
fn the_deepest_chain_is_one_that_the_kernel_takes() {
    let Some(_turn) = turn() else { return };
    let testbed = Testbed::new(&["client", "server"]);
    let pairs: Vec<(f64, f64)> = (1..=8).map(|n| (f64::from(n) * 5e5, 1e6 / f64::from(n * n))).collect();
    let hosts = hosts(&testbed, &["a"], "client", "100Mbps", None);
    let reports = testbed.apply_all(&policy(&[Tenant("a", 0, &pairs)]), &hosts);
    assert!(reports[0].warnings.iter().any(|warning| warning.contains("more token buckets")), "{reports:#?}");
    let classes = testbed.run(&format!("tc -n {} class show dev eth0", testbed.netns("client")));
    assert_eq!(classes.lines().count(), 3 + 6 + 1, "{classes}");
}
