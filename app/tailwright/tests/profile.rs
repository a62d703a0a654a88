//! `tailwright profile` as scripts see it: exit codes, what is on stdout, what is left behind.

mod support;

use model::Op;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::servers::signal;
use units::Bytes;
use workload::device::{DeviceModel, StorageProfile};

const QUICK: [&str; 8] =
    ["--sizes", "4KiB,64KiB", "--parallelism", "1,2", "--time-per-cell", "20ms", "--repetitions", "2"];

fn tailwright() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.arg("profile");
    command
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Says loudly that the build directory cannot be measured.
fn lacks_direct_io(output: &Output) -> bool {
    let message = stderr(output);
    let lacks = message.contains("O_DIRECT") || message.contains("in memory");
    if lacks {
        testkit::skip(&message);
    }
    lacks
}

#[test]
fn creates_measures_writes_the_profile_and_cleans_up() {
    let dir = scratch("create");
    let profile = dir.join("fast.json");
    let output =
        tailwright().arg(&dir).args(["--create", "16MiB", "-o"]).arg(&profile).args(QUICK).output().unwrap();
    if lacks_direct_io(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    let sizes: Vec<_> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(sizes, ["size", "4KiB", "64KiB"], "{table}");
    let read_back = StorageProfile::from_json(&fs::read_to_string(&profile).unwrap()).unwrap();
    assert_eq!(read_back.name(), "fast");
    assert_eq!(read_back.base_latency_percentile().unwrap().percent(), 99.9);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "only the profile is left");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn reads_by_default_and_prints_json() {
    let dir = scratch("json");
    let file = dir.join("data");
    fs::write(&file, vec![7; 16 << 20]).unwrap();
    let output = tailwright().arg(&file).arg("--json").args(QUICK).output().unwrap();
    if lacks_direct_io(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::check_document(&answer);
    assert_eq!(answer["complete"], true);
    assert_eq!(answer["cells"].as_array().unwrap().len(), 4);
    assert!(answer["sizes"][0]["read"]["bytes_per_s"].as_f64().unwrap() > 0.0);
    assert!(answer["sizes"][0]["write"].is_null());
    assert!(fs::read(&file).unwrap().iter().all(|&byte| byte == 7), "nothing was written");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_spindle_speed_makes_a_disk_profile() {
    let dir = scratch("disk");
    let profile = dir.join("disk.json");
    let output = tailwright()
        .arg(&dir)
        .args(["--create", "16MiB", "--spindle-rpm", "7200", "--time-per-cell", "10ms", "--json", "-o"])
        .arg(&profile)
        .output()
        .unwrap();
    if lacks_direct_io(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::check_document(&answer);
    assert_eq!(answer["seek"].as_array().unwrap().len(), 3);
    let read_back = StorageProfile::from_json(&fs::read_to_string(&profile).unwrap()).unwrap();
    assert!(matches!(read_back.device(), DeviceModel::Disk(_)));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn refusals_exit_with_2_or_3_and_a_hint() {
    let dir = scratch("refuse");
    let absent = dir.join("absent");
    let absent = absent.to_str().unwrap();
    let here = dir.to_str().unwrap();
    for (args, code, part) in [
        (vec![absent], 2, "absent"),
        (vec![here], 2, "--create SIZE"),
        (vec![absent, "-o", "x.json"], 2, "--writes-like-reads"),
        (vec![absent, "--writes-like-reads"], 2, "-o FILE"),
        (vec![here, "--create", "1GiB", "--sizes", "1000"], 2, "multiples of 512B"),
        (vec![here, "--create", "1GiB", "--time-per-cell", "0"], 2, "time-per-cell"),
        (vec![here, "--create", "1GiB", "--write"], 2, "cannot be used with"),
        (vec![absent, "--destroy-device-data"], 2, "--write"),
        (vec![absent, "--spindle-rpm", "0"], 2, "such as 7200"),
        (vec![absent, "--spindle-rpm", "7200", "--sizes", "4KiB"], 2, "cannot be used with"),
        (vec![here, "--create", "1000000TiB"], 3, "free"),
    ] {
        let output = tailwright().args(&args).output().unwrap();
        let message = stderr(&output);
        if part == "free" && lacks_direct_io(&output) {
            continue;
        }
        assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(output.stdout.is_empty());
    }
    fs::remove_dir(&dir).unwrap();
}

#[test]
fn interrupting_prints_what_there_is_and_leaves_nothing() {
    let dir = scratch("interrupt");
    let mut child = tailwright()
        .arg(&dir)
        .args(["--create", "16MiB", "--json", "--time-per-cell", "10min", "-o"])
        .arg(dir.join("never.json"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    if line.starts_with("error") {
        testkit::skip(&line);
        child.wait().unwrap();
        return;
    }
    // The line that announces the plan comes after the handler is in place.
    signal(&child, "INT");
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    errors.read_to_string(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{line}");
    assert!(line.contains("interrupted"), "{line}");
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["complete"], false);
    fs::remove_dir(&dir).expect("neither the measured file nor a profile is left");
}

/// Sends a command of memcached's text protocol, and returns the answer up to a line that ends it.
fn ask(stream: &mut TcpStream, command: &str) -> String {
    stream.write_all(command.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let ends = ["END\r\n", "STORED\r\n", "ERROR\r\n"];
    while !ends.iter().any(|end| answer.ends_with(end.as_bytes())) {
        let mut chunk = [0; 64 << 10];
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "memcached hung up after {command:?}");
        answer.extend_from_slice(&chunk[..count]);
    }
    String::from_utf8(answer).unwrap()
}

fn statistic(stream: &mut TcpStream, name: &str) -> u64 {
    let answer = ask(stream, "stats\r\n");
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.expect("a statistic").parse().unwrap()
}

/// Requests per second of one client that waits for each answer, without any code of the program.
fn gets_per_s(stream: &mut TcpStream, size: usize) -> f64 {
    let value = "v".repeat(size);
    assert_eq!(ask(stream, &format!("set probe 0 0 {size}\r\n{value}\r\n")), "STORED\r\n");
    let begin = Instant::now();
    let mut requests = 0;
    while begin.elapsed() < Duration::from_millis(300) {
        assert!(ask(stream, "get probe\r\n").len() > size);
        requests += 1;
    }
    stream.write_all(b"delete probe\r\n").unwrap();
    let mut deleted = [0; 9];
    stream.read_exact(&mut deleted).unwrap();
    f64::from(requests) / begin.elapsed().as_secs_f64()
}

/// The profile agrees with another client within what a busy machine explains, is one that `plan` takes, and the server
/// has the keys that it had.
#[test]
fn a_memcached_is_measured_and_keeps_its_keys() {
    let Some((_memcached, address)) = support::servers::memcached() else { return };
    let dir = scratch("memcached");
    let profile = dir.join("cache.json");
    let url = format!("memcached://{address}");
    let mut client = TcpStream::connect(address).unwrap();
    assert_eq!(ask(&mut client, "set mine 0 0 5\r\nhello\r\n"), "STORED\r\n");
    let quick = ["--sizes", "1KiB,64KiB", "--parallelism", "1,4", "--time-per-cell", "600ms"];
    let before = gets_per_s(&mut client, 1024);
    let output = tailwright().arg(&url).args(quick).args(["--json", "-o"]).arg(&profile).output().unwrap();
    let after = gets_per_s(&mut client, 1024);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("is saturated while it is measured"), "{message}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::check_document(&answer);
    assert_eq!((answer["server"].as_str(), &answer["complete"]), (Some(url.as_str()), &Value::Bool(true)));
    let cells = answer["cells"].as_array().unwrap();
    let single = cells
        .iter()
        .find(|cell| cell["op"] == "read" && cell["request_bytes"] == 1024 && cell["parallelism"] == 1);
    let mut repeats: Vec<f64> = single.unwrap()["repeats_bytes_per_s"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| rate.as_f64().unwrap() / 1024.0)
        .collect();
    repeats.sort_by(f64::total_cmp);
    let measured = repeats[repeats.len() / 2];
    assert!(measured > before.min(after) / 5.0, "{measured} of {before} and {after} per second");
    assert!(measured < before.max(after) * 5.0, "{measured} of {before} and {after} per second");
    let [small, large] = [0, 1].map(|row| answer["sizes"][row]["read"]["bytes_per_s"].as_f64().unwrap());
    assert!(large > 2.0 * small, "64 times the data per request: {small} and {large} bytes per second");

    let read_back = StorageProfile::from_json(&fs::read_to_string(&profile).unwrap()).unwrap();
    for op in [Op::Read, Op::Write] {
        assert!(read_back.base_latency(op, Bytes(1)).0 > 0.0, "{op:?}");
    }
    fs::write(
        dir.join("cluster.toml"),
        "[[server]]\nclass = \"cache\"\ncount = 1\nstorage = \"cache.json\"\nnetwork = \"10Gbps\"\n\
         [[workload]]\nname = \"web\"\ntrace = \"web.csv\"\nslo = \"99.9% < 10s\"\n",
    )
    .unwrap();
    let lines: String = (0..200).map(|n| format!("{},1024,read\n", n * 5_000_000)).collect();
    fs::write(dir.join("web.csv"), format!("arrival_ns,size,op\n{lines}")).unwrap();
    let planned = Command::new(env!("CARGO_BIN_EXE_tailwright"))
        .args(["plan", "cluster.toml"])
        .current_dir(&dir)
        .output()
        .unwrap();
    assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));

    assert_eq!(ask(&mut client, "get mine\r\n"), "VALUE mine 0 5\r\nhello\r\nEND\r\n");
    assert_eq!(statistic(&mut client, "curr_items"), 1, "the values of the measurement are deleted");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_full_memcached_keeps_its_items_unless_told_otherwise() {
    let arguments = format!("{} -m 16", support::servers::MEMCACHED);
    let Some((_memcached, address)) = support::servers::server("memcached", &arguments) else { return };
    let mut client = TcpStream::connect(address).unwrap();
    let value = "v".repeat(10_000);
    for key in 0..4000 {
        assert_eq!(ask(&mut client, &format!("set k{key} 0 0 10000\r\n{value}\r\n")), "STORED\r\n");
    }
    let items = statistic(&mut client, "curr_items");
    let url = format!("memcached://{address}");
    let refused = tailwright().arg(&url).args(QUICK).output().unwrap();
    let message = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("items of others would be evicted"), "{message}");
    assert!(message.contains("--allow-evictions"), "{message}");
    assert_eq!(statistic(&mut client, "curr_items"), items, "a refusal evicts nothing");

    let allowed = tailwright().arg(&url).args(QUICK).arg("--allow-evictions").output().unwrap();
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
    let evicted = statistic(&mut client, "curr_items") < items;
    assert_eq!(stderr(&allowed).contains("evicted"), evicted, "{}", stderr(&allowed));
}

/// Ends a measurement of `url` after it has announced itself, by `act`. Returns the exit code and the messages.
fn end_while_measuring(url: &str, act: impl FnOnce(&std::process::Child)) -> (Option<i32>, String) {
    let mut child = tailwright()
        .args([url, "--time-per-cell", "2s", "--sizes", "1KiB"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut message = String::new();
    while !message.contains("saturated") {
        assert!(errors.read_line(&mut message).unwrap() > 0, "{message}");
    }
    std::thread::sleep(Duration::from_millis(500));
    act(&child);
    errors.read_to_string(&mut message).unwrap();
    (child.wait().unwrap().code(), message)
}

#[test]
fn an_interrupted_or_lost_memcached_is_said_and_keeps_nothing() {
    let Some((memcached, address)) = support::servers::memcached() else { return };
    let url = format!("memcached://{address}");
    let mut client = TcpStream::connect(address).unwrap();
    for _ in 0..2 {
        let (code, message) = end_while_measuring(&url, |child| signal(child, "INT"));
        assert_eq!(code, Some(3), "{message}");
        assert!(message.contains("interrupted"), "{message}");
        assert_eq!(statistic(&mut client, "curr_items"), 0, "the values are deleted");
    }
    // The next run deletes the values that a killed one leaves.
    let (code, _) = end_while_measuring(&url, |child| signal(child, "KILL"));
    assert_eq!(code, None);
    assert!(statistic(&mut client, "curr_items") > 0);
    let (code, message) = end_while_measuring(&url, |child| signal(child, "INT"));
    assert_eq!((code, statistic(&mut client, "curr_items")), (Some(3), 0), "{message}");

    let (code, message) = end_while_measuring(&url, |_| drop(memcached));
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains(&address.to_string()), "{message}");
}

/// Reads all bytes of an NBD export with another program.
fn contents(address: SocketAddr, dir: &Path) -> Option<Vec<u8>> {
    let program = testkit::program("nbdcopy")?;
    let copy = dir.join("copy");
    let _ = fs::remove_file(&copy);
    let status = Command::new(program).arg(format!("nbd://{address}")).arg(&copy).status().unwrap();
    assert!(status.success());
    Some(fs::read(&copy).unwrap())
}

#[test]
fn an_nbd_export_is_read_and_overwritten_only_when_told() {
    let nbdkit = "-f -i 127.0.0.1 -p PORT memory 4M";
    let Some((_nbdkit, address)) = support::servers::server("nbdkit", nbdkit) else { return };
    let dir = scratch("nbd");
    let profile = dir.join("disk.json");
    let url = format!("nbd://{address}");
    let reads = tailwright()
        .arg(&url)
        .args(QUICK)
        .args(["--writes-like-reads", "-o"])
        .arg(&profile)
        .output()
        .unwrap();
    assert_eq!(reads.status.code(), Some(0), "{}", stderr(&reads));
    StorageProfile::from_json(&fs::read_to_string(&profile).unwrap()).unwrap();
    let Some(before) = contents(address, &dir) else { return };
    assert!(before.iter().all(|&byte| byte == 0), "nothing was written");

    for (args, part) in [
        (vec!["-o", "never.json"], "a spare export"),
        (vec!["--write"], "--destroy-device-data"),
        (vec!["--sizes", "1MiB"], "a target of at least 16MiB"),
    ] {
        let refused = tailwright().arg(&url).args(&args).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(part), "{args:?}: {}", stderr(&refused));
    }
    let writes = tailwright()
        .arg(&url)
        .args(QUICK)
        .args(["--write", "--destroy-device-data", "--json", "-o"])
        .arg(&profile)
        .output()
        .unwrap();
    assert_eq!(writes.status.code(), Some(0), "{}", stderr(&writes));
    let answer: Value = serde_json::from_slice(&writes.stdout).unwrap();
    support::schema::check_document(&answer);
    assert!(answer["sizes"][0]["write"]["bytes_per_s"].as_f64().unwrap() > 0.0);
    assert!(contents(address, &dir).unwrap() != before, "writes were sent");
    fs::remove_dir_all(&dir).unwrap();

    let read_only = "-r -f -i 127.0.0.1 -p PORT memory 4M";
    let (_nbdkit, address) = support::servers::server("nbdkit", read_only).expect("as before");
    let url = format!("nbd://{address}");
    let refused = tailwright().args([&url, "--write", "--destroy-device-data"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("read-only"), "{}", stderr(&refused));
}

#[test]
fn servers_that_cannot_be_measured_are_refused() {
    let closed = testkit::free_address();
    let http = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = http.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in http.incoming() {
            let _ = stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for (args, code, part) in [
        (vec![format!("memcached://{closed}")], 3, "cannot be reached"),
        (vec![format!("nbd://{closed}/disk")], 3, "cannot be reached"),
        (vec![format!("memcached://{other}")], 3, "does not answer as memcached does"),
        (vec![format!("nbd://{other}")], 3, "NBD export"),
        (vec!["nfs://127.0.0.1/a/b".into()], 2, "--create 4GiB"),
        (vec!["http://127.0.0.1/a".into()], 2, "is not measured"),
        (vec!["ftp://127.0.0.1/a".into()], 2, "expected a target such as"),
        (vec![format!("memcached://{closed}"), "--write".into()], 2, "are not for memcached"),
        (vec![format!("memcached://{closed}"), "--create".into(), "1GiB".into()], 2, "not for servers"),
        (vec![format!("nbd://{closed}"), "--allow-evictions".into()], 2, "is for memcached"),
        (vec!["absent".into(), "--allow-evictions".into()], 2, "is for memcached"),
    ] {
        let output = tailwright().args(&args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}
