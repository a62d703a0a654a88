//! A BPF file system for tests, without a change of the machine.

use crate::{program, skip};
use rustix::fs::statfs;
use std::process::Command;

/// The usual mount point.
const MOUNT: &str = "/sys/fs/bpf";
const MAGIC: u64 = 0xcafe_4a11;
/// Tells the test program that it has been started once more.
const INSIDE: &str = "TAILWRIGHT_TEST_INSIDE";

/// Runs a test with a mounted BPF file system: here, if one is mounted. Otherwise the test program is
/// started again with this test alone, in a mount namespace that has one. This requires root; without it
/// the test is skipped with a message.
///
/// # Panics
/// When the test fails there.
pub fn with_bpf_file_system(test: impl FnOnce()) {
    if statfs(MOUNT).is_ok_and(|about| u64::try_from(about.f_type) == Ok(MAGIC)) {
        return test();
    }
    assert!(std::env::var_os(INSIDE).is_none(), "it was mounted");
    let script = format!("mount -t bpf bpf {MOUNT} && exec \"$@\"");
    let inside = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", &script, "sh"]).args(command).env(INSIDE, "1");
        unshare
    };
    if program("unshare").is_none() || program("mount").is_none() {
        return;
    }
    let tried = inside(&["true"]).output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        return skip("a file system of BPF cannot be mounted: it takes root");
    }
    let own = std::env::current_exe().expect("it is running");
    let name = std::thread::current().name().expect("tests have names").to_owned();
    let own = own.to_str().expect("a path of text");
    let ended = inside(&[own, "--exact", &name, "--nocapture"]).output().expect("the program starts");
    // Skips inside are repeated here, past test capture.
    let said = String::from_utf8_lossy(&ended.stderr);
    said.lines().filter(|line| line.starts_with("SKIPPED")).for_each(|line| {
        let reason = line.split_once(": ").map_or(line, |(_, reason)| reason);
        skip(reason);
    });
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && printed.contains("1 passed"), "{printed}{said}");
    print!("{printed}");
}
