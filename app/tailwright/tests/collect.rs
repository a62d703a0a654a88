//! The paths of docs/guides/first-plan.md with real servers: recorded, killed, split, planned.

mod support;

use model::Op;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::Folder;
use support::servers::{MEMCACHED, Running, memcached, server, server_at};
use trace::recording::{RecordableRequest, RecordingSettings, RecordingWriter};
use units::{Bytes, Nanos};

const PROFILE: &str = r#"{ "bandwidthTable": [
    { "requestSize": 4096, "readBandwidth": 4096000000, "writeBandwidth": 4096000000 } ] }"#;

/// One whose port is below those that clients have, as the ports of services are.
fn memcached_at_a_service_port() -> Option<(Running, SocketAddr)> {
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (11_300..12_000).find(free).expect("one of them is free");
    server_at(SocketAddr::from(([127, 0, 0, 1], port)), "memcached", MEMCACHED)
}

/// A hosts file with a client of each of these addresses, `web-N`.
fn write_hosts(folder: &Folder, protocol: &str, forward: SocketAddr, clients: &[&str]) {
    let mut text = format!(
        "[[host]]\nname = \"here\"\ndevice.nothing = \"1Gbps\"\n[[server]]\nname = \"store\"\nhost = \"here\"\n\
         address = [\"127.0.0.1\"]\n[server.storage]\nprofile = \"profile.json\"\n\
         front = [{{ protocol = \"{protocol}\", listen = \"127.0.0.1:0\", forward = \"{forward}\" }}]\n"
    );
    for (number, address) in clients.iter().enumerate() {
        text +=
            &format!("[[client]]\nworkload = \"web-{number}\"\nhost = \"here\"\naddress = [\"{address}\"]\n");
    }
    folder.write("hosts.toml", &text);
    folder.write("profile.json", PROFILE);
}

/// The proxy of a folder's hosts file, without a policy, and where it listens.
fn proxy(folder: &Folder, arguments: &[&str]) -> (Running, SocketAddr) {
    let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "store", "--state", "state"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(fixed)
        .args(arguments)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let address = loop {
        let line = lines.next().expect("it listens before it ends").expect("it is text");
        if let Some(address) = line.strip_prefix("proxy: listening on ") {
            break address.parse().expect("an address");
        }
    };
    std::thread::spawn(move || lines.for_each(drop));
    (Running(child), address)
}

/// A load file with a workload from each of these addresses.
fn write_load(folder: &Folder, target: &str, seconds: u32, clients: &[&str]) {
    let mut text = format!("duration = \"{seconds}s\"\ndrain = \"1s\"\n");
    for (number, address) in clients.iter().enumerate() {
        text += &format!(
            "[[workload]]\nname = \"web-{number}\"\ntarget = \"{target}\"\nbind = \"{address}\"\nconnections = 2\n\
             arrivals = \"poisson(300/s)\"\nsize = \"4KiB\"\nreads = 0.7\n"
        );
    }
    folder.write("load.toml", &text);
}

/// The number of requests that `trace info` finds.
fn requests(folder: &Folder, name: &str) -> u64 {
    let info = folder.run(&["trace", "info", name, "--json"]).expect_code(0).json();
    let found = find(&info, "count").or_else(|| find(&info, "requests"));
    found.unwrap_or_else(|| panic!("{info}"))
}

