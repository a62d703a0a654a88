//! Runs that fail or are interrupted at any command, on the real kernel: the host is unchanged, or the
//! next run repairs it. Requires root.

mod traffic;

use enforce::command::{CommandRunner, Programs, SystemCommand};
use enforce::network::{ApplyOptions, DesiredHost, apply, remove};
use model::OperationError;
use traffic::{Tenant, Testbed, lacking, policy};

/// A runner that executes half of the command with this number, counted among those that change
/// something, and then fails: once, or permanently, as if the program had been killed.
struct Failing {
    countdown: usize,
    killed: bool,
    failed: bool,
}

impl Failing {
    fn at(countdown: usize, killed: bool) -> Self {
        Self { countdown, killed, failed: false }
    }
}

impl CommandRunner for Failing {
    fn run(&mut self, command: &SystemCommand) -> Result<String, OperationError> {
        let error = OperationError::machine("out of luck").hint("try again");
        if self.failed && self.killed {
            return Err(error);
        }
        let line = command.to_string();
        let changes = command.input.is_some() || line.contains(" set ") || line.contains(" del ");
        if self.failed || !changes || self.countdown > 0 {
            self.countdown -= usize::from(changes && self.countdown > 0);
            return Programs.run(command);
        }
        self.failed = true;
        // The change of nftables is one transaction: all or nothing.
        if let (Some(input), true) = (&command.input, line.contains("-batch")) {
            let lines: Vec<&str> = input.lines().collect();
            let half = SystemCommand { input: Some(lines[..lines.len() / 2].join("\n")), ..command.clone() };
            Programs.run(&half)?;
        }
        Err(error)
    }
}

/// Describes the configuration of the host's device.
fn picture(testbed: &Testbed) -> String {
    let netns = testbed.netns("client");
    let mut text = String::new();
    for line in [
        format!("tc -n {netns} qdisc show dev eth0"),
        format!("tc -n {netns} -details class show dev eth0"),
        format!("ip netns exec {netns} nft list ruleset"),
    ] {
        // tc prints classes in the order of its hash table.
        let printed = testbed.run(&line);
        let mut lines: Vec<&str> =
            printed.lines().map(|line| line.split(" direct_packets").next().expect("a part")).collect();
        lines.sort_unstable();
        text += &lines.join("\n");
    }
    // Filters change order when they are replaced; their matches do not.
    let filters = testbed.run(&format!("tc -n {netns} filter show dev eth0"));
    text += &filters.lines().filter(|line| line.starts_with("  match")).collect::<Vec<_>>().join("\n");
    let link = testbed.run(&format!("ip -n {netns} -details link show dev eth0"));
    text + link.split_once("numtxqueues").expect("details").1
}

fn desired_client(testbed: &Testbed, tenants: &[Tenant], filters: &str) -> DesiredHost {
    let address = testbed.ipv4("server");
    let mut more = format!("[[server]]\nname = \"s\"\nhost = \"server\"\naddress = [\"{address}\"]\n");
    for (port, name) in (7001..).zip(["a", "b"]) {
        more += &format!("[[client]]\nworkload = \"{name}\"\nhost = \"client\"\nserver_port = [{port}]\n");
    }
    let hosts = testbed.hosts_file("100Mbps", None, &more);
    let hosts = hosts.replace("device.eth0", &format!("filters = \"{filters}\"\ndevice.eth0"));
    testbed.desired_hosts(&policy(tenants), &hosts).remove(0)
}

const BEFORE: [Tenant; 1] = [Tenant("a", 0, &[(1e6, 1e5)])];
const AFTER: [Tenant; 2] = [Tenant("a", 1, &[(2e6, 1e5), (4e6, 2e4)]), Tenant("b", 0, &[])];

/// Fails every command that changes something, from nothing to a policy and from one policy to another.
fn at_every_command(mut check: impl FnMut(&Testbed, &DesiredHost, bool, usize) -> bool) {
    if let Some(lack) = lacking() {
        return testkit::skip(&lack);
    }
    for filters in ["nft", "tc"] {
        for first in [false, true] {
            let testbed = Testbed::new(&["client", "server"]);
            let target = desired_client(&testbed, &AFTER, filters);
            let mut number = 0;
            loop {
                if first {
                    let before = desired_client(&testbed, &BEFORE, filters);
                    apply(&mut Programs, &before, &testbed.store(), ApplyOptions::default())
                        .unwrap_or_else(|f| panic!("{f}"));
                }
                let failed = check(&testbed, &target, first, number);
                remove(&mut Programs, &target, &testbed.store(), ApplyOptions::default())
                    .unwrap_or_else(|f| panic!("{f}"));
                if !failed {
                    break;
                }
                number += 1;
            }
            assert!(number >= 3 - usize::from(filters == "tc"), "{filters} {first}: {number} commands");
        }
    }
}

#[test]
fn a_run_that_fails_leaves_the_host_as_it_was() {
    at_every_command(|testbed, target, first, number| {
        let before = picture(testbed);
        let mut failing = Failing::at(number, false);
        let result = apply(&mut failing, target, &testbed.store(), ApplyOptions::default());
        if failing.failed {
            let error = result.expect_err("a command failed");
            assert!(error.message.ends_with("the host is as it was before"), "{number}: {error}");
            assert_eq!(picture(testbed), before, "{first} {number}");
        }
        failing.failed
    });
}

#[test]
fn a_run_that_is_cut_short_is_made_up_for() {
    at_every_command(|testbed, target, first, number| {
        let untouched = testbed.run(&format!("tc -n {} qdisc show dev eth0", testbed.netns("server")));
        let mut failing = Failing::at(number, true);
        let cut_short = apply(&mut failing, target, &testbed.store(), ApplyOptions::default());
        assert_eq!(cut_short.is_err(), failing.failed);
        if number % 2 == 0 {
            apply(&mut Programs, target, &testbed.store(), ApplyOptions::default())
                .unwrap_or_else(|error| panic!("{error}"));
            let again = apply(&mut Programs, target, &testbed.store(), ApplyOptions::default());
            assert!(again.is_ok_and(|report| report.commands.is_empty()), "{first} {number}");
        }
        // Whether or not the run was repaired, it can be removed.
        remove(&mut Programs, target, &testbed.store(), ApplyOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let queue = testbed.run(&format!("tc -n {} qdisc show dev eth0", testbed.netns("client")));
        assert_eq!(queue, untouched, "{first} {number}");
        let rules = testbed.run(&format!("ip netns exec {} nft list ruleset", testbed.netns("client")));
        assert_eq!(rules, "", "{first} {number}");
        failing.failed
    });
}
