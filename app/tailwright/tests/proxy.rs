//! `tailwright proxy`, `apply` and `verify --load-file` together, as users run them, before a real memcached.

mod support;

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use support::Folder;
use support::servers::{Running, memcached};

const POLICY: &str = r#"{ "format": "tailwright-policy-1", "policy_name": "by hand",
  "servers": [{ "name": "cache", "class": "ssd", "network_bytes_per_s": 1.25e8, "storage_profile": "p" }],
  "workloads": [{ "name": "web", "admitted": true, "server": "cache", "priority": 0, "slo": "50% < 10s",
    "slo_percentile": 50.0, "slo_s": 10.0, "bound_s": 10.0,
    "limits": [{ "stage": "storage", "rate": 1.0, "burst": 5.0, "rate_per_s": 1.0, "burst_work": 5.0 }] }] }"#;

const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 4096, "readBandwidth": 40960000, "writeBandwidth": 40960000 } ] }"#;

fn hosts(forward: SocketAddr) -> String {
    format!(
        r#"
[[host]]
name = "here"
device.nothing = "1Gbps"
[[server]]
name = "cache"
host = "here"
address = ["127.0.0.1"]
[server.storage]
profile = "profile.json"
front = [{{ protocol = "memcached", listen = "127.0.0.1:0", forward = "{forward}" }}]
[[client]]
workload = "web"
host = "here"
address = ["127.0.0.1"]
"#
    )
}

/// The proxy of a folder's files, and where it listens.
fn proxy(folder: &Folder, args: &[&str]) -> (Running, SocketAddr, BufReader<std::process::ChildStderr>) {
    let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(fixed)
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    // Before it listens it may say which policy it uses.
    let address = loop {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "it has ended");
        if let Some(address) = line.trim().strip_prefix("proxy: listening on ") {
            break address.parse().unwrap();
        }
    };
    (Running(child), address, lines)
}

#[test]
fn a_policy_reaches_a_running_proxy_and_load_is_judged() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    folder.write("hosts.toml", &hosts(address));
    folder.write("policy.json", POLICY);
    folder.write("profile.json", PROFILE);
    let (mut running, front, mut lines) = proxy(&folder, &["--record", "record.parquet", "--json"]);
    let status = || {
        folder
            .run(&["proxy", "--status", "--server", "cache", "--state", "state", "--json"])
            .expect_code(0)
            .json()
    };
    assert_eq!(status()["changes"], 0);

    // Another one before the same server is refused, and does not take the first one's place.
    let second = folder.run(&["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"]);
    assert!(second.expect_code(3).stderr.contains("running already"));

    folder.write(
        "load.toml",
        &format!(
            "duration = \"1s\"\nverify_data = true\n[[workload]]\nname = \"web\"\ntarget = \"memcached://{front}?keys=5\"\n\
             connections = 2\narrivals = \"poisson(500/s)\"\nsize = \"1KiB\"\nreads = 0.7"
        ),
    );
    let judged =
        folder.run(&["verify", "policy.json", "--load-file", "load.toml", "--json"]).expect_code(0).json();
    assert_eq!(judged["workloads"][0]["verdict"], "met", "{judged}");
    let seen = status();
    let web: Vec<&Value> =
        seen["workloads"].as_array().unwrap().iter().filter(|seen| seen["requests"] != 0).collect();
    // Without a policy it knows whom the hosts file names.
    assert_eq!(web[0]["workload"], "web");

    // Files are read again on SIGHUP: they say what they said before, and then something else.
    for (fields, changes) in [("", 0), ("outstanding = 3\n", 1)] {
        folder.write("hosts.toml", &hosts(address).replace("front =", &format!("{fields}front =")));
        running.signal("HUP");
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("read again") && line.contains("unchanged") == fields.is_empty(), "{line}");
        assert_eq!(status()["changes"], changes);
    }

    running.signal("TERM");
    assert!(running.0.wait().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(running.0.stdout.as_mut().unwrap(), &mut said).unwrap();
    let last: Value = serde_json::from_str(&said).unwrap();
    support::schema::check_document(&last);
    assert_eq!((&last["held_bytes"], &last["outstanding"]), (&Value::from(0), &Value::from(0)));
    // What it recorded can be judged like anything else.
    folder.run(&["verify", "record.parquet", "--slo", "web=50% < 10s"]).expect_code(0);
    let gone = folder.run(&["proxy", "--status", "--server", "cache", "--state", "state"]);
    assert!(gone.expect_code(3).stderr.contains("no proxy answers"));
}

/// A network namespace that is removed in the end; none without root.
struct Namespace(String);

