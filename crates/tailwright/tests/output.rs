//! Where results go: files that are there already, what is no file, and outputs that take nothing.

mod support;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use support::Folder;
use support::cluster::Cluster;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn results_go_where_links_lead_and_keep_modes_and_devices() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write("secret.json", "{}");
    fs::set_permissions(folder.join("secret.json"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("secret.json", folder.join("link.json")).expect("it is ours");
    folder.run(&["plan", "cluster.toml", "-o", "link.json"]).expect_code(0);
    assert!(fs::symlink_metadata(folder.join("link.json")).expect("it is there").is_symlink());
    assert!(folder.read("secret.json").contains("\"servers\"") && mode(&folder.join("secret.json")) == 0o600);
    // Of all verbs that write, one for each way of writing: whole texts, traces, observations.
    symlink("/dev/null", folder.join("null.csv")).expect("it is ours");
    symlink("/dev/null", folder.join("null.parquet")).expect("it is ours");
    for args in [
        &["plan", "cluster.toml", "-o", "/dev/null"][..],
        &["trace", "convert", "w0.csv", "-o", "null.csv"],
        &["simulate", "secret.json", "--cluster", "cluster.toml", "-o", "null.parquet"],
    ] {
        // The simulation is too short to be sure of every SLO.
        let outcome = folder.run(args);
        assert!(outcome.code < 2, "{args:?}: {}", outcome.stderr);
    }
    assert!(fs::metadata("/dev/null").expect("it is there").file_type().is_char_device());
    assert!(fs::symlink_metadata(folder.join("null.csv")).expect("it is there").is_symlink());
}

#[test]
fn places_are_checked_before_anything_is_done() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    folder.write(
        "load.toml",
        "duration = \"1s\"\n[[workload]]\nname = \"w\"\ntarget = \"nbd://127.0.0.1:1/x\"\n\
         closed = { outstanding = 1, op = \"read\", size = \"4KiB\" }\n",
    );
    folder.write("scenario.toml", "not even read");
    folder.write("file", "");
    for args in [
        &["plan", "cluster.toml", "-o", "no/where.json"][..],
        &["plan", "cluster.toml", "--report", "no/where.html"],
        &["plan", "cluster.toml", "--model", "replayed", "-o", "no/where.json"],
        &["bound", "cluster.toml", "--report", "no/where.html"],
        &["admit", "cluster.toml", "--model", "worst-case", "-o", "file/where.json"],
        &["load", "load.toml", "-o", "no/where.parquet"],
        &["profile", "file", "-o", "no/where.json"],
        &["simulate", "scenario.toml", "--report", "no/where.html"],
        &["ideal", "--service", "1ms", "--arrivals", "poisson(1/s)", "--report", "no/where.html"],
    ] {
        let outcome = folder.run(args).expect_code(3);
        assert!(
            outcome.stderr.contains("where") && outcome.stderr.contains("hint"),
            "{args:?}: {}",
            outcome.stderr
        );
        assert_eq!(outcome.stdout, "", "{args:?}");
    }
}

#[test]
fn errors_of_standard_output_are_errors() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    for args in
        [&["plan", "cluster.toml", "--json"][..], &["bound", "cluster.toml"], &["reproduce", "--list"]]
    {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        command.args(args).current_dir(folder.path()).stdout(full).stderr(Stdio::piped());
        let output =
            command.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("standard output cannot be written: No space left"), "{said}");
    }
}

/// A reader that goes away is no error, and what goes to files is complete.
#[test]
fn a_closed_pipe_is_quiet() {
    let cluster = Cluster::new(2, 2);
    let folder: &Folder = &cluster.folder;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(["plan", "cluster.toml", "-o", "policy.json", "--report", "page.html"]);
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.join("cache"));
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(0) && !said.contains("error"), "{said}");
    assert!(
        folder.read("policy.json").contains("\"servers\"") && folder.read("page.html").ends_with("</html>\n")
    );
}
