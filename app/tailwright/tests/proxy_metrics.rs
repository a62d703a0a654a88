//! `tailwright proxy --listen`: what scrapers read is what clients, server and `--status` have counted.

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use support::Folder;
use support::scraped::{check_dashboard, parsed_by_python, samples, scrape};
use support::servers::{Running, memcached};

/// A name that has to be written in another way in the text of metrics.
const NAME: &str = "w\"e\\b";

/// How many keys the load uses; it sets each once before its clock starts.
const KEYS: u32 = 5;

fn write_files(folder: &Folder, forward: SocketAddr) {
    let name = serde_json::to_string(NAME).expect("a text");
    folder.write(
        "hosts.toml",
        &format!(
            "[[host]]\nname = \"here\"\ndevice.nothing = \"1Gbps\"\n[[server]]\nname = \"cache\"\nhost = \"here\"\n\
             address = [\"127.0.0.1\"]\n[server.storage]\nprofile = \"profile.json\"\noutstanding = 1\n\
             front = [{{ protocol = \"memcached\", listen = \"127.0.0.1:0\", forward = \"{forward}\" }}]\n\
             [[client]]\nworkload = {name}\nhost = \"here\"\naddress = [\"127.0.0.1\"]\n"
        ),
    );
    folder.write(
        "policy.json",
        &format!(
            r#"{{ "format": "tailwright-policy-1", "policy_name": "by hand",
            "servers": [{{ "name": "cache", "class": "ssd", "network_bytes_per_s": 1.25e8, "storage_profile": "p" }}],
            "workloads": [{{ "name": {name}, "admitted": true, "server": "cache", "priority": 0,
            "slo": "99.9% < 10s", "slo_percentile": 99.9, "slo_s": 10.0, "bound_s": 2.5,
            "limits": [{{ "stage": "storage", "rate": 1.0, "burst": 5.0, "rate_per_s": 1.0, "burst_work": 5.0 }}] }}] }}"#
        ),
    );
    folder.write(
        "profile.json",
        r#"{ "bandwidthTable": [ { "requestSize": 4096, "readBandwidth": 40960000, "writeBandwidth": 40960000 } ] }"#,
    );
}

/// A proxy with metrics, where these are, and where it listens.
fn start(folder: &Folder) -> (Running, SocketAddr, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["proxy", "policy.json", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"])
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut address_behind = |start: &str, end: &str| -> SocketAddr {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(lines.read_line(&mut line).expect("text") > 0, "it has ended");
            if let Some(address) = line.trim_end().strip_prefix(start) {
                return address.strip_suffix(end).expect("an address").parse().expect("an address");
            }
        }
    };
    let metrics = address_behind("metrics: http://", "/metrics");
    let front = address_behind("proxy: listening on ", "");
    (Running(child), metrics, front)
}

/// How many gets and sets a memcached has had.
fn counted_by_the_server(address: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"stats\r\nquit\r\n").expect("it reads");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it answers");
    let count = |name: &str| -> f64 {
        let line = said.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name));
        line.expect("a counter").trim().parse().expect("a number")
    };
    count("cmd_get") + count("cmd_set")
}

#[test]
fn scrapers_read_what_was_served() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    write_files(&folder, address);
    let (_proxy, metrics, front) = start(&folder);
    let first = samples(&scrape(metrics));
    assert_eq!(
        first[r#"tailwright_proxy_request_duration_seconds_count{workload="w\"e\\b"}"#], 0.0,
        "{first:?}"
    );
    std::thread::sleep(std::time::Duration::from_millis(600));
    folder.write(
        "load.toml",
        &format!(
            "duration = \"2s\"\n[[workload]]\nname = \"web\"\ntarget = \"memcached://{front}?keys={KEYS}\"\n\
             connections = 2\narrivals = \"poisson(500/s)\"\nsize = \"1KiB\"\nreads = 0.7"
        ),
    );
    let load = folder.run(&["load", "load.toml", "--json"]).expect_code(0).json();
    // A page may be half a second old.
    let labels = r#"{workload="w\"e\\b"}"#;
    let count = format!("tailwright_proxy_request_duration_seconds_count{labels}");
    let served = counted_by_the_server(address);
    let mut page = String::new();
    testkit::wait_until(std::time::Duration::from_secs(60), "all requests are counted", || {
        page = scrape(metrics);
        samples(&page).get(&count).is_some_and(|counted| *counted >= served)
    });
    let read = samples(&page);
    let value = |name: &str| read[&format!("{name}{labels}")];
    assert!(served > 500.0 && read[&count] == served, "{served} served, {} counted", read[&count]);
    let status = folder.run(&["proxy", "--status", "--server", "cache", "--state", "state", "--json"]);
    let status = status.expect_code(0).json();
    let seen = &status["workloads"][0];
    assert_eq!(
        (seen["workload"].as_str(), seen["requests"].as_f64()),
        (Some(NAME), Some(served)),
        "{status}"
    );
    for (sum, parts) in [
        ("tailwright_proxy_wait_duration_seconds_sum", &["waited_s"][..]),
        ("tailwright_proxy_request_duration_seconds_sum", &["waited_s", "served_s"]),
    ] {
        let expected: f64 = parts.iter().map(|part| seen[part].as_f64().expect("a number")).sum();
        assert!(
            expected > 0.0 && (value(sum) / expected - 1.0).abs() < 1e-6,
            "{sum} {} for {expected}",
            value(sum)
        );
    }
    assert_eq!(value("tailwright_proxy_request_bytes_total"), seen["bytes"].as_f64().expect("a number"));
    // What the client waited holds what the proxy saw of it, but for the keys set before the client's clock.
    let bucket = r#"tailwright_proxy_request_duration_seconds_bucket{le=""#;
    let of_client = load["workloads"][0]["max_s"].as_f64().expect("a number");
    let beyond = read.iter().filter_map(|(series, below)| {
        let end = series.strip_prefix(bucket)?.split('"').next()?.parse::<f64>().ok()?;
        (end > of_client).then_some(served - below)
    });
    let beyond = beyond.fold(0.0, f64::max);
    assert!(
        beyond <= f64::from(KEYS),
        "{beyond} took longer than the client's longest, {of_client} s: {page}"
    );
    let slo = r#"tailwright_proxy_slo_seconds{workload="w\"e\\b",percentile="99.9"}"#;
    assert_eq!((read[slo], value("tailwright_proxy_bound_seconds")), (10.0, 2.5));
    if let Some(families) = parsed_by_python(&page) {
        for family in [
            "tailwright_proxy_request_duration_seconds histogram seconds 100",
            "tailwright_proxy_slo_seconds gauge seconds 1",
            "tailwright_proxy_cut_connections counter  1",
        ] {
            assert!(families.lines().any(|line| line == family), "{family}: {families}");
        }
    }
    check_dashboard("grafana/proxy.json", &page, 10);
}

#[test]
fn an_address_that_is_taken_is_said_before_the_proxy_serves() {
    let taken = testkit::free_address();
    let _listener = std::net::TcpListener::bind(taken).expect("it is free");
    let folder = Folder::new();
    write_files(&folder, testkit::free_address());
    let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--listen"];
    let taken = taken.to_string();
    let refused = folder.run(&[&fixed[..], &[&taken], &["--state", "state"]].concat()).expect_code(3);
    assert!(refused.stderr.contains(&taken) && refused.stderr.contains("hint"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("listening on"), "{}", refused.stderr);
    let no_address = folder.run(&[&fixed[..], &["localhost"]].concat()).expect_code(2);
    assert!(no_address.stderr.contains("expected IP:PORT, such as"), "{}", no_address.stderr);
}