impl Namespace {
    fn new(purpose: &str) -> Option<Self> {
        let name = format!("tw-test-{purpose}-{}", std::process::id());
        let ip = |args: &str| {
            let made = Command::new("ip").args(args.split(' ')).stderr(Stdio::null()).status();
            made.is_ok_and(|status| status.success())
        };
        if !ip(&format!("netns add {name}")) {
            testkit::skip("network namespaces need root and iproute2");
            return None;
        }
        let made = Self(name);
        assert!(ip(&format!("-n {} link set lo up", made.0)));
        Some(made)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn apply_brings_a_policy_and_takes_it_away() {
    let Some((_memcached, address)) = memcached() else { return };
    let Some(namespace) = Namespace::new("proxy") else { return };
    let folder = Folder::new();
    let clients = "[[client]]\nworkload = \"web\"\nhost = \"here\"\naddress = [\"127.0.0.2\"]\n";
    let hosts =
        hosts(address).replace("device.nothing = \"1Gbps\"", "device.lo = \"1Gbps\"\nnetns = \"NAME\"");
    let until_clients = hosts.split("[[client]]").next().unwrap();
    folder.write("hosts.toml", &(until_clients.replace("NAME", &namespace.0) + clients));
    folder.write("policy.json", POLICY);
    folder.write("profile.json", PROFILE);
    let (_running, front, _lines) = proxy(&folder, &[]);
    let apply = |args: &[&str]| {
        let fixed = ["apply", "--hosts", "hosts.toml", "--state", "state"];
        folder.run(&[&fixed[..], args].concat()).expect_code(0).stdout
    };
    let status = |field: &str| {
        let asked = ["proxy", "--status", "--server", "cache", "--state", "state", "--json"];
        folder.run(&asked).expect_code(0).json()[field].clone()
    };
    assert!(
        apply(&["policy.json", "--dry-run"])
            .contains("# proxy before cache at state/proxy-cache.sock: the policy")
    );
    assert_eq!(status("changes"), 0, "a dry run changes nothing");
    assert_eq!(status("policy_name"), Value::Null);
    let first = apply(&["policy.json"]);
    assert!(first.contains(": the policy\n"), "{first}");
    assert_eq!((status("changes"), status("policy_name")), (1.into(), "by hand".into()));
    // Again, and with another text that says the same: nothing changes.
    folder.write("policy.json", &format!("{POLICY}\n"));
    let again = apply(&["policy.json"]);
    assert!(again.contains("# here: nothing to do") && again.contains(": unchanged\n"), "{again}");
    assert_eq!(status("changes"), 1);
    let mut client = TcpStream::connect(front).unwrap();
    std::io::Write::write_all(&mut client, b"get a\r\n").unwrap();
    let mut answer = [0; 5];
    std::io::Read::read_exact(&mut client, &mut answer).unwrap();
    assert_eq!(&answer, b"END\r\n");
    // It has another address than the policy's workload.
    assert_eq!(status("workloads")[0]["workload"], "(unknown)");
    apply(&["--remove"]);
    assert_eq!(status("changes"), 2);
    // The file of a policy that is wrong changes nothing anywhere.
    folder.write("policy.json", "{}");
    folder.run(&["apply", "policy.json", "--hosts", "hosts.toml", "--state", "state"]).expect_code(2);
    assert_eq!(status("changes"), 2);
}

#[test]
fn privileges_that_connections_need_are_not_given_up() {
    if !enforce::command::may_configure_networks() {
        return testkit::skip("only root can give something up");
    }
    let folder = Folder::new();
    let plain = hosts(testkit::free_address());
    folder.write("hosts.toml", &plain.replace("forward = ", "source = \"client\", forward = "));
    folder.write("profile.json", PROFILE);
    let arguments =
        ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state", "--user", "65534:65534"];
    let said = folder.run(&arguments).expect_code(2).stderr.clone();
    assert!(said.contains("CAP_NET_BIND_SERVICE and CAP_NET_RAW"), "{said}");
}

/// A hosts file whose host is a namespace, with a client that is told from the server by its address.
fn inside(hosts: &str, namespace: &Namespace) -> String {
    let here = format!("device.lo = \"1Gbps\"\nnetns = \"{}\"", namespace.0);
    let (before, client) = hosts.split_once("[[client]]").unwrap();
    let client = client.replace("127.0.0.1", "127.0.0.2");
    format!("{}[[client]]{client}", before.replace("device.nothing = \"1Gbps\"", &here))
}

/// What a running proxy says of itself.
fn status(folder: &Folder, field: &str) -> Value {
    let asked = ["proxy", "--status", "--server", "cache", "--state", "state", "--json"];
    folder.run(&asked).expect_code(0).json()[field].clone()
}

/// SIGHUP and a crash leave what `apply` brought; `apply --remove` takes it away even if no proxy runs.
#[test]
fn what_apply_brought_is_remembered() {
    let Some((_memcached, address)) = memcached() else { return };
    let Some(namespace) = Namespace::new("memory") else { return };
    let folder = Folder::new();
    folder.write("hosts.toml", &inside(&hosts(address), &namespace));
    folder.write("policy.json", POLICY);
    folder.write("profile.json", PROFILE);
    let apply = |args: &[&str]| {
        let fixed = ["apply", "--hosts", "hosts.toml", "--state", "state"];
        folder.run(&[&fixed[..], args].concat()).expect_code(0).stdout
    };
    let (running, _, mut lines) = proxy(&folder, &[]);
    apply(&["policy.json"]);
    running.signal("HUP");
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("kept the policy from apply"), "{line}");
    assert_eq!((status(&folder, "policy_name"), status(&folder, "changes")), ("by hand".into(), 1.into()));
    drop(running);

    let (running, _, _lines) = proxy(&folder, &[]);
    assert_eq!(
        (status(&folder, "policy_name"), status(&folder, "policy_from")),
        ("by hand".into(), "apply".into())
    );
    assert!(apply(&["policy.json"]).contains(": unchanged\n"));
    assert_eq!(status(&folder, "changes"), 0);
    drop(running);

    assert!(apply(&["--remove"]).contains("its saved policy is deleted"));
    assert!(apply(&["--remove"]).contains("none runs there, nothing to remove"));
    let (_running, _, _lines) = proxy(&folder, &[]);
    assert_eq!(
        (status(&folder, "policy_name"), status(&folder, "policy_from")),
        (Value::Null, "files".into())
    );
}

/// A proxy that gives up root has bound a low port before, has no thread that is root, and remembers nevertheless.
#[test]
fn root_is_given_up_for_good() {
    let Some((_memcached, address)) = memcached() else { return };
    let Some(namespace) = Namespace::new("user") else { return };
    let folder = Folder::new();
    // An address of this test alone; ports below 1024 take root.
    let low = format!("127.{}.{}.7:1009", std::process::id() / 250 % 250 + 1, std::process::id() % 250 + 1);
    let text = inside(&hosts(address).replace("127.0.0.1:0", &low), &namespace);
    folder.write("hosts.toml", &text);
    folder.write("policy.json", POLICY);
    folder.write("profile.json", PROFILE);
    let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"];
    let refused = folder.run(&[&fixed[..], &["--user", "root"]].concat()).expect_code(2);
    assert!(refused.stderr.contains("'root' is root"), "{}", refused.stderr);

    let (running, front, _lines) = proxy(&folder, &["--user", "65534:65534"]);
    assert_eq!(front.port(), 1009);
    // Whoever asks is answered when root is gone: both happen before it serves.
    assert_eq!(status(&folder, "policy_name"), Value::Null);
    let mut threads = 0;
    for thread in std::fs::read_dir(format!("/proc/{}/task", running.0.id())).unwrap() {
        let text = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let line =
            |field: &str| text.lines().find_map(|line| line.strip_prefix(field)).unwrap().trim().to_owned();
        let numbers = "65534\t65534\t65534\t65534";
        assert_eq!(
            (line("Uid:").as_str(), line("Gid:").as_str(), line("Groups:").as_str()),
            (numbers, numbers, "")
        );
        assert_eq!(line("CapPrm:").trim_matches('0'), "");
        threads += 1;
    }
    assert!(threads >= 2, "{threads}");
    folder.run(&["apply", "policy.json", "--hosts", "hosts.toml", "--state", "state"]).expect_code(0);
    drop(running);
    // As another user, and as root again.
    for user in [&["--user", "65533:65533"][..], &[]] {
        let (_running, _, _lines) = proxy(&folder, user);
        assert_eq!(status(&folder, "policy_name"), "by hand");
    }
}

/// When one of two proxies cannot keep what it is brought, the other one and the network go back.
#[test]
fn proxies_change_together_or_not_at_all() {
    let Some((_memcached, address)) = memcached() else { return };
    let Some(namespace) = Namespace::new("together") else { return };
    let folder = Folder::new();
    let text = inside(&hosts(address), &namespace);
    let (before, rest) = text.split_once("[[server]]").unwrap();
    let (server, client) = rest.split_once("[[client]]").unwrap();
    let other = server.replace("\"cache\"", "\"other\"").replace("[\"127.0.0.1\"]", "[\"127.0.0.3\"]");
    folder.write("hosts.toml", &format!("{before}[[server]]{server}[[server]]{other}[[client]]{client}"));
    folder.write("policy.json", POLICY);
    folder.write("profile.json", PROFILE);
    let (_first, _, _lines) = proxy(&folder, &[]);
    let second = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["proxy", "--hosts", "hosts.toml", "--server", "other", "--state", "state"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _second = Running(second.unwrap());
    let asked = ["proxy", "--status", "--server", "other", "--state", "state"];
    testkit::wait_until(std::time::Duration::from_secs(60), "it answers", || folder.run(&asked).code == 0);
    // Somebody plants a link where the second one remembers policies.
    std::fs::remove_dir_all(folder.join("state/proxy-other")).unwrap();
    std::os::unix::fs::symlink("/tmp", folder.join("state/proxy-other")).unwrap();
    let failed =
        folder.run(&["apply", "policy.json", "--hosts", "hosts.toml", "--state", "state"]).expect_code(2);
    assert!(
        failed.stderr.contains("a link") && failed.stderr.contains("unchanged: here"),
        "{}",
        failed.stderr
    );
    let network =
        Command::new("tc").args(["-n", &namespace.0, "qdisc", "show", "dev", "lo"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&network.stdout).contains("7a17:"));
    assert_eq!(
        (status(&folder, "policy_name"), status(&folder, "policy_from")),
        (Value::Null, "files".into())
    );
    assert!(!folder.join("state/proxy-cache/policy.json").exists());
}

/// A recording goes on when its disk fails, as when that is full, and what is missing is a failure in the end.
#[test]
fn a_recording_in_which_requests_are_missing_is_a_failure() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    folder.write("hosts.toml", &hosts(address));
    folder.write("profile.json", PROFILE);
    let (mut running, front, mut lines) = proxy(&folder, &["--record", "rec", "--json"]);
    let mut client = BufReader::new(TcpStream::connect(front).unwrap());
    // Whoever is answered, with what is not recorded, knows that the recording has begun.
    std::io::Write::write_all(client.get_mut(), b"version\r\n").unwrap();
    client.read_line(&mut String::new()).unwrap();
    std::fs::remove_dir_all(folder.join("rec")).unwrap();
    for _ in 0..3 {
        let mut answer = [0; 5];
        std::io::Write::write_all(client.get_mut(), b"get a\r\n").unwrap();
        std::io::Read::read_exact(&mut client, &mut answer).unwrap();
    }
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("it goes on when it can"), "{line}");
    running.signal("TERM");
    let code = running.0.wait().unwrap().code();
    let mut said = String::new();
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut lines, &mut said).unwrap();
    std::io::Read::read_to_string(running.0.stdout.as_mut().unwrap(), &mut printed).unwrap();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("rec: 3 more requests could not be recorded"), "{said}");
    let counters: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(counters["workloads"][0]["requests"], 3, "{counters}");
}