/// The first number of this name, wherever it is in a document.
fn find(document: &serde_json::Value, name: &str) -> Option<u64> {
    match document {
        serde_json::Value::Object(fields) => fields
            .get(name)
            .and_then(serde_json::Value::as_u64)
            .or_else(|| fields.values().find_map(|value| find(value, name))),
        serde_json::Value::Array(items) => items.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

/// A cluster file as it was printed, with its marks replaced.
fn filled(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = match line.split_once(" = ") {
            Some(("storage", _)) => "storage = \"profile.json\"",
            Some(("network", _)) => "network = \"1Gbps\"",
            Some(("slo", _)) => "slo = \"99% < 1h\"",
            _ => line,
        };
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

/// Splits a recording, fills in what is marked, and plans.
fn plan_of(folder: &Folder, recording: &str, by: &str) -> serde_json::Value {
    let split = folder.run(&["trace", "split", recording, "--by", by, "-o", "traces"]).expect_code(0);
    folder.write("unfinished.toml", &split.stdout);
    let marked = folder.run(&["plan", "unfinished.toml"]).expect_code(2).stderr;
    for field in ["storage =", "network =", "slo ="] {
        assert!(marked.contains(field), "all that is missing is said at once: {marked}");
    }
    folder.write("profile.json", PROFILE);
    folder.write("cluster.toml", &filled(&split.stdout));
    folder.run(&["plan", "cluster.toml", "-o", "policy.json", "--json"]).expect_code(0).json()
}

#[test]
fn memcached_by_a_proxy_without_a_policy() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    let clients = ["127.0.0.1", "127.0.0.2"];
    write_hosts(&folder, "memcached", address, &clients);
    let (running, front) = proxy(&folder, &["--record", "rec", "--record-space", "4MiB"]);
    write_load(&folder, &format!("memcached://{front}?keys=20"), 2, &clients);
    folder.run(&["load", "load.toml", "-o", "run.parquet"]).expect_code(0);
    running.signal("TERM");
    assert!(running.ends_well());

    // Several workloads are not one trace, and who is asked for nobody is said.
    let several = folder.run(&["trace", "info", "rec"]).expect_code(2).stderr;
    assert!(several.contains("of one workload") && several.contains("rec#web-"), "{several}");
    let nobody = folder.run(&["trace", "info", "rec#mail"]).expect_code(2).stderr;
    assert!(nobody.contains("web-0, web-1"), "{nobody}");
    // The proxy saw what was sent, and the values that were stored before.
    for (name, client) in [("web-0", "127.0.0.1"), ("web-1", "127.0.0.2")] {
        let sent = requests(&folder, &format!("run.parquet#{name}"));
        let seen = requests(&folder, &format!("rec#{name}"));
        assert!(sent > 100 && (sent..=sent + 40).contains(&seen), "{name}: {seen} of {sent}");
        assert_eq!(requests(&folder, &format!("rec#client={client}")), seen);
    }
    let plan = plan_of(&folder, "rec", "workload");
    assert_eq!(plan["servers_used"], 1, "{plan}");
    // A recording can be named in a cluster file as it is, and judged.
    folder.write("direct.toml", &folder.read("cluster.toml").replace("traces/web-0.parquet", "rec#web-0"));
    let direct = folder.run(&["plan", "direct.toml", "--json"]).expect_code(0).json();
    assert_eq!(direct["servers"], plan["servers"], "the split trace is the recorded one");
    let again = folder.run(&["plan", "direct.toml"]).expect_code(0).stderr;
    assert!(again.contains("0 read, 2 reused"), "{again}");
    folder.run(&["verify", "rec", "--slo", "web-0=50% < 10s"]).expect_code(0);
}

/// The names that a policy's template has marked, replaced.
fn filled_hosts(template: &str, address: SocketAddr, profile: &str) -> String {
    let mut lines = Vec::new();
    let mut client = 0;
    for line in template.lines() {
        let line = if line.starts_with("device") {
            "device = { nothing = \"1Gbps\" }".to_owned()
        } else if line.starts_with("address") {
            client += 1;
            format!("address = [\"127.0.0.{client}\"]")
        } else if line.starts_with("profile") {
            format!("profile = \"{profile}\"")
        } else if line.trim_start().starts_with("{ protocol") {
            format!("  {{ protocol = \"memcached\", listen = \"127.0.0.1:0\", forward = \"{address}\" }},")
        } else {
            line.to_owned()
        };
        lines.push(line);
    }
    lines.join("\n")
}

#[test]
fn a_template_of_hosts_is_accepted_once_it_is_filled_in() {
    let folder = Folder::new();
    folder.run(&["demo"]).expect_code(0);
    let policy = "tailwright-demo/plan.json";
    let template = folder.run(&["apply", "--template", policy]).expect_code(0).stdout;
    folder.write("hosts.toml", &template);
    folder.write("profile.json", PROFILE);
    let unfilled = folder.run(&["apply", policy, "--hosts", "hosts.toml", "--dry-run"]).expect_code(2).stderr;
    let marked = template.lines().filter(|line| !line.starts_with('#') && line.contains("CHANGE")).count();
    assert!(unfilled.contains(&format!("{marked} places marked CHANGE")), "{unfilled}");
    assert_eq!(unfilled.matches("\n  line ").count(), marked, "{unfilled}");
    let address = "127.0.0.1:9".parse().expect("an address");
    // Bounds hold for the device profile that the policy was planned with, and for no other.
    folder.write("hosts.toml", &filled_hosts(&template, address, "profile.json"));
    let other = folder.run(&["apply", policy, "--hosts", "hosts.toml", "--dry-run"]).expect_code(2).stderr;
    assert!(other.contains("content of the device profile"), "{other}");
    folder.write("hosts.toml", &filled_hosts(&template, address, "tailwright-demo/ssd-profile.json"));
    let dry = folder.run(&["apply", policy, "--hosts", "hosts.toml", "--dry-run"]).expect_code(0).stdout;
    assert!(dry.contains("# host-of-database-1"), "{dry}");

    // What is missing without the template is said at once, too.
    folder.write("few.toml", "[[host]]\nname = \"here\"\ndevice.nothing = \"1Gbps\"\n");
    let few = folder.run(&["apply", policy, "--hosts", "few.toml", "--dry-run"]).expect_code(2).stderr;
    assert!(few.contains("60 mistakes") && few.contains("backup-2") && few.contains("database-1"), "{few}");
    assert!(few.contains("--template"), "{few}");
    folder.write("wrong.toml", "[[host]]\nname = \"a\"\ndevice.x = \"1Gbps\"\n[[server]]\nname = \"s\"\nhost = \"b\"\naddress = []\n");
    let wrong = folder.run(&["apply", policy, "--hosts", "wrong.toml", "--dry-run"]).expect_code(2).stderr;
    assert!(
        wrong.contains("2 mistakes") && wrong.contains("no host 'b'") && wrong.contains("at least one"),
        "{wrong}"
    );
}

#[test]
fn a_killed_proxy_has_recorded_all_but_the_end() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    write_hosts(&folder, "memcached", address, &["127.0.0.1"]);
    let mut before = 0;
    for round in 0..3u32 {
        let (running, front) = proxy(&folder, &["--record", "rec"]);
        write_load(&folder, &format!("memcached://{front}?keys=20"), 6, &["127.0.0.1"]);
        let load = Command::new(env!("CARGO_BIN_EXE_tailwright"))
            .args(["load", "load.toml", "-o", "run.parquet"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let load = Running(load.expect("the program starts"));
        // Somewhere in the middle of the run, at another place of the second in each round.
        testkit::wait_until(Duration::from_secs(60), "the middle of the run", || {
            std::thread::sleep(Duration::from_millis(50));
            proxied(&folder) >= 900 + 110 * u64::from(round)
        });
        running.signal("KILL");
        drop(running);
        // Without its server the load ends as it may.
        load.ends_well();
        let recorded = requests(&folder, "rec#web-0") - before;
        before += recorded;
        let run = trace::observations::read(&folder.join("run.parquet")).expect("the run is written");
        let mut answers: Vec<u64> = run.requests.iter().filter_map(answered).collect();
        answers.sort_unstable();
        let Some(last) = answers.last() else { panic!("nothing was answered") };
        // A second by its promise; a busy machine lets the thread that writes wait.
        let early = answers.iter().filter(|at| **at + 2_000_000_000 < *last).count() as u64;
        assert!(early > 0 && recorded >= early, "{recorded} of {} answers, {early} early", answers.len());
    }
}

/// How many requests the proxy says that it has finished.
fn proxied(folder: &Folder) -> u64 {
    let status = folder.run(&["proxy", "--status", "--server", "store", "--state", "state", "--json"]);
    let status = status.expect_code(0).json();
    let workloads = status["workloads"].as_array().expect("a list");
    workloads.iter().filter_map(|workload| workload["requests"].as_u64()).sum()
}

fn answered(request: &model::Observation) -> Option<u64> {
    match request.outcome {
        model::RequestOutcome::Done(end) => Some(end.0),
        _ => None,
    }
}

#[test]
fn nbd_by_a_proxy_without_a_policy() {
    let Some((_nbdkit, address)) = server("nbdkit", "-f -i 127.0.0.1 -p PORT memory 32M") else { return };
    nbd(address);
}

#[test]
fn nbd_of_qemu_by_a_proxy_without_a_policy() {
    let folder = Folder::new();
    std::fs::File::create(folder.join("disk")).and_then(|disk| disk.set_len(32 << 20)).expect("it is ours");
    let arguments = format!("-b 127.0.0.1 -p PORT -f raw -t -e 4 {}", folder.join("disk").display());
    let Some((_qemu, address)) = server("qemu-nbd", &arguments) else { return };
    nbd(address);
}

fn nbd(address: SocketAddr) {
    let folder = Folder::new();
    write_hosts(&folder, "nbd", address, &["127.0.0.1"]);
    let (running, front) = proxy(&folder, &["--record", "rec"]);
    write_load(&folder, &format!("nbd://{front}/"), 1, &["127.0.0.1"]);
    folder.run(&["load", "load.toml", "-o", "run.parquet"]).expect_code(0);
    running.signal("TERM");
    assert!(running.ends_well());
    assert_eq!(requests(&folder, "rec"), requests(&folder, "run.parquet"), "one workload needs no name");
    folder.run(&["trace", "convert", "rec", "-o", "rec.csv"]).expect_code(0);
    let text = folder.read("rec.csv");
    let offsets = text.lines().skip(1).filter(|line| line.split(',').nth(3).is_some_and(|at| !at.is_empty()));
    assert_eq!(offsets.count(), text.lines().count() - 1, "NBD says where");
    assert_eq!(plan_of(&folder, "rec", "workload")["servers_used"], 1);
}

/// What is run in namespaces of its own: ganesha at the loopback address, and the proxy at another one.
const NFS: &str = r#"set -e
ip link set lo up
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip addr add 10.99.0.1/24 dev v0
mount -t tmpfs tmpfs /run
mkdir -p /run/rpcbind /run/export
mkdir -p /var/lib/nfs
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/ganesha
cat > /run/ganesha.conf <<'END'
NFS_CORE_PARAM { NFS_Port = 2049; MNT_Port = 20048; NLM_Port = 0; Enable_NLM = false; Enable_RQUOTA = false;
    Protocols = 3, 4; mount_path_pseudo = true; Bind_addr = 127.0.0.1; }
NFSV4 { Graceless = true; }
EXPORT { Export_Id = 1; Path = /run/export; Pseudo = /export; Squash = none; SecType = sys; Access_Type = RW;
    Protocols = 3, 4; Transports = TCP; FSAL { Name = VFS; } }
END
rpcbind
ganesha.nfsd -F -f /run/ganesha.conf -L /run/ganesha.log -p /run/ganesha.pid &
until ss -ltn | grep -q :20048; do sleep 0.1; done
$TAILWRIGHT proxy --hosts hosts.toml --server store --state state --record rec 2> proxy.log &
proxy=$!
until grep -q 10.99.0.1:20048 proxy.log; do sleep 0.1; done
sleep 1
$TAILWRIGHT load load.toml -o run.parquet
kill -TERM $proxy
wait $proxy
"#;

#[test]
fn nfs_of_ganesha_by_a_proxy_without_a_policy() {
    if !["ganesha.nfsd", "rpcbind", "ss", "ip"].iter().all(|name| testkit::program(name).is_some()) {
        return;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return testkit::skip("namespaces need root and `unshare`");
    }
    let folder = Folder::new();
    write_hosts(&folder, "nfs", "127.0.0.1:0".parse().expect("an address"), &["10.99.0.1"]);
    let front = "{ protocol = \"nfs\", listen = \"10.99.0.1\", forward = \"127.0.0.1\" }";
    let hosts = folder.read("hosts.toml");
    let lines = hosts
        .lines()
        .map(|line| if line.starts_with("front") { format!("front = [{front}]") } else { line.to_owned() });
    folder.write("hosts.toml", &lines.collect::<Vec<_>>().join("\n"));
    write_load(&folder, "nfs://10.99.0.1/export/file?size=16MiB", 2, &["10.99.0.1"]);
    let output = unshare()
        .args(["sh", "-c", NFS])
        .env("TAILWRIGHT", env!("CARGO_BIN_EXE_tailwright"))
        .current_dir(folder.path())
        .output()
        .expect("unshare runs");
    let said = [output.stdout, output.stderr].concat();
    let log = std::fs::read_to_string(folder.join("proxy.log")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{log}", String::from_utf8_lossy(&said));
    let sent = requests(&folder, "run.parquet");
    let seen = requests(&folder, "rec#web-0");
    // The file is made first, which takes writes of its own.
    assert!(sent > 100 && (sent..=sent + 64).contains(&seen), "{seen} of {sent}");
    assert_eq!(plan_of(&folder, "rec", "workload")["servers_used"], 1);
}

#[test]
fn memcached_by_captured_packets() {
    let server = memcached_at_a_service_port();
    let tcpdump = testkit::program("tcpdump");
    let (Some((_memcached, address)), Some(tcpdump)) = (server, tcpdump) else { return };
    let folder = Folder::new();
    let capture = std::fs::File::create(folder.join("capture.tcpdump")).expect("it is ours");
    let filter = format!("tcp port {}", address.port());
    let child = Command::new(tcpdump)
        .args(["-i", "lo", "-tt", "-n", "-q", "-l", &filter])
        .stdout(capture)
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let is_listening = said.by_ref().map_while(Result::ok).any(|line| line.contains("listening on"));
    let running = Running(child);
    if !is_listening {
        return testkit::skip("tcpdump may not capture here");
    }
    std::thread::spawn(move || said.for_each(drop));
    // One connection on which requests seldom meet, so that the capture shows almost each.
    folder.write(
        "load.toml",
        &format!(
            "duration = \"2s\"\n[[workload]]\nname = \"web\"\ntarget = \"memcached://{address}?keys=20\"\nbind = \"127.0.0.3\"\n\
             connections = 1\narrivals = \"poisson(500/s)\"\nsize = \"4KiB\"\n"
        ),
    );
    folder.run(&["load", "load.toml", "-o", "run.parquet"]).expect_code(0);
    std::thread::sleep(Duration::from_millis(300));
    running.signal("INT");
    running.ends_well();
    let sent = requests(&folder, "run.parquet");
    let name = format!("capture.tcpdump#port-{}", address.port());
    let seen = requests(&folder, &name);
    // The kernel may drop packets of a capture on a busy machine.
    assert!(seen * 10 > sent * 5 && seen <= sent + 40, "{seen} of {sent}");
    assert_eq!(requests(&folder, "capture.tcpdump#client=127.0.0.3"), seen);
    assert_eq!(plan_of(&folder, "capture.tcpdump", "client")["servers_used"], 1);
}

/// Text as blkparse writes it, made for this test and not recorded: for machines that let nobody trace.
const BLKPARSE_SAMPLE: &str = include_str!("data/generated-sample.blkparse");

/// The text of blkparse for requests to a loop device; none where the machine does not allow it.
fn traced_loop_device(folder: &Folder) -> Option<String> {
    for program in ["blktrace", "blkparse", "losetup"] {
        testkit::program(program)?;
    }
    let script = "set -e\ntruncate -s 32M disk.img\ndevice=$(losetup --find --show disk.img)\n\
        trap 'losetup -d $device' EXIT\nblktrace -d $device -w 4 -o loop > blktrace.log 2>&1 &\nsleep 1.5\n\
        dd if=/dev/zero of=$device bs=16k count=50 oflag=direct\ndd if=$device of=/dev/null bs=4k count=50 iflag=direct\n\
        wait $!\nblkparse -i loop > loop.blkparse\ntest -s loop.blkparse";
    let done = Command::new("sh").args(["-c", script]).current_dir(folder.path()).output().expect("a shell");
    if !done.status.success() {
        let log = std::fs::read_to_string(folder.join("blktrace.log")).unwrap_or_default();
        let why = log.lines().next().unwrap_or("it does not trace");
        testkit::skip(&format!("blktrace of a loop device: {why}; the generated sample is read instead"));
        return None;
    }
    Some(folder.read("loop.blkparse"))
}

#[test]
fn a_block_device_by_blktrace() {
    let folder = Folder::new();
    let (text, least) = match traced_loop_device(&folder) {
        Some(text) => (text, 100),
        None => (BLKPARSE_SAMPLE.to_owned(), 40),
    };
    folder.write("disk.blkparse", &text);
    folder.write("profile.json", PROFILE);
    let seen = requests(&folder, "disk.blkparse");
    assert!((least..=least + 60).contains(&seen), "{seen} requests");
    let cluster = "[[workload]]\nname = \"disk\"\ntrace = \"disk.blkparse\"\nslo = \"\"\n";
    let servers =
        "safety_margin = 1.1\n[[server]]\nclass = \"ssd\"\ncount = 1\nstorage = \"\"\nnetwork = \"\"\n";
    folder.write("cluster.toml", &filled(&format!("{servers}{cluster}")));
    let plan = folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    assert_eq!(plan["servers_used"], 1);
    assert!(requests_of_sample() == 40, "the sample is read everywhere");
}

fn requests_of_sample() -> u64 {
    let folder = Folder::new();
    folder.write("sample.blkparse", BLKPARSE_SAMPLE);
    requests(&folder, "sample.blkparse")
}

#[test]
fn memcached_by_observing() {
    let Some((_memcached, address)) = memcached() else { return };
    let folder = Folder::new();
    let outcome = folder.run(&["observe", "--port", "1", "--for", "10ms"]);
    if outcome.code == 3 {
        return testkit::skip(outcome.stderr.lines().next().unwrap_or("observing is refused"));
    }
    let port = address.port().to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["observe", "--port", &port, "--for", "60s", "--record", "rec"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    assert!(said.by_ref().map_while(Result::ok).any(|line| line.starts_with("observing")));
    let running = Running(child);
    write_load(&folder, &format!("memcached://{address}?keys=20"), 2, &["127.0.0.1", "127.0.0.2"]);
    folder.run(&["load", "load.toml", "-o", "run.parquet"]).expect_code(0);
    running.signal("TERM");
    assert!(running.ends_well());
    for (number, client) in ["127.0.0.1", "127.0.0.2"].iter().enumerate() {
        let sent = requests(&folder, &format!("run.parquet#web-{number}"));
        let seen = requests(&folder, &format!("rec#client={client}"));
        assert!(seen * 10 > sent * 5, "{seen} of {sent}");
    }
    assert_eq!(plan_of(&folder, "rec", "client")["servers_used"], 1);
    // On the server's machine nothing is left to fill in but the protocol, which its port does not tell.
    let mut args =
        vec!["trace", "split", "rec", "--by", "client", "-o", "traces", "--write-hosts", "hosts.toml"];
    args.extend(["--storage", "profile.json", "--network", "1Gbps"]);
    folder.write("cluster.toml", &filled(&folder.run(&args).expect_code(0).stdout));
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let hosts = folder.read("hosts.toml");
    if testkit::program("ip").is_some() {
        assert!(hosts.contains(&format!("forward = \"127.0.0.1:{port}\"")), "{hosts}");
        let marked = hosts.lines().filter(|line| line.contains("CHANGE") && !line.starts_with('#'));
        assert_eq!(marked.count(), 1, "{hosts}");
        folder.write("hosts.toml", &hosts.replace("CHANGE: nfs, nbd or memcached", "memcached"));
        // The packets of a loopback device are larger than bounds count on.
        let apply = ["apply", "policy.json", "--hosts", "hosts.toml", "--dry-run", "--without-bounds"];
        folder.run(&apply).expect_code(0);
    }
}

/// Writes a recording with a read of one client for each of these workloads.
fn record<'a>(folder: &Folder, workloads: impl IntoIterator<Item = &'a str>) {
    let settings = RecordingSettings::default();
    let mut writer = RecordingWriter::create(&folder.join("rec"), settings).expect("a folder can be made");
    for (at, workload) in (0..).zip(workloads) {
        let request = RecordableRequest {
            arrival: Nanos(1_700_000_000_000_000_000 + at),
            size: Bytes(100),
            op: Op::Read,
            offset: None,
            response: Nanos(5),
            waited: Nanos(0),
            workload,
            client: Some([10, 0, 0, 7].into()),
        };
        writer.write(&request, Nanos(0)).expect("it can be written");
    }
    writer.finish(Nanos(0)).expect("it can be written");
}

#[test]
fn workloads_are_split_whatever_their_names_are() {
    let folder = Folder::new();
    let long = "x".repeat(300);
    let names =
        ["a#b", "a/b", "*", "client=10.0.0.7", "../up", "", "name#client=10.0.0.7", "two\nlines", &long];
    record(&folder, names);
    let split = folder.run(&["trace", "split", "rec", "-o", "traces"]).expect_code(0);
    let traces = split.stdout.lines().filter_map(|line| line.strip_prefix("trace = \""));
    let traces: Vec<_> = traces.map(|line| line.trim_end_matches('"')).collect();
    assert_eq!(traces.len(), names.len());
    for trace in traces {
        let mut parts = Path::new(trace).components();
        assert!(parts.all(|part| matches!(part, Component::Normal(_))), "{trace}");
        assert_eq!(requests(&folder, trace), 1, "{trace}");
    }
}

#[test]
fn a_client_of_several_servers_has_a_trace_at_each() {
    let folder = Folder::new();
    let ports = ["port-2049", "port-10809", "port-11211", "port-2049"];
    record(&folder, ports.into_iter().cycle().take(12));
    let mut packets = String::new();
    for (second, port) in [(1, 2049), (2, 11211), (3, 2049), (4, 2049)] {
        packets += &format!(
            "{second}.000000 IP 10.0.0.7.{} > 10.0.0.1.{port}: Flags [P.], seq {second}00:{second}50, ack 1, win 1, length 50\n\
             {second}.001000 IP 10.0.0.1.{port} > 10.0.0.7.{}: Flags [P.], seq {second}00:{second}90, ack 1, win 1, length 90\n",
            port + 40000,
            port + 40000
        );
    }
    folder.write("capture.tcpdump", &packets);
    let blocks = "8,0 0 1 0.000000001 7 Q R 0 + 8 [fio]\n8,16 0 2 0.000000002 7 Q R 0 + 8 [fio]\n\
                  8,0 0 3 0.000000003 7 C R 0 + 8 [0]\n8,16 0 4 0.000000004 7 C R 0 + 8 [0]\n";
    folder.write("disks.blkparse", blocks);
    for (file, client, servers) in [
        ("rec", "10.0.0.7", vec![("port-10809", 3), ("port-11211", 3), ("port-2049", 6)]),
        ("capture.tcpdump", "10.0.0.7", vec![("10.0.0.1:11211", 1), ("10.0.0.1:2049", 3)]),
        ("disks.blkparse", "fio", vec![("8,0", 1), ("8,16", 1)]),
    ] {
        let split = folder.run(&["trace", "split", file, "--by", "client", "-o", "traces"]).expect_code(0);
        assert!(split.stderr.contains("several servers"), "{}", split.stderr);
        assert!(split.stdout.contains("# These are requests to several servers"), "{}", split.stdout);
        let traces = split.stdout.lines().filter_map(|line| line.strip_prefix("trace = \""));
        let found: Vec<_> = traces.map(|line| requests(&folder, line.trim_end_matches('"'))).collect();
        let expected: Vec<_> = servers.iter().map(|(_, requests)| *requests).collect();
        assert_eq!(found, expected, "{file}: {}", split.stdout);
        for (server, expected) in &servers {
            assert_eq!(requests(&folder, &format!("{file}#client={client}@{server}")), *expected);
        }
        let merged = folder.run(&["trace", "info", &format!("{file}#client={client}")]).expect_code(2).stderr;
        assert!(
            merged.contains("at one server") && merged.contains(&format!("#client={client}@")),
            "{merged}"
        );
    }
    let split = folder.run(&["trace", "split", "rec", "-o", "traces"]).expect_code(0);
    assert!(split.stderr.contains("several servers"), "{}", split.stderr);
}

#[test]
fn load_does_not_write_over_what_it_reads() {
    let folder = Folder::new();
    let arguments = "trace generate poisson --rate 50/s --duration 1s -o t.parquet";
    folder.run(&arguments.split(' ').collect::<Vec<_>>()).expect_code(0);
    let load = "duration = \"1s\"\n[[workload]]\nname = \"web\"\ntarget = \"memcached://127.0.0.1:1\"\ntrace = \"t.parquet\"\n";
    folder.write("load.toml", load);
    std::os::unix::fs::symlink("t.parquet", folder.join("link")).expect("it is ours");
    let before = std::fs::read(folder.join("t.parquet")).expect("it is there");
    for output in ["t.parquet", "link", "./load.toml"] {
        let refused = folder.run(&["load", "load.toml", "-o", output]).expect_code(2).stderr;
        assert!(refused.contains("another file for the result") && refused.contains("hint"), "{refused}");
    }
    assert_eq!(std::fs::read(folder.join("t.parquet")).expect("it is there"), before);
    assert_eq!(folder.read("load.toml"), load);
}

#[test]
fn recordings_are_refused_where_they_cannot_be() {
    let folder = Folder::new();
    write_hosts(&folder, "nbd", "127.0.0.1:9".parse().expect("an address"), &[]);
    folder.write("file", "x");
    for (arguments, code, said) in [
        (&["--record", "file/rec"][..], 3, "file/rec"),
        (&["--record", "rec", "--record-space", "10KiB"], 2, "--record-space: expected at least 1MiB"),
    ] {
        let fixed = ["proxy", "--hosts", "hosts.toml", "--server", "store", "--state", "state"];
        let all: Vec<&str> = fixed.iter().chain(arguments).copied().collect();
        let refused = folder.run(&all).expect_code(code).stderr;
        assert!(refused.contains(said) && refused.contains("hint"), "{refused}");
    }
    assert!(!Path::new(&folder.join("rec")).exists());
}

/// A capture on the machine of the server: the hosts file has everything, and the proxy takes it as it is.
#[test]
fn split_writes_the_hosts_file_of_a_capture() {
    let folder = Folder::new();
    folder.write(
        "capture.tcpdump",
        "1700000000.000100 IP 127.0.0.2.871 > 127.0.0.9.11211: tcp 144\n\
         1700000000.000300 IP 127.0.0.9.11211 > 127.0.0.2.871: tcp 1448\n\
         1700000000.000400 IP 127.0.0.3.712 > 127.0.0.9.11211: tcp 1448\n\
         1700000000.000600 IP 127.0.0.9.11211 > 127.0.0.3.712: tcp 136\n",
    );
    folder.write("ssd.json", PROFILE);
    let split = |more: &[&str]| {
        let mut args = vec!["trace", "split", "capture.tcpdump", "--by", "client", "-o", "traces"];
        args.extend(["--write-hosts", "hosts.toml"]);
        args.extend(more);
        folder.run(&args)
    };
    let cluster = split(&["--storage", "ssd.json", "--network", "1Gbps"]).expect_code(0).stdout;
    assert_eq!(cluster.matches("CHANGE").count() - 1, 2, "only SLOs are left: {cluster}");
    let hosts = std::fs::read_to_string(folder.path().join("hosts.toml")).expect("it is written");
    for part in [
        "protocol = \"memcached\", listen = \"127.0.0.9:21211\", forward = \"127.0.0.9:11211\" }",
        "address = [\"127.0.0.9\"]",
        "workload = \"127.0.0.2\"",
        "workload = \"127.0.0.3\"",
    ] {
        assert!(hosts.contains(part), "{part}: {hosts}");
    }
    folder.write("cluster.toml", &cluster.replace("CHANGE: such as 99.9% < 100ms", "99% < 300ms"));
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    let outcome = split(&["--storage", "nothing.json"]).expect_code(2);
    assert!(outcome.stderr.contains("nothing.json"), "{}", outcome.stderr);
    // Inputs and other results of the command are not replaced.
    let capture = folder.read("capture.tcpdump");
    for place in ["capture.tcpdump", "ssd.json", "traces/127.0.0.2.parquet", "-"] {
        let args = ["trace", "split", "capture.tcpdump", "--by", "client", "-o", "traces"];
        let args = [&args[..], &["--storage", "ssd.json", "--write-hosts", place]].concat();
        folder.run(&args).expect_code(2);
    }
    assert_eq!((folder.read("capture.tcpdump"), folder.read("ssd.json")), (capture, PROFILE.to_owned()));
    // A profile is found from the folder of the hosts file.
    std::fs::create_dir(folder.join("deep")).expect("a folder can be made");
    let args = ["trace", "split", "capture.tcpdump", "--by", "client", "-o", "traces"];
    folder
        .run(&[&args[..], &["--storage", "ssd.json", "--write-hosts", "deep/hosts.toml"]].concat())
        .expect_code(0);
    let named = folder.read("deep/hosts.toml");
    let named = named.lines().find_map(|line| line.strip_prefix("profile = ")).expect("it is named");
    assert!(Path::new(named.trim_matches('"')).is_absolute(), "{named}");
}
