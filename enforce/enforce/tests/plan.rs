//! Policies to commands, without a kernel: exact commands by hand, laws for random policies.

use enforce::command::UnreachableHost;
use enforce::deployment::Deployment;
use enforce::network::{ApplyOptions, DesiredNetwork, StateStore, apply, desired_network};
use model::PRIORITY_LEVELS;
use model::{PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Stage, StageLimit};
use proptest::prelude::*;

/// Capacity of links, bytes per second.
const LINK: f64 = 1.25e8;

fn policy(priorities: &[u32]) -> Policy {
    let limit = |(stage, rate_per_s, burst_work)| {
        let capacity = if stage == Stage::Storage { 1.0 } else { LINK };
        StageLimit::new(stage, RateLimit { rate: rate_per_s / capacity, burst: burst_work / capacity }, LINK)
    };
    let limits = [(Stage::NetworkIn, 1e6, 2e5), (Stage::Storage, 0.1, 0.1), (Stage::NetworkOut, 2e6, 3e5)];
    let workload = |(number, priority): (usize, &u32)| {
        let placement = PolicyPlacement {
            server: "ssd-1".into(),
            priority: PerStage::from_fn(|_| *priority),
            bound_s: Some(0.5),
            limits: limits.map(limit).to_vec(),
        };
        PolicyWorkload::admitted(format!("w{number}"), "99% < 1s".parse().expect("an SLO"), placement)
    };
    let server = PolicyServer {
        name: "ssd-1".into(),
        class: "ssd".into(),
        network_bytes_per_s: LINK,
        storage_profile: "ssd".into(),
        storage_profile_hash: None,
        enforcement: None,
    };
    let workloads = priorities.iter().enumerate().map(workload);
    Policy::new("by hand", vec![server], workloads.collect()).unwrap_or_else(|error| panic!("{error}"))
}

const HOSTS: &str = r#"
    [[host]]
    name = "app"
    device.eth0 = "1Gbps"
    [[host]]
    name = "store"
    device.eth0 = "1Gbps"
    [[server]]
    name = "ssd-1"
    host = "store"
    address = ["10.0.0.9", "fd00::9"]
    port = [2049]
"#;

fn deployment(clients: &str) -> Deployment {
    Deployment::parse(&format!("{HOSTS}{clients}")).unwrap_or_else(|error| panic!("{error}"))
}

fn client(number: usize) -> String {
    format!("[[client]]\nworkload = \"w{number}\"\nhost = \"app\"\naddress = [\"10.0.0.{}\"]\n", 20 + number)
}

