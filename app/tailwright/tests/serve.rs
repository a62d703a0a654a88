//! `tailwright controller`, `agent`, `ctl` and `proxy` together, as users run them, before a real memcached: a tenant asks
//! and the proxy enforces; everything is killed at random, and no promise is lost.

mod support;

use enforce::command::{CommandRunner as _, Programs, may_configure_networks};
use machine::virtual_network::VirtualNetwork;
use model::{Observation, Op};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::scraped::{check_dashboard, example, parsed_by_python, samples};
use support::servers::{Running, memcached};
use support::service::{HOSTS, start, write_cluster};
use support::{Folder, Outcome};

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The hosts file of the cluster, with these addresses of its front and server.
fn hosts(listen: SocketAddr, forward: SocketAddr) -> String {
    let front = HOSTS.replace("127.0.0.1:11612", &listen.to_string());
    front.replace("127.0.0.1:11611", &forward.to_string())
}

/// A cluster of one host in a folder.
struct Cluster {
    folder: Folder,
    url: String,
    front: SocketAddr,
}

impl Cluster {
    fn new(memcached: SocketAddr) -> Self {
        let folder = Folder::new();
        let front = testkit::free_address();
        write_cluster(&folder, &hosts(front, memcached));
        let url = format!("http://{}", testkit::free_address());
        Self { folder, url, front }
    }

    fn start(&self, arguments: &[&str], ready: &str) -> Running {
        start(&self.folder, arguments, ready)
    }

    fn controller(&self) -> Running {
        let listen = self.url.trim_start_matches("http://");
        self.start(&["controller", "cluster", "--listen", listen], "listening on")
    }

    fn proxy(&self) -> Running {
        self.start(
            &["proxy", "--hosts", "hosts.toml", "--server", "cache-1", "--state", "state"],
            "listening on",
        )
    }

    fn agent(&self, more: &[&str]) -> Running {
        self.agent_of("here", more)
    }

    fn agent_of(&self, host: &str, more: &[&str]) -> Running {
        let token = format!("{host}.token");
        let memory = format!("memory-{host}");
        let fixed = [
            "agent",
            "--controller",
            &self.url,
            "--token-file",
            &token,
            "--state",
            "state",
            "--memory",
            &memory,
        ];
        let child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
            .args([&fixed[..], more].concat())
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Running(child.expect("the program starts"))
    }

    fn ctl(&self, arguments: &[&str]) -> Outcome {
        self.ctl_as("cluster/operator.token", arguments)
    }

    fn ctl_as(&self, token: &str, arguments: &[&str]) -> Outcome {
        let fixed = ["--controller", &self.url, "--token-file", token];
        self.folder.run(&[&["ctl"][..], arguments, &fixed[..]].concat())
    }

    /// Describes the cluster and issues the tokens of its host and of a tenant.
    fn describe(&self) {
        let described =
            ["describe", "--class-file", "cluster.toml", "--hosts", "hosts.toml", "--assume-network"];
        self.ctl(&described).expect_code(0);
        let agent = self.ctl(&["token", "here", "--for-agent", "here"]).expect_code(0).stdout;
        self.folder.write("here.token", &agent);
        let tenant = self.ctl(&["token", "shop", "--for-tenant", "shop"]).expect_code(0).stdout;
        self.folder.write("shop.token", &tenant);
    }

    fn request(&self, name: &str, more: &[&str]) -> Outcome {
        let address = format!("127.0.0.{}", 2 + name.len());
        let asked = ["request", name, "99% < 100ms", "mail.csv", "--address", &address];
        self.ctl_as("shop.token", &[&asked[..], more].concat())
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < TIMEOUT, "in vain: {what}\n{}", self.ctl(&["list", "agents"]).stdout);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn workloads(&self) -> Vec<Value> {
        let listed = self.ctl(&["list", "workloads"]);
        if listed.code == 0 { serde_json::from_str(&listed.stdout).expect("JSON") } else { Vec::new() }
    }

    fn standing(&self, name: &str) -> Option<String> {
        let found = self.workloads().into_iter().find(|workload| workload["name"] == name)?;
        found["standing"].as_str().map(str::to_owned)
    }

    /// Names of the workloads in the policy that the proxy keeps on its disk, or `None` without a policy.
    fn enforced(&self) -> Option<Vec<String>> {
        let text = std::fs::read_to_string(self.folder.join("state/proxy-cache-1/policy.json")).ok()?;
        let saved: Value = serde_json::from_str(&text).expect("whole or absent");
        let workloads = saved["policy"]["workloads"].as_array().expect("a policy");
        Some(workloads.iter().map(|workload| workload["name"].as_str().expect("a name").to_owned()).collect())
    }

