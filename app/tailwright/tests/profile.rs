//! `tailwright profile` as scripts see it: exit codes, what is on stdout, what is left behind.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::servers::signal;
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
