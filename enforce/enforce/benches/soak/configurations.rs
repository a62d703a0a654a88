//! Random policies and hosts files, all of which a proxy must accept without dropping anything; and the
//! proxy process.

use crate::world::Fronts;
use enforce::deployment::Deployment;
use enforce::storage::{
    ConfiguredPolicy, PolicyOrigin, Proxy, ProxyConfigurator, ProxyOptions, listen_for_control,
};
use model::Policy;
use rand::RngExt;
use rand::rngs::StdRng;
use std::io::Read;
use std::path::Path;
use workload::device::StorageProfile;

/// Device time of 0.1 ms for 4 KiB.
const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 512, "readBandwidth": 40960000, "writeBandwidth": 40960000 },
    { "requestSize": 1048576, "readBandwidth": 40960000, "writeBandwidth": 40960000 } ] }"#;

/// Number of workloads; clients come from 127.0.1.1 on.
pub const WORKLOADS: u32 = 6;

/// Returns a hosts file with fronts before servers, and `fields` in the storage.
pub fn hosts(listen: Fronts, servers: Fronts, fields: &str, random: &mut StdRng) -> String {
    let fronts = [
        ("nbd", listen.nbd, servers.nbd),
        ("memcached", listen.memcached, servers.memcached),
        ("nfs", listen.nfs, servers.nfs),
        ("nfs", listen.mount, servers.mount),
    ];
    let mut text = testkit::one_server_hosts(&fronts, fields, "");
    for owner in 1..=2 * WORKLOADS {
        let workload = random.random_range(0..=WORKLOADS);
        let export = if random.random_bool(0.2) { "export = \"/export\"" } else { "" };
        text += &format!(
            "[[client]]\nworkload = \"w{workload}\"\nhost = \"here\"\naddress = [\"127.0.1.{owner}\"]\n{export}\n"
        );
    }
    text
}

/// Returns random bounds and modes.
pub fn fields(random: &mut StdRng) -> String {
    let outstanding = random.random_range(1..=32);
    let beside = random.random_range(1..=outstanding);
    let reserve = random.random_range(0..outstanding);
    let mut text = format!("outstanding = {outstanding}\nbeside = {beside}\nreserve = {reserve}\n");
    text += if random.random_bool(0.5) { "over = \"queue\"\n" } else { "over = \"demote\"\n" };
    text += &format!("batch = {}\n", random.random_range(1..=8));
    if random.random_bool(0.3) {
        text += &format!("reads = {}\nwrites_bytes = \"64KiB\"\n", random.random_range(1..=8));
    }
    if random.random_bool(0.5) {
        text += &format!("outstanding_bytes = \"{}KiB\"\n", random.random_range(64..4096));
    }
    text
}

pub fn policy(random: &mut StdRng) -> Policy {
    let mut workloads = Vec::new();
    for number in 0..WORKLOADS {
        if random.random_bool(0.25) {
            continue;
        }
        let limits: Vec<String> = (0..random.random_range(0..=3))
            .map(|_| {
                let rate = random.random_range(0.1..1.0f64);
                let burst = random.random_range(0.001..0.2);
                format!(
                    r#"{{ "stage": "storage", "rate": {rate}, "burst": {burst}, "rate_per_s": {rate},
                    "burst_work": {burst} }}"#
                )
            })
            .collect();
        let level = random.random_range(0..10);
        let limits = limits.join(",");
        workloads.push(format!(
            r#"{{ "name": "w{number}", "admitted": true, "server": "ssd", "priority": {level},
            "slo": "99% < 1s", "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [{limits}] }}"#
        ));
    }
    let text = format!(
        r#"{{ "format": "tailwright-policy-1", "policy_name": "soak", "servers": [{{ "name": "ssd", "class": "ssd",
        "network_bytes_per_s": 1e9, "storage_profile": "p" }}], "workloads": [{}] }}"#,
        workloads.join(",")
    );
    Policy::from_json(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the options of a proxy with these hosts and no policy yet.
pub fn options(hosts: &str) -> ProxyOptions {
    let deployment = Deployment::parse(hosts).unwrap_or_else(|error| panic!("{error}\n{hosts}"));
    let profile = StorageProfile::from_json(PROFILE).expect("the profile is right");
    ProxyOptions::new("ssd", deployment, None, profile)
}

/// Runs a proxy process until its standard input ends; then it drains.
pub fn run_proxy(folder: &Path) {
    let hosts = std::fs::read_to_string(folder.join("hosts")).expect("its parent has written it");
    let options = options(&hosts);
    let proxy = Proxy::bind(options.clone()).unwrap_or_else(|error| panic!("{error}"));
    let remote = proxy.handle();
    let current = ConfiguredPolicy { policy: None, hosts, origin: PolicyOrigin::Files };
    let socket = ProxyConfigurator::new(proxy.handle(), &options, current, None)
        .and_then(|configurator| listen_for_control(&folder.join("control"), configurator))
        .unwrap_or_else(|error| panic!("{error}"));
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        remote.drain();
    });
    let report = proxy.run().unwrap_or_else(|error| panic!("{error}"));
    eprintln!("{:?}", report.snapshot);
    drop(socket);
}