    fn answers(&self) {
        let mut client = TcpStream::connect(self.front).expect("the proxy listens");
        std::io::Write::write_all(&mut client, b"get a\r\n").expect("open");
        let mut answer = [0; 5];
        std::io::Read::read_exact(&mut client, &mut answer).expect("an answer");
        assert_eq!(&answer, b"END\r\n");
    }
}

/// A controller places without rules, and says so where it is told of some.
#[test]
fn classes_with_what_a_controller_does_not_keep_are_refused_in_words() {
    let cluster = Cluster::new(testkit::free_address());
    let _controller = cluster.controller();
    let plain = cluster.folder.read("cluster.toml");
    let describe = || cluster.ctl(&["describe", "--class-file", "cluster.toml"]);
    for rule in ["capacity = \"1TB\"", "labels = { zone = \"a\" }", "price = 3"] {
        cluster.folder.write("cluster.toml", &format!("{plain}{rule}\n"));
        let refused = describe().expect_code(2).stderr;
        let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "class 'cache': a controller does not keep `capacity`, `price` and `labels`: expected a class without them";
        assert!(refused.contains(words), "{refused}");
    }
    cluster.folder.write("cluster.toml", &plain);
    describe().expect_code(0);
}

#[test]
fn a_tenant_asks_and_the_proxy_enforces() {
    let Some((_memcached, address)) = memcached() else { return };
    let cluster = Cluster::new(address);
    let controller = cluster.controller();
    cluster.describe();
    // Without an agent nothing is promised.
    let refused = cluster.request("mail", &[]).expect_code(1).stdout;
    assert!(refused.contains("no agent has reported from host 'here'"), "{refused}");
    let _proxy = cluster.proxy();

    // An adviser says what would change, and changes nothing.
    let adviser = cluster.agent(&[]);
    cluster.wait_for("the adviser's report", || cluster.ctl(&["list", "agents"]).stdout.contains("advising"));
    let what_if = cluster.request("mail", &["--what-if"]).expect_code(0).stdout;
    assert!(what_if.contains("nothing was changed"), "{what_if}");
    assert_eq!(cluster.workloads().len(), 0);
    let advised = cluster.request("mail", &["--no-wait"]).expect_code(0).stdout;
    assert!(advised.contains("not promised: an agent only advises"), "{advised}");
    cluster.wait_for("advice", || {
        cluster.ctl(&["list", "agents"]).stdout.contains("would get a policy for 1 workload")
    });
    assert_eq!(cluster.enforced(), None);
    drop(adviser);

    let agent = cluster.agent(&["--enforce"]);
    cluster.wait_for("enforcement", || cluster.standing("mail").as_deref() == Some("enforced"));
    assert_eq!(cluster.enforced(), Some(vec!["shop/mail".to_owned()]));
    let begun = Instant::now();
    let yes = cluster.request("web", &[]).expect_code(0).stdout;
    println!("from the command to enforced: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    assert!(yes.starts_with("yes: shop/web on cache-1") && yes.contains("it is enforced"), "{yes}");
    assert!(yes.contains("assumed: limits and priorities of the network stages"), "{yes}");
    cluster.answers();

    // Names, clients and rights.
    for (arguments, code, part) in [
        (&["request", "web", "99% < 1s", "mail.csv", "--address", "127.0.0.9"][..], 2, "exists"),
        (&["request", "other", "99% < 1s", "mail.csv", "--address", "127.0.0.5"], 1, "another workload's"),
        (&["request", "x", "99% < 1s", "mail.csv", "--address", "nowhere"], 2, "clients"),
        (&["request", "x", "99% < 500us", "mail.csv", "--address", "127.0.0.9"], 1, "would be admitted with"),
        (&["remove", "mail", "--tenant", "bank"], 2, "this token is of tenant 'shop'"),
        (&["list", "servers"], 2, "token of an operator"),
    ] {
        let outcome = cluster.ctl_as("shop.token", arguments).expect_code(code);
        assert!(
            (outcome.stdout.clone() + &outcome.stderr).contains(part),
            "{arguments:?}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
    }
    cluster.folder.write("forged.token", "0123456789abcdef");
    let forged = cluster.ctl_as("forged.token", &["list", "workloads"]).expect_code(2);
    assert!(forged.stderr.contains("the token is unknown"), "{}", forged.stderr);

    // A second controller, and a second agent.
    let second = cluster.folder.run(&["controller", "cluster", "--listen", "127.0.0.1:0"]).expect_code(3);
    assert!(second.stderr.contains("another controller runs on this folder"), "{}", second.stderr);

    // A change by hand is repaired.
    let policy = cluster.folder.read("state/proxy-cache-1/policy.json");
    assert!(policy.contains("shop/web"));
    cluster.ctl_as("shop.token", &["remove", "mail"]).expect_code(0);
    cluster.wait_for("removal", || cluster.enforced() == Some(vec!["shop/web".to_owned()]));

    // The end of controller and agent takes nothing away; a backup begins another folder.
    cluster.folder.run(&["controller", "cluster", "--backup", "backup.db"]).expect_code(0);
    controller.signal("TERM");
    assert!(controller.ends_well());
    drop(agent);
    cluster.answers();
    assert_eq!(cluster.enforced(), Some(vec!["shop/web".to_owned()]));
    cluster.folder.run(&["controller", "restored", "--restore", "backup.db"]).expect_code(0);
    cluster.folder.run(&["controller", "restored", "--restore", "backup.db"]).expect_code(2);
    std::fs::rename(cluster.folder.join("cluster"), cluster.folder.join("lost")).expect("ours");
    std::fs::rename(cluster.folder.join("restored"), cluster.folder.join("cluster")).expect("ours");
    std::fs::copy(cluster.folder.join("lost/operator.token"), cluster.folder.join("cluster/operator.token"))
        .expect("ours");
    let _controller = cluster.controller();
    assert_eq!(cluster.standing("web").as_deref(), Some("pending"), "what hosts confirmed does not count");
    let _agent = cluster.agent(&["--enforce"]);
    cluster.wait_for("confirmation", || cluster.standing("web").as_deref() == Some("enforced"));
}

/// A network of namespaces that is removed at the end.
struct Namespaces(VirtualNetwork);

impl Drop for Namespaces {
    fn drop(&mut self) {
        if let Err(fault) = self.0.remove(|line, input| Programs.run_line(line, input)) {
            eprintln!("namespaces are left: {fault}");
        }
    }
}

impl Namespaces {
    /// Starts a program on a host.
    fn start(&self, host: &str, folder: &Folder, command: &[&str]) -> Running {
        let netns = &self.0.host(host).expect("it was named").netns;
        let child = Command::new("ip")
            .args(["netns", "exec", netns])
            .args(command)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Running(child.expect("ip starts"))
    }

    /// Returns what a command on a host prints.
    fn run(&self, host: &str, command: &[&str]) -> String {
        let netns = &self.0.host(host).expect("it was named").netns;
        let output = Command::new("ip").args(["netns", "exec", netns]).args(command).output();
        String::from_utf8(output.expect("ip runs").stdout).expect("text")
    }

    /// Returns the packets that the class of the first workload of a host has sent; `None` without such a class.
    fn sent_first(&self, host: &str) -> Option<u64> {
        let listed = self.run(host, &["tc", "-s", "class", "show", "dev", "eth0"]);
        let mut lines = listed.lines().skip_while(|line| !line.starts_with("class htb 7a17:f "));
        let sent = lines.nth(1)?;
        sent.split_whitespace().nth(3)?.parse().ok()
    }
}

#[test]
fn links_are_limited_by_agents() {
    if !may_configure_networks() {
        return testkit::skip("without root no network namespaces can be made");
    }
    if Folder::new().run(&["apply", "--probe"]).code != 0 {
        return testkit::skip("this kernel or its programs lack what the network enforcer needs");
    }
    let Some((_, anywhere)) = memcached() else { return };
    let cluster = Cluster::new(anywhere);
    let prefix = format!("tws-{}", std::process::id());
    let created =
        VirtualNetwork::create(|line, input| Programs.run_line(line, input), &prefix, &["app", "store"]);
    let network = Namespaces(created.unwrap_or_else(|fault| panic!("{fault}")));
    let host = |name: &str| {
        format!("[[host]]\nname = \"{name}\"\nnetns = \"{prefix}-{name}\"\ndevice.eth0 = \"1Gbps\"\n")
    };
    let server = "[[server]]\nname = \"cache-1\"\nhost = \"store\"\naddress = [\"10.77.0.2\"]\n\
        [server.storage]\nprofile = \"cache.json\"\n\
        front = [{ protocol = \"memcached\", listen = \"10.77.0.2:11512\", forward = \"127.0.0.1:11511\" }]\n";
    cluster.folder.write("hosts.toml", &[host("app"), host("store"), server.to_owned()].concat());
    let memcached = ["memcached", "-u", "root", "-l", "127.0.0.1", "-U", "0", "-p", "11511"];
    let _memcached = network.start("store", &cluster.folder, &memcached);
    let program = env!("CARGO_BIN_EXE_tailwright");
    let proxy = [program, "proxy", "--hosts", "hosts.toml", "--server", "cache-1", "--state", "state"];
    let _proxy = network.start("store", &cluster.folder, &proxy);
    let _controller = cluster.controller();
    cluster.ctl(&["describe", "--class-file", "cluster.toml", "--hosts", "hosts.toml"]).expect_code(0);
    let mut agents = Vec::new();
    for name in ["app", "store"] {
        let token = cluster.ctl(&["token", name, "--for-agent", name]).expect_code(0).stdout;
        cluster.folder.write(&format!("{name}.token"), &token);
        agents.push(cluster.agent_of(name, &["--enforce", "--links"]));
    }
    let tenant = cluster.ctl(&["token", "shop", "--for-tenant", "shop"]).expect_code(0).stdout;
    cluster.folder.write("shop.token", &tenant);
    let ask = |name: &str, more: &[&str]| {
        let asked = ["request", name, "99% < 100ms", "mail.csv", "--address", "10.77.0.1"];
        cluster.ctl_as("shop.token", &[&asked[..], more].concat())
    };
    let on_app = ["--client-host", "app"];
    cluster
        .wait_for("the agents' reports", || ask("mail", &[&on_app[..], &["--what-if"]].concat()).code == 0);
    let answer = ask("mail", &on_app).expect_code(0).stdout;
    assert!(answer.contains("it is enforced") && !answer.contains("assumed"), "{answer}");

    // Requests and replies pass through the classes of the workload, on both hosts.
    let before = ["app", "store"].map(|host| network.sent_first(host).expect("a class"));
    let get = "exec 3<>/dev/tcp/10.77.0.2/11512; printf 'get a\\r\\n' >&3; head -c 5 <&3";
    assert_eq!(network.run("app", &["bash", "-c", get]), "END\r\n");
    let after = ["app", "store"].map(|host| network.sent_first(host).expect("a class"));
    assert!(after[0] >= before[0] + 2 && after[1] >= before[1] + 2, "{before:?}, then {after:?}");

    // Limits that others take away come back.
    network.run("app", &["tc", "qdisc", "del", "dev", "eth0", "root"]);
    assert_eq!(network.sent_first("app"), None);
    cluster.wait_for("the limits again", || network.sent_first("app").is_some());

    // A client on the server's own host leaves by no link: that cannot be promised, and is not.
    let answer = ask("near", &["--client-host", "store"]);
    assert_ne!(answer.code, 0, "{}", answer.stdout);
    cluster.wait_for("only the first", || cluster.enforced() == Some(vec!["shop/mail".to_owned()]));

    // Links are kept without agents, and restored when nothing is promised any more.
    drop(agents.remove(0));
    std::thread::sleep(Duration::from_millis(300));
    assert!(network.sent_first("app").is_some());
    agents.push(cluster.agent_of("app", &["--enforce", "--links"]));
    cluster.ctl_as("shop.token", &["remove", "mail"]).expect_code(0);
    cluster.wait_for("links without limits", || {
        ["app", "store"].iter().all(|host| !network.run(host, &["tc", "qdisc", "show"]).contains("7a17"))
    });
}

/// A seeded choice below `bound`.
fn choice(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

#[test]
fn killed_at_random_no_promise_is_lost() {
    let Some((_memcached, address)) = memcached() else { return };
    let cluster = Cluster::new(address);
    let mut controller = cluster.controller();
    cluster.describe();
    let mut proxy = cluster.proxy();
    let mut agent = cluster.agent(&["--enforce"]);
    cluster.wait_for("the agent's report", || cluster.ctl(&["list", "agents"]).stdout.contains("applying"));
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = seed;
    let mut promised: Vec<String> = Vec::new();
    for round in 1..=8 {
        let name = "w".repeat(round);
        // The request is under way while something is killed.
        let asked = std::thread::scope(|scope| {
            let asked = scope.spawn(|| cluster.request(&name, &[]));
            std::thread::sleep(Duration::from_millis(choice(&mut random, 120)));
            match choice(&mut random, 3) {
                0 => {
                    let _ = controller.0.kill();
                    let _ = controller.0.wait();
                    controller = cluster.controller();
                }
                1 => {
                    let _ = agent.0.kill();
                    let _ = agent.0.wait();
                    agent = cluster.agent(&["--enforce"]);
                }
                _ => {
                    let _ = proxy.0.kill();
                    let _ = proxy.0.wait();
                    proxy = cluster.proxy();
                }
            }
            asked.join().expect("no panic")
        });
        if asked.code == 0 && asked.stdout.contains("it is enforced") {
            promised.push(format!("shop/{name}"));
        }
        // At every moment the proxy has all that was promised, if it has a policy.
        let enforced = cluster.enforced().unwrap_or_default();
        let missing: Vec<_> = promised.iter().filter(|name| !enforced.contains(name)).collect();
        assert!(
            missing.is_empty(),
            "round {round}, seed {seed}: {missing:?} of {promised:?} is not enforced"
        );
    }
    // Afterwards everything that was admitted is enforced, and the proxy has what the controller says.
    cluster.wait_for("everything to be enforced", || {
        let workloads = cluster.workloads();
        !workloads.is_empty() && workloads.iter().all(|workload| workload["standing"] == "enforced")
    });
    let listed: Vec<String> = cluster
        .workloads()
        .iter()
        .map(|workload| format!("shop/{}", workload["name"].as_str().expect("a name")))
        .collect();
    assert!(promised.iter().all(|name| listed.contains(name)), "{promised:?} of {listed:?}");
    let mut enforced = cluster.enforced().expect("a policy");
    enforced.sort();
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(enforced, sorted);
    cluster.answers();
}

impl Cluster {
    /// The observation of a workload.
    fn observed(&self, name: &str) -> Value {
        let listed = self.ctl(&["list", "observations"]).expect_code(0).json();
        let found = listed.as_array().expect("a list").iter().find(|of| of["name"] == name);
        found.expect("every workload is listed").clone()
    }

    /// Number of requests of a workload that the controller has counted.
    fn counted(&self, name: &str) -> u64 {
        self.observed(name)["total"]["requests"].as_u64().expect("a number")
    }

    fn wait_for_count(&self, name: &str, requests: u64) {
        self.wait_for("all requests to be counted", || self.counted(name) >= requests);
        assert_eq!(self.counted(name), requests, "each is counted once");
    }

    /// Sends requests of a workload for some seconds.
    fn load(&self, name: &str, seconds: u32, arrivals: &str) {
        let address = format!("127.0.0.{}", 2 + name.len());
        let front = self.front;
        let file = format!(
            "duration = \"{seconds}s\"\n[[workload]]\nname = \"{name}\"\nbind = \"{address}\"\n\
             target = \"memcached://{front}?keys=5\"\nconnections = 2\narrivals = \"{arrivals}\"\n\
             size = \"1KiB\"\nreads = 0.7\n"
        );
        self.folder.write(&format!("{name}.toml"), &file);
        self.folder.run(&["load", &format!("{name}.toml"), "--json"]).expect_code(0);
    }

    /// Returns the answer of the controller to a question with this token.
    fn get(&self, path: &str, token: &str) -> String {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the controller listens");
        let token = self.folder.read(token);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            token.trim()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// The status and the body of the controller's metrics.
    fn scrape(&self, token: &str) -> (String, String) {
        let answer = self.get("/metrics", token);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }
}

/// Reads and writes that a memcached has counted.
fn served(memcached: SocketAddr) -> u64 {
    let mut stream = TcpStream::connect(memcached).expect("it listens");
    stream.write_all(b"stats\r\nquit\r\n").expect("it reads");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it answers");
    let count = |name: &str| -> u64 {
        let line = said.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name));
        line.expect("a counter").trim().parse().expect("a number")
    };
    count("cmd_get") + count("cmd_set")
}

/// Every request of a workload is counted once, whatever restarts; a workload beyond its limits and one whose storage
/// stalls are named.
#[test]
fn promises_are_watched() {
    let Some((memcached, address)) = memcached() else { return };
    let cluster = Cluster::new(address);
    let controller = cluster.controller();
    cluster.describe();
    let proxy = cluster.proxy();
    let _agent = cluster.agent(&["--enforce"]);
    cluster.wait_for("the agent's report", || cluster.ctl(&["list", "agents"]).stdout.contains("applying"));
    cluster.request("mail", &[]).expect_code(0);
    cluster.request("web", &[]).expect_code(0);
    let first = cluster.observed("mail");
    assert_eq!((first["verdict"].as_str(), first["total"]["requests"].as_u64()), (Some("no_data"), Some(0)));

    cluster.load("mail", 3, "poisson(150/s)");
    let sent = served(address);
    assert!(sent > 200, "{sent} of some 450");
    cluster.wait_for_count("mail", sent);
    let seen = cluster.observed("mail");
    assert_ne!(seen["verdict"], "no_data", "{seen}");
    let buckets = seen["latencies"].as_array().expect("buckets");
    assert_eq!(
        buckets.iter().map(|bucket| bucket["requests"].as_u64().expect("a number")).sum::<u64>(),
        sent
    );
    assert!(seen["total"]["p50_s"].as_f64().expect("a percentile") > 0.0, "{seen}");

    // The proxy is killed and begins to count anew.
    drop(proxy);
    let _proxy = cluster.proxy();
    cluster.load("mail", 4, "poisson(6000/s)");
    let sent = served(address);
    cluster.wait_for_count("mail", sent);
    // On a machine that is busy with other things it may have missed its SLO as well; the reason says both.
    cluster.wait_for("its name", || {
        let mail = cluster.observed("mail");
        let is_named = mail["reason"].as_str().expect("a reason").contains("beyond the limits");
        is_named && (mail["verdict"] == "outgrows" || mail["verdict"] == "not_met")
    });
    assert!(cluster.observed("mail")["total"]["beyond_limits"].as_u64().expect("a number") > sent / 20);

    // The storage stops for most of the time.
    std::thread::scope(|scope| {
        let load = scope.spawn(|| cluster.load("web", 10, "poisson(100/s)"));
        while !load.is_finished() {
            memcached.signal("STOP");
            std::thread::sleep(Duration::from_millis(700));
            memcached.signal("CONT");
            std::thread::sleep(Duration::from_millis(300));
        }
        load.join().expect("no panic");
    });
    cluster.wait_for("an alert", || cluster.observed("web")["alert"] == "fast");
    let missed = cluster.observed("web");
    assert_eq!((&missed["verdict"], &missed["judgement"]["verdict"]), (&"not_met".into(), &"not_met".into()));
    let burn = missed["windows"][0]["burn_rate"].as_f64().expect("a rate");
    assert!(burn > 14.4, "{missed}");
    cluster.wait_for_count("web", served(address) - sent);

    // A tenant sees its own; others see what they may.
    let own = cluster.ctl_as("shop.token", &["list", "observations"]).expect_code(0).json();
    assert_eq!(own.as_array().map(Vec::len), Some(2));
    let other = cluster.ctl(&["token", "bank", "--for-tenant", "bank"]).expect_code(0).stdout;
    cluster.folder.write("bank.token", &other);
    assert_eq!(cluster.ctl_as("bank.token", &["list", "observations"]).expect_code(0).stdout.trim(), "[]");
    let scraper = cluster.ctl(&["token", "prometheus", "--for-metrics"]).expect_code(0).stdout;
    cluster.folder.write("metrics.token", &scraper);
    cluster.ctl_as("metrics.token", &["list", "observations"]).expect_code(2);
    for token in ["shop.token", "here.token"] {
        assert!(cluster.scrape(token).0.contains("403"), "{token}");
    }
    let (status, page) = cluster.scrape("metrics.token");
    assert!(status.contains("200"), "{status}");
    let read = samples(&page);
    let mail = r#"{tenant="shop",workload="mail"}"#;
    let count = read[&format!("tailwright_controller_request_duration_seconds_count{mail}")];
    assert_eq!(count, sent as f64);
    assert_eq!(read[r#"tailwright_controller_verdict{tenant="shop",workload="web",verdict="not_met"}"#], 1.0);
    let of_mail = |verdict: &str| {
        read[&format!(
            r#"tailwright_controller_verdict{{tenant="shop",workload="mail",verdict="{verdict}"}}"#
        )]
    };
    assert_eq!(of_mail("outgrows") + of_mail("not_met"), 1.0);
    assert!(read[&format!("tailwright_controller_beyond_limits_requests_total{mail}")] > 0.0);
    assert_eq!(read[r#"tailwright_controller_decisions_total{answer="admitted"}"#], 2.0);
    if let Some(families) = parsed_by_python(&page) {
        for family in [
            "tailwright_controller_request_duration_seconds histogram seconds 200",
            "tailwright_controller_late_requests counter  2",
        ] {
            assert!(families.lines().any(|line| line == family), "{family}: {families}");
        }
    }
    check_dashboard("grafana/controller.json", &page, 15);
    check_rules(&page);

    // Verdicts are in the history; requests are counted anew by another run of the controller.
    let events = cluster.ctl(&["list", "events"]).expect_code(0).stdout;
    assert!(events.contains("verdict-changed") && events.contains("beyond the limits"), "{events}");
    drop(controller);
    let _controller = cluster.controller();
    cluster.wait_for("a report to the new controller", || cluster.observed("web")["age_s"].is_number());
    assert_eq!(cluster.counted("web"), 0);
    cluster.load("web", 2, "poisson(50/s)");
    cluster.wait_for("requests", || cluster.counted("web") > 0);
}

/// A trace in which at each of these instants of every second, milliseconds, 200 requests of 1 KiB come at once.
fn batches(at_ms: &[u64], seconds: u64) -> String {
    let mut text = "arrival_ns,op,size_bytes\n".to_owned();
    let batches = (0..seconds).flat_map(|second| at_ms.iter().map(move |at| second * 1000 + at));
    for at in batches {
        for op in ["write", "read"].into_iter().cycle().take(200) {
            text += &format!("{},{op},1024\n", at * 1_000_000);
        }
    }
    text
}

/// Instants at which a client sent requests, by its own log, and their work: both in nanoseconds, of a device that moves
/// 100 MB a second.
fn sent_by_its_log(log: &std::path::Path) -> Vec<(f64, f64)> {
    // Bytes of a reply to a read beside the value; the key is that of the generator.
    let head = "VALUE tw:mail:0123456789abcdef:1024:0 0 1024\r\n\r\nEND\r\n".len() as u64;
    let log = trace::observations::read(log).expect("the log of the client");
    let charged = |request: &Observation| match request.op {
        Op::Read => request.size.0 + head,
        Op::Write => request.size.0,
    };
    let mut sent: Vec<(u64, u64)> =
        log.requests.iter().map(|request| (request.sent.0, charged(request))).collect();
    sent.sort_unstable();
    sent.iter().map(|(at, size)| (*at as f64, *size as f64 * 10.0)).collect()
}

/// The most that `of` an interval of requests is, with its work and its duration, by trying all.
fn most(sent: &[(f64, f64)], of: impl Fn(f64, f64) -> f64) -> f64 {
    let mut most: f64 = 0.0;
    for (first, (begin, _)) in sent.iter().enumerate() {
        let mut work = 0.0;
        for (end, own) in &sent[first..] {
            work += own;
            most = most.max(of(work, end - begin));
        }
    }
    most
}

/// A client that sends twice the burst of its trace is named, with limits that would hold: those that follow from its own
/// log.
#[test]
fn limits_that_would_hold_follow_from_what_a_client_sends() {
    /// Share by which the limits may differ: the proxy sees requests later than the client sends them.
    const TOLERANCE: f64 = 0.05;
    let Some((_memcached, address)) = memcached() else { return };
    let cluster = Cluster::new(address);
    let _controller = cluster.controller();
    cluster.describe();
    let _proxy = cluster.proxy();
    let _agent = cluster.agent(&["--enforce"]);
    cluster.wait_for("the agent's report", || cluster.ctl(&["list", "agents"]).stdout.contains("applying"));
    cluster.folder.write("mail.csv", &batches(&[0], 20));
    cluster.request("mail", &[]).expect_code(0);
    assert!(cluster.observed("mail")["live"].is_null(), "nothing was sent");

    cluster.folder.write("twice.csv", &batches(&[0, 400], 8));
    let front = cluster.front;
    let load = format!(
        "duration = \"8s\"\n[[workload]]\nname = \"mail\"\nbind = \"127.0.0.6\"\ntarget = \"memcached://{front}?keys=5\"\n\
         connections = 2\ntrace = \"twice.csv\"\n"
    );
    cluster.folder.write("load.toml", &load);
    cluster.folder.run(&["load", "load.toml", "-o", "log.parquet"]).expect_code(0);
    let sent = sent_by_its_log(&cluster.folder.join("log.parquet"));
    assert_eq!(sent.len(), 3200);
    // The client has filled its keys before.
    let all = served(address);
    cluster.wait_for("the curves", || cluster.observed("mail")["live"]["windows"][0]["requests"] == all);

    let seen = cluster.observed("mail");
    let live = &seen["live"];
    let limits = live["windows"][0]["limits"].as_array().expect("limits");
    let storage = limits.iter().find(|limit| limit["stage"] == "storage").expect("a limit");
    let number = |name: &str| storage[name].as_f64().unwrap_or_else(|| panic!("{name}: {storage}"));
    let rate = number("rate");
    let burst = number("burst");
    let burst_needed = most(&sent, |work, duration| work - rate * duration) / 1e9;
    let rate_needed = most(&sent, |work, duration| (work - burst * 1e9) / duration.max(1.0));
    println!("{storage}; by the log: burst {burst_needed}, rate {rate_needed}");
    for (name, expected) in [("burst_needed", burst_needed), ("rate_needed", rate_needed)] {
        let ratio = number(name) / expected;
        assert!((ratio - 1.0).abs() < TOLERANCE, "{name}: {ratio} times {expected}: {storage}");
    }
    assert!(number("burst_share") > 1.2, "{storage}");
    let summary = live["summary"].as_str().expect("a text");
    assert!(
        summary.contains("limits that would have held") && summary.contains("storage: a burst"),
        "{summary}"
    );
    cluster.wait_for("its name", || {
        let mail = cluster.observed("mail");
        let is_named = mail["verdict"] == "outgrows" || mail["verdict"] == "not_met";
        is_named && mail["reason"].as_str().expect("a reason").contains("limits that would have held")
    });
    let page = cluster.get("/workload?tenant=shop&name=mail", "cluster/operator.token");
    assert!(page.contains("sent in the last week") && page.contains("burst needed"), "{page}");
}

/// Checks that the alert rules of the examples ask for names of a page, and by Prometheus' own tool where it is installed.
fn check_rules(page: &str) {
    let rules = example("prometheus/controller.rules.yml");
    let text = std::fs::read_to_string(&rules).expect("the example is there");
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = 0;
    for word in text.split(|c| !is_part(c)).filter(|word| word.starts_with("tailwright_")) {
        names += 1;
        assert!(page.contains(word), "{word} is in no page");
    }
    assert!(names > 10, "{names}");
    let Some(promtool) = testkit::program("promtool") else { return };
    for (command, file) in [("check", rules), ("test", example("prometheus/controller.rules.test.yml"))] {
        let checked = Command::new(&promtool).args([command, "rules"]).arg(&file).output().expect("it runs");
        let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{said}");
    }
}

/// The commands of docs/guides/run-as-a-service.md work as pasted, one after the other in one shell.
#[test]
fn the_guide_works_as_pasted() {
    if ["memcached", "bash", "curl"].iter().any(|name| testkit::program(name).is_none()) {
        return;
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/run-as-a-service.md");
    let text = std::fs::read_to_string(&path).expect("the guide is there");
    let folder = Folder::new();
    let mut script = String::from(
        "set -e\ntrap 'kill $(jobs -p); wait; tailwright agent --stop-proxies --state state --memory memory' EXIT\n",
    );
    for block in text.split("\n```").skip(1).step_by(2) {
        let (info, body) = block.split_once('\n').expect("a block has lines");
        match info.split_whitespace().collect::<Vec<_>>()[..] {
            ["sh"] => script += &format!("{body}\n"),
            [_, file] => folder.write(file, body),
            _ => {}
        }
    }
    folder.write("guide.sh", &script);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tailwright"));
    let others = std::env::var("PATH").unwrap_or_default();
    let own = program.parent().expect("it is in a folder").display();
    // Into files: a program in the background would keep a pipe open.
    let said = std::fs::File::create(folder.join("said")).expect("ours");
    let complaints = std::fs::File::create(folder.join("complaints")).expect("ours");
    let status = Command::new("timeout")
        .args(["60", "bash", "guide.sh"])
        .current_dir(folder.path())
        .env("PATH", format!("{own}:{others}"))
        .stdout(said)
        .stderr(complaints)
        .status();
    let said = folder.read("said");
    let complaints = folder.read("complaints");
    assert!(status.expect("a shell").code() != Some(124), "it does not end: {said}\n{complaints}");
    for part in [
        "not promised: an agent only advises",
        "yes: shop/web on cache-1",
        "it is enforced",
        "event: event",
        "\"removed\"",
    ] {
        assert!(said.contains(part), "{part}\n{said}\n{complaints}");
    }
    assert!(folder.join("restored/history.db").exists(), "{complaints}");
}
