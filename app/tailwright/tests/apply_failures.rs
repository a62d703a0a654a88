//! `tailwright apply` when something goes wrong: all hosts change or none, whatever is missing, fails or is killed.

mod support;

use enforce::command::{CommandRunner, Programs, SystemCommand, may_configure_networks};
use machine::virtual_network::VirtualNetwork;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::{Folder, Outcome};

const POLICY: &str = r#"{
  "format": "tailwright-policy-1", "policy_name": "by hand",
  "servers": [{ "name": "s", "class": "s", "network_bytes_per_s": 12.5e6, "storage_profile": "x" }],
  "workloads": [{ "name": "mail", "admitted": true, "server": "s", "priority": 0, "slo": "99% < 1s",
    "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [
      { "stage": "network-in", "rate": 0.1, "burst": 0.01, "rate_per_s": 1.25e6, "burst_work": 125e3 },
      { "stage": "network-out", "rate": 0.1, "burst": 0.01, "rate_per_s": 1.25e6, "burst_work": 125e3 }] }]
}"#;

const STORAGE: &str = "[server.storage]\nprofile = \"p\"\n\
    front = [{ protocol = \"nbd\", listen = \"127.0.0.1:1\", forward = \"127.0.0.1:2\" }]\n";

/// Two hosts as network namespaces, and a folder with their files; both are removed with the value.
struct Bed {
    network: VirtualNetwork,
    folder: Folder,
}

impl Bed {
    /// None where the machine cannot, which is said.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !may_configure_networks() {
            testkit::skip("without root no network namespaces can be made");
            return None;
        }
        let folder = Folder::new();
        if folder.run(&["apply", "--probe", "--json"]).code != 0 {
            testkit::skip("this kernel or its programs lack what the network enforcer needs");
            return None;
        }
        let prefix = format!("twf-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let run = |line: &str, input: Option<&str>| Programs.run_line(line, input);
        let network =
            VirtualNetwork::create(run, &prefix, &["app", "store"]).unwrap_or_else(|fault| panic!("{fault}"));
        folder.write("policy.json", POLICY);
        let bed = Self { network, folder };
        bed.folder.write("hosts.toml", &bed.hosts(""));
        Some(bed)
    }

    fn hosts(&self, storage: &str) -> String {
        let [app, store] = ["app", "store"].map(|host| self.netns(host));
        format!(
            "[[host]]\nname = \"app\"\nnetns = \"{app}\"\ndevice.eth0 = \"100Mbps\"\n\
             [[host]]\nname = \"store\"\nnetns = \"{store}\"\ndevice.eth0 = \"100Mbps\"\n\
             [[server]]\nname = \"s\"\nhost = \"store\"\naddress = [\"10.77.0.2\"]\nport = [2049]\n{storage}\
             [[client]]\nworkload = \"mail\"\nhost = \"app\"\naddress = [\"10.77.0.1\"]\n"
        )
    }

    fn netns(&self, host: &str) -> String {
        self.network.host(host).expect("the network has it").netns.clone()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(["apply", "--hosts", "hosts.toml", "--state", "state"])
            .args(args)
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        command
    }

    fn apply(&self, args: &[&str]) -> Outcome {
        let output = self.command(args).output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let code = output.status.code().expect("the program is not killed");
        Outcome { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Puts a shell script in the place of a program, which it finds as `$REAL`.
    fn pretend(&self, program: &str, script: &str) {
        let real = testkit::program(program).expect("it was probed");
        std::fs::create_dir_all(self.folder.join("bin")).expect("the folder is ours");
        let name = format!("bin/{program}");
        self.folder
            .write(&name, &format!("#!/bin/sh\nREAL={}\n{script}\nexec $REAL \"$@\"\n", real.display()));
        std::fs::set_permissions(self.folder.join(&name), PermissionsExt::from_mode(0o755))
            .expect("it is ours");
    }

    fn pretend_no_more(&self) {
        let _ = std::fs::remove_dir_all(self.folder.join("bin"));
    }

    /// What tc, ip and nft say of both hosts, without what counts.
    fn picture(&self) -> String {
        let mut text = String::new();
        for host in ["app", "store"] {
            let netns = self.netns(host);
            for line in [
                format!("ip -n {netns} -details link show dev eth0"),
                format!("tc -n {netns} qdisc show"),
                format!("tc -n {netns} -details class show dev eth0"),
                format!("tc -n {netns} filter show dev eth0"),
                format!("ip netns exec {netns} nft list ruleset"),
            ] {
                let printed =
                    Programs.run(&SystemCommand::new(&line)).unwrap_or_else(|error| panic!("{error}"));
                let cut = |line: &str| {
                    let line = line.split(" direct_packets").next().expect("a part");
                    line.split("promiscuity").last().expect("a part").to_owned()
                };
                // tc prints classes in the order of its hash table.
                let mut lines: Vec<String> =
                    printed.lines().skip(usize::from(line.starts_with("ip -n"))).map(cut).collect();
                lines.sort_unstable();
                text += &lines.join("\n");
            }
        }
        text
    }

    fn assert_applied(&self) {
        let again = self.apply(&["policy.json"]).expect_code(0);
        assert_eq!(again.stdout, "# app: nothing to do\n# store: nothing to do\n");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.network.remove(|line, input| Programs.run_line(line, input));
    }
}

#[test]
fn without_the_proxy_that_is_needed_nothing_changes_and_all_can_be_removed() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    bed.folder.write("hosts.toml", &bed.hosts(STORAGE));
    let refused = bed.apply(&["policy.json"]).expect_code(3);
    assert!(refused.stderr.contains("no proxy answers at state/proxy-s.sock"), "{}", refused.stderr);
    assert_eq!(bed.picture(), before);
    let dry = bed.apply(&["policy.json", "--dry-run"]).expect_code(0);
    assert!(
        dry.stdout.contains("# proxy before s at state/proxy-s.sock: the policy; no proxy runs there"),
        "{}",
        dry.stdout
    );
    // What was applied without the proxy is taken away without it.
    bed.folder.write("hosts.toml", &bed.hosts(""));
    bed.apply(&["policy.json"]).expect_code(0);
    assert_ne!(bed.picture(), before);
    bed.folder.write("hosts.toml", &bed.hosts(STORAGE));
    let removed = bed.apply(&["--remove"]).expect_code(0);
    assert!(removed.stdout.contains("none runs there, nothing to remove"), "{}", removed.stdout);
    assert_eq!(bed.picture(), before);
}

