//! What this kernel and its programs can do, tried in network namespaces that end with the attempt.

use crate::command::{Command, Run};
use model::OperationError;

/// Something that a kernel may be able to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// As tc, nft or ip call it.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Whether applying a policy needs it (with the default `filters`).
    pub needed: bool,
    /// Why it does not work; `None` when it does.
    pub lack: Option<String>,
}

struct Trial {
    name: &'static str,
    purpose: &'static str,
    needed: bool,
    /// The command within a new namespace, and what it reads.
    command: &'static str,
    input: &'static str,
}

const fn tc(name: &'static str, purpose: &'static str, needed: bool, input: &'static str) -> Trial {
    Trial { name, purpose, needed, command: "tc -batch -", input }
}

const fn nft(name: &'static str, purpose: &'static str, needed: bool, input: &'static str) -> Trial {
    Trial { name, purpose, needed, command: "nft -f -", input }
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

/// In the order in which they are shown.
const TRIALS: [Trial; 20] = [
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
    Trial { name: "ifb", purpose: "not used", needed: false, command: "ip link add type ifb", input: "" },
    Trial {
        name: "veth",
        purpose: "hosts of a lab",
        needed: false,
        command: "ip link add type veth",
        input: "",
    },
    Trial {
        name: "bridge",
        purpose: "switch of a lab",
        needed: false,
        command: "ip link add type bridge",
        input: "",
    },
];

/// Tries everything.
///
/// # Errors
/// That no namespace can be made, which says nothing about the kernel's queues.
pub fn probe(run: &mut dyn Run) -> Result<Vec<Ability>, OperationError> {
    run.run(&Command::new("unshare --net true")).map_err(|fault| {
        OperationError::machine(fault.message).hint("the probe makes network namespaces: run it as root")
    })?;
    Ok(TRIALS.iter().map(|trial| attempt(run, trial)).collect())
}

fn attempt(run: &mut dyn Run, trial: &Trial) -> Ability {
    let command = Command::new(&format!("unshare --net {}", trial.command)).reading(trial.input);
    let lack = run.run(&command).err().map(|fault| match fault.message.split_once("failed: ") {
        Some((_, said)) => said.to_owned(),
        None => fault.message,
    });
    Ability { name: trial.name, purpose: trial.purpose, needed: trial.needed, lack }
}