#[test]
fn a_recording_does_not_take_the_place_of_what_the_proxy_reads() {
    let folder = Folder::new();
    folder.write("hosts.toml", &hosts(testkit::free_address()));
    folder.write("profile.json", PROFILE);
    let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state", "--record"];
    for (name, said) in [
        ("profile.json", "ends in .parquet"),
        ("seen.csv", "ends in .parquet"),
        ("hosts.toml", "another file"),
    ] {
        let refused = folder.run(&[&fixed[..], &[name]].concat()).expect_code(2);
        assert!(refused.stderr.contains(said), "{name}: {}", refused.stderr);
    }
    std::fs::rename(folder.join("profile.json"), folder.join("profile.parquet")).expect("it is ours");
    folder.write("hosts.toml", &folder.read("hosts.toml").replace("profile.json", "profile.parquet"));
    let refused = folder.run(&[&fixed[..], &["profile.parquet"]].concat()).expect_code(2);
    assert!(refused.stderr.contains("expected another file"), "{}", refused.stderr);
    assert_eq!(folder.read("profile.parquet"), PROFILE);
}

/// A connection of a client host to a memcached, or to the proxy before it.
struct RemoteClient(TcpStream);

impl RemoteClient {
    fn connect(netns: &str, address: SocketAddr) -> Self {
        let connected = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| {
                machine::netns::enter(netns).unwrap_or_else(|error| panic!("{error}"));
                TcpStream::connect(address).expect("somebody listens at the known address")
            });
            connecting.join().expect("a client connects")
        });
        connected.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        Self(connected)
    }

    fn ask(&mut self, command: &str, end: &str) -> String {
        use std::io::{Read as _, Write as _};
        self.0.write_all(command.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            let mut chunk = [0; 4096];
            let count = self.0.read(&mut chunk).expect("the connection lasts");
            assert!(count > 0, "the connection lasts: {}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8(answer).unwrap()
    }

    /// Sets and gets a value, two requests.
    fn use_it(&mut self) {
        assert_eq!(self.ask("set k 0 0 1\r\nx\r\n", "STORED\r\n"), "STORED\r\n");
        assert_eq!(self.ask("get k\r\n", "END\r\n"), "VALUE k 0 1\r\nx\r\nEND\r\n");
    }
}

/// Requests that the proxy of this state folder has forwarded.
fn forwarded(folder: &Folder) -> u64 {
    let status = ["proxy", "--status", "--server", "cache", "--state", "state", "--json"];
    let status: Value = folder.run(&status).expect_code(0).json();
    let workloads = status["workloads"].as_array().or_else(|| status["counters"]["workloads"].as_array());
    workloads.expect("workloads").iter().map(|seen| seen["requests"].as_u64().unwrap()).sum()
}

/// The rules of nftables in a namespace.
fn ruleset(netns: &str) -> String {
    let output =
        Command::new("ip").args(["netns", "exec", netns, "nft", "list", "ruleset"]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn until(what: &str, is_true: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A memcached stays where it is. Connections from before stay direct, new ones reach the proxy at the same address, and
/// after its end, by SIGTERM or SIGKILL, they are direct again and no rule is left.
#[test]
fn new_connections_to_the_known_address_are_redirected_while_the_proxy_runs() {
    let Some(network) = testkit::ServerAndClient::create() else { return };
    let (Some(_memcached), Some(_)) = (network.memcached(), testkit::program("nft")) else { return };
    let [known, _] = network.addresses(11211);
    let front = SocketAddr::new(known.ip(), 21211);
    let folder = Folder::new();
    folder.write("profile.json", PROFILE);
    let text = hosts(known).replace("127.0.0.1:0", &front.to_string());
    folder.write("hosts.toml", &text.replace("forward =", &format!("redirect = \"{known}\", forward =")));
    let before = ruleset(network.server_netns());
    let mut older = RemoteClient::connect(network.client(), known);
    older.use_it();

    for signal in ["TERM", "KILL"] {
        let mut child = Command::new("ip")
            .args(["netns", "exec", network.server_netns(), env!("CARGO_BIN_EXE_tailwright")])
            .args(["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"])
            .args(["--user", "65534:65534"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let running = Running(child);
        let mut line = String::new();
        while !line.contains("are redirected here") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the proxy has ended");
        }
        assert!(line.contains(&known.to_string()), "{line}");
        let mut newer = RemoteClient::connect(network.client(), known);
        newer.use_it();
        assert_eq!(forwarded(&folder), 2, "a new connection reaches the proxy");
        older.use_it();
        assert_eq!(forwarded(&folder), 2, "an older one stays with the server");

        running.signal(signal);
        until("the rule ends with the proxy", || ruleset(network.server_netns()) == before);
        let mut last = RemoteClient::connect(network.client(), known);
        last.use_it();
        older.use_it();
    }
}

/// The proxy does not start if nothing can be redirected, and says what to do instead.
#[test]
fn a_redirection_that_is_not_possible_is_an_error() {
    let folder = Folder::new();
    folder.write("profile.json", PROFILE);
    let server: SocketAddr = "127.0.0.1:11211".parse().unwrap();
    let text = hosts(server).replace("forward =", "redirect = \"10.0.0.9\", forward =");
    folder.write("hosts.toml", &text);
    let start = ["proxy", "--hosts", "hosts.toml", "--server", "cache", "--state", "state"];
    let refused = folder.run(&start).expect_code(2);
    assert!(
        refused.stderr.contains("redirect: ") && refused.stderr.contains("loopback"),
        "{}",
        refused.stderr
    );

    // Without the right to change the network.
    let free = format!("0.0.0.0:{}", testkit::free_address().port());
    folder.write("hosts.toml", &text.replace("127.0.0.1:0", &free));
    if testkit::program("setpriv").is_none() {
        return;
    }
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-net_admin", env!("CARGO_BIN_EXE_tailwright")])
        .args(start)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    if message.contains("setpriv:") {
        return testkit::skip(&message);
    }
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("cannot be redirected"), "{message}");
    assert!(message.contains("docs/guides/first-plan.md"), "{message}");
}
