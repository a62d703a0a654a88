//! Features of this kernel and its programs. Each is tried in a network namespace that ends with the
//! attempt, because no readable source lists what a kernel has compiled in or may load as a module.

use crate::command::{CommandRunner, SystemCommand};
use model::OperationError;

/// A feature that a kernel may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelFeature {
    /// Name in tc, nft or ip.
    pub name: &'static str,
    /// Purpose of the feature.
    pub purpose: &'static str,
    /// True if applying a policy requires it (with the default `filters`).
    pub needed: bool,
    /// Reason why it does not work; `None` if it does.
    pub lack: Option<String>,
}

/// Test of a feature.
struct FeatureTest {
    name: &'static str,
    purpose: &'static str,
    needed: bool,
    /// Command to run in a new namespace.
    command: &'static str,
    /// The standard input of the command.
    input: &'static str,
}

const fn tc(name: &'static str, purpose: &'static str, needed: bool, input: &'static str) -> FeatureTest {
    FeatureTest { name, purpose, needed, command: "tc -batch -", input }
}

const fn nft(name: &'static str, purpose: &'static str, needed: bool, input: &'static str) -> FeatureTest {
    FeatureTest { name, purpose, needed, command: "nft -f -", input }
}

macro_rules! on_htb {
    ($filter:literal) => {
        concat!(
            "qdisc add dev lo root handle 1: htb\nfilter add dev lo parent 1: protocol all pref 1 ",
            $filter,
            "\n"
        )
    };
}

macro_rules! postrouting {
    ($rule:literal) => {
        concat!(
            "table inet t {\nchain c {\ntype filter hook postrouting priority mangle; policy accept;\n",
            $rule,
            "\n}\n}\n"
        )
    };
}

/// The tests of all features, in the order in which results are shown.
const FEATURE_TESTS: [FeatureTest; 20] = [
    tc("htb", "rate limits and priorities", true, "qdisc add dev lo root handle 1: htb\n"),
    tc("u32", "filters by address, port, DSCP; ARP first", true, on_htb!("u32 match u32 0 0 flowid 1:1")),
    nft("nft meta priority", "class of a packet", true, postrouting!("meta priority set 1:1")),
    nft("nft dscp", "marks for switches, IPv4", true, postrouting!("ip dscp set cs1")),
    nft("nft dscp ip6", "marks for switches, IPv6", true, postrouting!("ip6 dscp set cs1")),
    nft(
        "nft cgroup",
        "filters by control group",
        false,
        postrouting!("socket cgroupv2 level 1 \".\" accept"),
    ),
    tc("prio", "not used: HTB has priorities", false, "qdisc add dev lo root prio\n"),
    tc(
        "tbf",
        "not used: HTB has limits",
        false,
        "qdisc add dev lo root tbf rate 1000000 burst 10000 limit 10000\n",
    ),
    tc("fq", "not used", false, "qdisc add dev lo root fq\n"),
    tc("fq_codel", "not used", false, "qdisc add dev lo root fq_codel\n"),
    tc("clsact", "not used", false, "qdisc add dev lo clsact\n"),
    tc("flower", "not used", false, on_htb!("flower classid 1:1")),
    tc("matchall", "not used", false, on_htb!("matchall classid 1:1")),
    tc("cls_bpf", "not used", false, on_htb!("bpf bytecode \"1,6 0 0 4294967295\" classid 1:1")),
    tc("skbedit", "not used", false, on_htb!("u32 match u32 0 0 action skbedit priority 1:1")),
    tc("police", "not used", false, on_htb!("u32 match u32 0 0 action police rate 1000000 burst 10000 drop")),
    tc("netem", "delay and loss in a lab", false, "qdisc add dev lo root netem delay 1ms\n"),
    FeatureTest {
        name: "ifb",
        purpose: "not used",
        needed: false,
        command: "ip link add type ifb",
        input: "",
    },
    FeatureTest {
        name: "veth",
        purpose: "hosts of a lab",
        needed: false,
        command: "ip link add type veth",
        input: "",
    },
    FeatureTest {
        name: "bridge",
        purpose: "switch of a lab",
        needed: false,
        command: "ip link add type bridge",
        input: "",
    },
];

/// Tests all features.
///
/// # Errors
/// When no namespace can be created, which proves nothing about the features.
pub fn probe_kernel(run: &mut dyn CommandRunner) -> Result<Vec<KernelFeature>, OperationError> {
    run.run(&SystemCommand::new("unshare --net true")).map_err(|error| {
        OperationError::machine(error.message).hint("the probe makes network namespaces: run it as root")
    })?;
    Ok(FEATURE_TESTS.iter().map(|test| try_feature(run, test)).collect())
}

fn try_feature(run: &mut dyn CommandRunner, test: &FeatureTest) -> KernelFeature {
    let command = SystemCommand::new(&format!("unshare --net {}", test.command)).reading(test.input);
    let lack = run.run(&command).err().map(|error| match error.message.split_once("failed: ") {
        Some((_, reason)) => reason.to_owned(),
        None => error.message,
    });
    KernelFeature { name: test.name, purpose: test.purpose, needed: test.needed, lack }
}