#[test]
fn what_fails_on_one_host_is_undone_on_all() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    let store = bed.netns("store");
    bed.pretend("nft", &format!("case \"$(ip netns identify $$) $*\" in {store}*\"-f -\"*) exit 7;; esac"));
    let failed = bed.apply(&["policy.json"]).expect_code(3);
    assert!(failed.stderr.contains("unchanged: app, store"), "{}", failed.stderr);
    bed.pretend_no_more();
    assert_eq!(bed.picture(), before);

    bed.apply(&["policy.json"]).expect_code(0);
    let applied = bed.picture();
    bed.pretend("tc", &format!("case \"$*\" in *{store}*\"qdisc del\"*) exit 7;; esac"));
    let failed = bed.apply(&["--remove"]).expect_code(3);
    assert!(failed.stderr.contains("unchanged: app, store"), "{}", failed.stderr);
    bed.pretend_no_more();
    assert_eq!(bed.picture(), applied);
    bed.assert_applied();
    bed.apply(&["--remove"]).expect_code(0);
    assert_eq!(bed.picture(), before);
}

/// Starts a run, and kills it while the program that it has started does its work.
fn kill_midway(bed: &Bed, args: &[&str]) {
    let _ = std::fs::remove_file(bed.folder.join("begun"));
    let mut child = bed.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    testkit::wait_until(Duration::from_secs(60), "tc is called", || bed.folder.join("begun").exists());
    child.kill().expect("it runs");
    child.wait().expect("it is killed");
}

