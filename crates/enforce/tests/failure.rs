//! Runs that fail or are cut short at any command, on the real kernel: the host is as it was, or the next run sets
//! it right. Needs root.

mod traffic;

use model::OperationError;
use tailwright_enforce::command::{Command, Programs, Run};
use tailwright_enforce::network::{Options, WantedHost, apply, remove};
use traffic::{Ground, Tenant, lacking, policy};

/// Runs half of the command with this number among those that change something, and then fails: once, or for ever,
/// as if the program had been killed.
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

impl Run for Failing {
    fn run(&mut self, command: &Command) -> Result<String, OperationError> {
        let error = || Err(OperationError::machine("out of luck").hint("try again"));
        if self.failed && self.killed {
            return error();
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
            let half = Command { input: Some(lines[..lines.len() / 2].join("\n")), ..command.clone() };
            Programs.run(&half)?;
        }
        error()
    }
}

/// What is set up on the host's device.
fn picture(ground: &Ground) -> String {
    let netns = ground.netns("client");
    let mut text = String::new();
    for line in [
        format!("tc -n {netns} qdisc show dev eth0"),
        format!("tc -n {netns} -details class show dev eth0"),
        format!("ip netns exec {netns} nft list ruleset"),
    ] {
        // tc prints classes in the order of its hash table.
        let printed = ground.run(&line);
        let mut lines: Vec<&str> =
            printed.lines().map(|line| line.split(" direct_packets").next().expect("a part")).collect();
        lines.sort_unstable();
        text += &lines.join("\n");
    }
    // Filters change places when they are exchanged; what they match does not.
    let filters = ground.run(&format!("tc -n {netns} filter show dev eth0"));
    text += &filters.lines().filter(|line| line.starts_with("  match")).collect::<Vec<_>>().join("\n");
    let link = ground.run(&format!("ip -n {netns} -details link show dev eth0"));
    text + link.split_once("numtxqueues").expect("details").1
}

fn wanted(ground: &Ground, tenants: &[Tenant], filters: &str) -> WantedHost {
    let address = ground.ipv4("server");
    let mut more = format!("[[server]]\nname = \"s\"\nhost = \"server\"\naddress = [\"{address}\"]\n");
    for (port, name) in (7001..).zip(["a", "b"]) {
        more += &format!("[[client]]\nworkload = \"{name}\"\nhost = \"client\"\nserver_port = [{port}]\n");
    }
    let hosts = ground.hosts_file("100Mbps", None, &more);
    let hosts = hosts.replace("device.eth0", &format!("filters = \"{filters}\"\ndevice.eth0"));
    ground.wanted(&policy(tenants), &hosts).remove(0)
}

const BEFORE: [Tenant; 1] = [Tenant("a", 0, &[(1e6, 1e5)])];
const AFTER: [Tenant; 2] = [Tenant("a", 1, &[(2e6, 1e5), (4e6, 2e4)]), Tenant("b", 0, &[])];

/// Every command that changes something, from nothing to a policy and from one policy to another.
fn at_every_command(mut check: impl FnMut(&Ground, &WantedHost, bool, usize) -> bool) {
    if let Some(lack) = lacking() {
        return testkit::skip(&lack);
    }
    for filters in ["nft", "tc"] {
        for first in [false, true] {
            let ground = Ground::new(&["client", "server"]);
            let target = wanted(&ground, &AFTER, filters);
            let mut number = 0;
            loop {
                if first {
                    let before = wanted(&ground, &BEFORE, filters);
                    apply(&mut Programs, &before, &ground.store(), Options::default())
                        .unwrap_or_else(|f| panic!("{f}"));
                }
                let failed = check(&ground, &target, first, number);
                remove(&mut Programs, &target, &ground.store(), Options::default())
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
    at_every_command(|ground, target, first, number| {
        let before = picture(ground);
        let mut failing = Failing::at(number, false);
        let result = apply(&mut failing, target, &ground.store(), Options::default());
        if failing.failed {
            let fault = result.expect_err("a command failed");
            assert!(fault.message.ends_with("the host is as it was before"), "{number}: {fault}");
            assert_eq!(picture(ground), before, "{first} {number}");
        }
        failing.failed
    });
}

#[test]
fn a_run_that_is_cut_short_is_made_up_for() {
    at_every_command(|ground, target, first, number| {
        let untouched = ground.run(&format!("tc -n {} qdisc show dev eth0", ground.netns("server")));
        let mut failing = Failing::at(number, true);
        let cut_short = apply(&mut failing, target, &ground.store(), Options::default());
        assert_eq!(cut_short.is_err(), failing.failed);
        if number % 2 == 0 {
            apply(&mut Programs, target, &ground.store(), Options::default())
                .unwrap_or_else(|fault| panic!("{fault}"));
            let again = apply(&mut Programs, target, &ground.store(), Options::default());
            assert!(again.is_ok_and(|report| report.commands.is_empty()), "{first} {number}");
        }
        // Whether or not it was made up for, it can be removed.
        remove(&mut Programs, target, &ground.store(), Options::default())
            .unwrap_or_else(|fault| panic!("{fault}"));
        let queue = ground.run(&format!("tc -n {} qdisc show dev eth0", ground.netns("client")));
        assert_eq!(queue, untouched, "{first} {number}");
        let rules = ground.run(&format!("ip netns exec {} nft list ruleset", ground.netns("client")));
        assert_eq!(rules, "", "{first} {number}");
        failing.failed
    });
}
