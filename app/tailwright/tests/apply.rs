//! `tailwright apply` as users run it: dry runs, exit codes, and once for real between network namespaces.

mod support;

use enforce::command::{CommandRunner, Programs, may_configure_networks};
use machine::virtual_network::VirtualNetwork;
use support::{Folder, Outcome};

const POLICY: &str = r#"{
  "format": "tailwright-policy-1", "policy_name": "by hand",
  "servers": [{ "name": "s", "class": "s", "network_bytes_per_s": 12.5e6, "storage_profile": "x" }],
  "workloads": [{ "name": "mail", "admitted": true, "server": "s", "priority": 0, "slo": "99% < 1s",
    "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [
      { "stage": "network-in", "rate": 0.1, "burst": 0.01, "rate_per_s": 1.25e6, "burst_work": 125e3 },
      { "stage": "network-out", "rate": 0.1, "burst": 0.01, "rate_per_s": 1.25e6, "burst_work": 125e3 }] }]
}"#;

/// A folder with a policy and a hosts file, whose hosts have these lines.
fn folder(client: &str, server: &str) -> Folder {
    let folder = Folder::new();
    folder.write("policy.json", POLICY);
    let hosts = format!(
        "[[host]]\nname = \"app\"\ndevice.eth0 = \"100Mbps\"\n{client}\n\
         [[host]]\nname = \"store\"\ndevice.eth0 = \"100Mbps\"\n{server}\n\
         [[server]]\nname = \"s\"\nhost = \"store\"\naddress = [\"10.77.0.2\"]\nport = [2049]\n\
         [[client]]\nworkload = \"mail\"\nhost = \"app\"\naddress = [\"10.77.0.1\"]\n"
    );
    folder.write("hosts.toml", &hosts);
    folder
}

const APPLY: [&str; 4] = ["apply", "policy.json", "--hosts", "hosts.toml"];

fn apply(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&APPLY[..], &["--state", "state"], more].concat())
}

#[test]
fn a_dry_run_needs_no_host() {
    let folder = folder("", "");
    let outcome = apply(&folder, &["--dry-run"]).expect_code(0);
    for line in ["# app", "# store", "nft -f - <<'END'"] {
        assert!(outcome.stdout.lines().any(|found| found == line), "{line}\n{}", outcome.stdout);
    }
    assert!(outcome.stdout.contains("ceil 10000000 burst 1 cburst 125000"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("not on this machine"), "{}", outcome.stderr);
    assert!(!folder.join("state").exists());
    let json = apply(&folder, &["--dry-run", "--json"]).expect_code(0).json();
    assert_eq!(json["hosts"][1]["host"], "store");
    assert_eq!(json["hosts"][1]["changed"], false);
    assert_eq!(json["hosts"][1]["commands"].as_array().map(Vec::len), Some(4));
}

#[test]
fn mistakes_say_what_to_do() {
    let right = folder("", "");
    for (args, code, said) in
        [(&["--dry-run", "--host", "nobody"][..], 2, "the hosts are app, store"), (&[], 3, "--host NAME")]
    {
        let outcome = apply(&right, args).expect_code(code);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
    right.run(&["apply", "policy.json"]).expect_code(2);
    right.run(&["apply", "--hosts", "hosts.toml"]).expect_code(2);
    let wrong = folder("colour = 1", "");
    let outcome = apply(&wrong, &["--dry-run"]).expect_code(2);
    assert!(
        outcome.stderr.contains("hosts.toml: ") && outcome.stderr.contains("docs/reference/hosts-file.md"),
        "{}",
        outcome.stderr
    );
    if !may_configure_networks() {
        apply(&right, &["--host", "app"]).expect_code(3);
        right.run(&["apply", "--probe"]).expect_code(3);
    }
}

#[test]
fn applied_again_and_removed() {
    if !may_configure_networks() {
        return testkit::skip("without root no network namespaces can be made");
    }
    if Folder::new().run(&["apply", "--probe"]).code != 0 {
        return testkit::skip("this kernel or its programs lack what the network enforcer needs");
    }
    let prefix = format!("twn-cli-{}", std::process::id());
    let lab =
        VirtualNetwork::create(|line, input| Programs.run_line(line, input), &prefix, &["app", "store"])
            .unwrap_or_else(|fault| panic!("{fault}"));
    let folder = folder(&format!("netns = \"{prefix}-app\""), &format!("netns = \"{prefix}-store\""));
    let first = apply(&folder, &["--json"]);
    let again = apply(&folder, &[]);
    let removed = folder.run(&["apply", "--remove", "--hosts", "hosts.toml", "--state", "state"]);
    lab.remove(|line, input| Programs.run_line(line, input)).unwrap_or_else(|fault| panic!("{fault}"));
    let gone = folder.run(&["apply", "--remove", "--hosts", "hosts.toml", "--state", "state"]);
    assert_eq!(first.expect_code(0).json()["hosts"][0]["changed"], true);
    assert_eq!(again.expect_code(0).stdout, "# app: nothing to do\n# store: nothing to do\n");
    assert!(removed.expect_code(0).stdout.starts_with("# app: restored, "));
    gone.expect_code(0);
}

/// The hosts file of docs/reference/hosts-file.md keeps the limits of a policy at every stage, and the mistake that is easily made in its
/// place is said.
#[test]
fn the_example_of_the_proxy_keeps_all_limits() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/hosts-file.md");
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
    let (_, rest) = page.split_once("```toml hosts.toml\n").expect("the page has a hosts file");
    let (hosts, _) = rest.split_once("```").expect("a block ends");
    let folder = Folder::new();
    folder.write("policy.json", &POLICY.replace("\"s\"", "\"ssd-1\""));
    let on_server = hosts.replace("host = \"app-1\"", "host = \"store-1\"");
    for (hosts, is_said) in [(hosts, false), (&on_server, true)] {
        folder.write("hosts.toml", hosts);
        let outcome = folder.run(&[&APPLY[..], &["--dry-run"]].concat()).expect_code(0);
        assert_eq!(outcome.stderr.contains("cannot take effect"), is_said, "{}", outcome.stderr);
    }
}