/// The next run waits for what a killed one has left running, and makes up for it.
#[test]
fn a_killed_run_is_waited_for_and_repaired() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    // As slow as a loaded machine, at every change of a device.
    let place = bed.folder.path().display().to_string();
    bed.pretend("tc", &format!("case \"$*\" in *batch*|*del*) touch {place}/begun; sleep 0.5; \"$REAL\" \"$@\"; code=$?; touch {place}/ended; exit $code;; esac"));
    kill_midway(&bed, &["policy.json"]);
    assert!(!bed.folder.join("ended").exists(), "tc still runs");
    let next = bed.apply(&["policy.json"]).expect_code(0);
    assert!(next.stderr.contains("waiting for another run"), "{}", next.stderr);
    bed.assert_applied();
    kill_midway(&bed, &["--remove"]);
    bed.apply(&["policy.json"]).expect_code(0);
    bed.assert_applied();
    kill_midway(&bed, &["--remove"]);
    bed.apply(&["--remove"]).expect_code(0);
    assert_eq!(bed.picture(), before);
    // Nothing is left for another run to do.
    let again = bed.apply(&["--remove"]).expect_code(0);
    assert_eq!(again.stdout, "# app: nothing to do\n# store: nothing to do\n");
}

#[test]
fn without_its_state_what_is_ours_is_found() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    let forget = || std::fs::remove_dir_all(bed.folder.join("state")).expect("it is ours");
    bed.apply(&["policy.json"]).expect_code(0);
    forget();
    let refused = bed.apply(&["policy.json"]).expect_code(3);
    assert!(
        refused.stderr.contains("has a Tailwright queueing discipline that state does not list"),
        "{}",
        refused.stderr
    );
    let removed = bed.apply(&["--remove"]).expect_code(0);
    assert!(removed.stderr.contains("has no saved settings of eth0"), "{}", removed.stderr);
    assert_eq!(bed.picture(), before);

    // Taken over and given back: packet sizes of our own making are not what was found.
    bed.apply(&["policy.json"]).expect_code(0);
    forget();
    bed.apply(&["policy.json", "--replace"]).expect_code(0);
    bed.apply(&["--remove"]).expect_code(0);
    assert_eq!(bed.picture(), before);
}

#[test]
fn hosts_and_devices_that_are_dropped_are_given_back() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    let whole = bed.hosts("");
    bed.apply(&["policy.json"]).expect_code(0);
    // Only the store is left, by another name; and nobody is admitted any more.
    let (_, rest) = whole.split_once("[[host]]\nname = \"store\"").expect("the second host");
    let (host, _) = rest.split_once("[[server]]").expect("the server");
    bed.folder.write("hosts.toml", &format!("[[host]]\nname = \"shop\"{host}"));
    bed.folder.write(
        "nobody.json",
        &POLICY
            .split_once("\"workloads\"")
            .map(|(head, _)| format!("{head}\"workloads\": []}}"))
            .expect("workloads"),
    );
    let changed = bed.apply(&["nobody.json"]).expect_code(0);
    assert!(changed.stderr.contains("app, network namespace"), "{}", changed.stderr);
    assert!(changed.stderr.contains("is no longer in the hosts file"), "{}", changed.stderr);
    assert_eq!(bed.picture(), before);
    assert_eq!(bed.apply(&["--remove"]).expect_code(0).stdout, "# shop: nothing to do\n");

    // And by --remove.
    bed.folder.write("hosts.toml", &whole);
    bed.apply(&["policy.json"]).expect_code(0);
    bed.folder.write("hosts.toml", &format!("[[host]]\nname = \"shop\"{host}"));
    bed.apply(&["--remove"]).expect_code(0);
    assert_eq!(bed.picture(), before);
}

#[test]
fn state_that_others_could_change_is_refused() {
    let Some(bed) = Bed::new() else { return };
    let before = bed.picture();
    let state = bed.folder.join("state");
    std::fs::create_dir_all(&state).expect("it is ours");
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let refused = bed.apply(&["policy.json"]).expect_code(3);
    assert!(refused.stderr.contains("others may write to it"), "{}", refused.stderr);
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o755)).expect("it is ours");
    bed.folder.write("victim", "precious");
    std::os::unix::fs::symlink(bed.folder.join("victim"), state.join("network-app.json"))
        .expect("it is ours");
    let refused = bed.apply(&["policy.json"]).expect_code(3);
    assert!(refused.stderr.contains("it is a symbolic link"), "{}", refused.stderr);
    assert_eq!((bed.folder.read("victim").as_str(), bed.picture()), ("precious", before));
}