fn wants(policy: &Policy, clients: &str) -> DesiredNetwork {
    desired_network(policy, &deployment(clients)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn commands_by_hand() {
    let desired = wants(&policy(&[0]), &client(0));
    let dry = ApplyOptions { dry_run: true, replace: false };
    let nowhere = StateStore::new("/nonexistent/folder");
    let commands = |host: usize| {
        apply(&mut UnreachableHost, &desired.hosts[host], &nowhere, dry).expect("a dry run").commands
    };
    let server = [
        "ip link set dev eth0 gso_max_size 1514 gso_max_segs 1",
        "ip route flush cache",
        "tc -batch - <<'END'\n\
         qdisc replace dev eth0 root handle 7a17: htb default 2\n\
         class replace dev eth0 parent 7a17: classid 7a17:1 htb rate 1000000000 ceil 1000000000 burst 12500 cburst 12500 quantum 1514\n\
         class replace dev eth0 parent 7a17:1 classid 7a17:2 htb prio 7 rate 1000 ceil 1000000000 burst 1 cburst 12500 quantum 1514\n\
         class replace dev eth0 parent 7a17:1 classid 7a17:3 htb prio 0 rate 1000 ceil 10000000 burst 1 cburst 1514 quantum 1514\n\
         class replace dev eth0 parent 7a17:1 classid 7a17:8 htb rate 1000 ceil 16000000 burst 1 cburst 300000 quantum 1514\n\
         class replace dev eth0 parent 7a17:8 classid 7a17:f htb prio 0 rate 1000 ceil 1000000000 burst 1 cburst 12500 quantum 1514\n\
         filter add dev eth0 parent 7a17: protocol arp pref 11 u32 match u32 0 0 flowid 7a17:3\n\
         filter add dev eth0 parent 7a17: protocol ipv6 pref 12 u32 match ip6 protocol 58 0xff match u8 0x84 0xfc at 40 flowid 7a17:3\n\
         filter add dev eth0 parent 7a17: protocol ipv6 pref 12 u32 match ip6 protocol 58 0xff match u8 0x88 0xfe at 40 flowid 7a17:3\n\
         END",
        "nft -f - <<'END'\n\
         table inet tailwright\n\
         delete table inet tailwright\n\
         table inet tailwright {\n\
         \x20 chain workloads {\n\
         \x20   type filter hook postrouting priority mangle; policy accept;\n\
         \x20   oifname \"eth0\" ip saddr 10.0.0.9 ip daddr 10.0.0.20 tcp sport 2049 ip dscp set 56 meta priority set 7a17:f accept\n\
         \x20   oifname \"eth0\" ip dscp set cs0\n\
         \x20   oifname \"eth0\" ip6 dscp set cs0\n\
         \x20 }\n\
         }\n\
         END",
    ];
    assert_eq!(commands(1), server);
    // The client's: its own limit, and the flow in the other direction.
    let client = commands(0);
    assert!(client[2].contains("ceil 8000000 burst 1 cburst 200000"), "{}", client[2]);
    assert!(client[3].contains("ip saddr 10.0.0.20 ip daddr 10.0.0.9 tcp dport 2049 "), "{}", client[3]);
}

#[test]
fn contradictions_have_remedies() {
    for (clients, said) in [
        (String::new(), "no [[client]]"),
        (client(0).replace("10.0.0.20", "fd00::20").replace("\"]", "\"]\nport = [70]"), ""),
        (client(0) + &client(0).replace("app", "store"), "several devices"),
        (
            client(0).replace("address", "share = 0.7\naddress")
                + &client(0).replace("\"app\"", "\"store\"\nshare = 0.7"),
            "add up to 1.4",
        ),
        (client(0) + &client(1).replace("10.0.0.21", "10.0.0.20"), "looks the same"),
    ] {
        let result =
            desired_network(&policy(&[0, 1][..clients.matches("w1").count() + 1]), &deployment(&clients));
        match (result, said) {
            (Ok(_), "") => {}
            (Err(error), said) => {
                assert!(!said.is_empty() && error.message.contains(said), "{said}: {error}");
            }
            (Ok(_), said) => panic!("expected: {said}"),
        }
    }
    let apart = HOSTS.replace(", \"fd00::9\"", "") + &client(0).replace("10.0.0.20", "fd00::20");
    let apart = Deployment::parse(&apart).expect("it is right");
    assert!(
        desired_network(&policy(&[0]), &apart).is_err_and(|error| error.message.contains("same version"))
    );
    let moved = policy(&[0]);
    let elsewhere = Deployment::parse(&(HOSTS.replace("ssd-1", "ssd-2") + &client(0))).expect("it is right");
    assert!(desired_network(&moved, &elsewhere).is_err_and(|error| error.message.contains("no [[server]]")));
}

#[test]
fn devices_share_by_share() {
    let two = client(0).replace("address", "share = 0.25\naddress")
        + &client(0).replace("\"app\"", "\"store\"\nshare = 0.75").replace("10.0.0.20", "10.0.0.9");
    let desired = wants(&policy(&[0]), &two);
    let rates: Vec<f64> = desired
        .hosts
        .iter()
        .flat_map(|host| &host.devices)
        .flat_map(|d| &d.classes)
        .map(|l| l.buckets[0].rate_bytes_per_s)
        .collect();
    assert_eq!(rates, [0.25e6, 0.75e6, 2e6]);
}

/// Limits that no packet can reach are reported, with a remedy.
#[test]
fn limits_without_effect_are_said() {
    let with_storage = HOSTS.replace(
        "port = [2049]",
        "[server.storage]\nprofile = \"p\"\nfront = [{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }]",
    );
    for (hosts, client, said) in [
        (with_storage.clone(), client(0), None),
        (HOSTS.to_owned(), client(0), Some("its limits at storage are not enforced")),
        (
            with_storage.clone(),
            client(0).replace("\"app\"", "\"store\""),
            Some("network-in cannot take effect"),
        ),
        // A host's traffic to itself leaves by its loopback device.
        (with_storage.replace("eth0", "lo"), client(0).replace("\"app\"", "\"store\""), None),
    ] {
        let deployment = Deployment::parse(&(hosts + &client)).unwrap_or_else(|error| panic!("{error}"));
        let warnings =
            desired_network(&policy(&[0]), &deployment).unwrap_or_else(|error| panic!("{error}")).warnings;
        match said {
            Some(said) => assert!(warnings.len() == 1 && warnings[0].contains(said), "{said}: {warnings:?}"),
            None => assert!(warnings.is_empty(), "{warnings:?}"),
        }
    }
}

/// Numbers beyond tc's range are refused, and not replaced by the nearest valid one.
#[test]
fn numbers_beyond_tc_are_refused_or_said() {
    for (rate_per_s, refused) in [(1e300, true), (1e18, false), (1.0, false)] {
        let mut wanted = policy(&[0]);
        let limit = &mut wanted.workloads[0].limits[0];
        limit.rate_per_s = rate_per_s;
        // Without its server the document does not state the capacity of links.
        let wanted = Policy::new("x", Vec::new(), wanted.workloads).unwrap_or_else(|error| panic!("{error}"));
        let result = desired_network(&wanted, &deployment(&client(0)));
        assert_eq!(result.is_err(), refused, "{rate_per_s}: {result:?}");
        if let (Ok(desired), true) = (result, rate_per_s < 125.0) {
            let dry = ApplyOptions { dry_run: true, replace: false };
            let nowhere = StateStore::new("/nonexistent/folder");
            let report = apply(&mut UnreachableHost, &desired.hosts[0], &nowhere, dry).expect("a dry run");
            assert!(report.warnings.iter().any(|it| it.contains("less than tc can say")), "{report:?}");
        }
    }
}

proptest! {
    #[test]
    fn levels_keep_the_order(priorities in prop::collection::vec(0u32..30, 1..40)) {
        let clients: String = (0..priorities.len()).map(client).collect();
        let desired = wants(&policy(&priorities), &clients);
        let classes = &desired.hosts[0].devices[0].classes;
        prop_assert_eq!(classes.len(), priorities.len());
        let mut distinct = priorities.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let merged = distinct.len() > PRIORITY_LEVELS;
        prop_assert_eq!(desired.warnings.iter().any(|warning| warning.contains("share the last")), merged);
        for (a, lane) in priorities.iter().zip(classes) {
            prop_assert!(lane.level < PRIORITY_LEVELS);
            for (b, other) in priorities.iter().zip(classes) {
                prop_assert!(a > b || lane.level <= other.level);
                // Only the last level is shared by different priorities.
                prop_assert!(a == b || lane.level != other.level || lane.level == PRIORITY_LEVELS - 1);
            }
            prop_assert_eq!(lane.mark, classes.iter().find(|other| other.level == lane.level).and_then(|o| o.mark));
        }
    }
}
