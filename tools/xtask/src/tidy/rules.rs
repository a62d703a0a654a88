//! Dependency rules: the systems that each system may ship with, and the crates that are kept apart.
//!
//! A crate may depend on crates of its own system and of `base`. Systems meet in plain data, so every other
//! dependency from one system to another is an [`Edge`] with its reason. [`LIMITS`] keep single crates apart that
//! the folders would let through. Crates are named by package, without the prefix `tailwright-`.

/// Permission for one crate to depend on crates of other systems.
pub(super) struct Edge {
    pub(super) from: &'static str,
    pub(super) to: &'static [&'static str],
    pub(super) reason: &'static str,
}

/// Systems whose crates may use every other system.
pub(super) const FREE_SYSTEMS: [&str; 2] = ["app", "evaluation"];

pub(super) const EDGES: &[Edge] = &[
    Edge { from: "predict", to: &["sim"], reason: "estimates are replays of recorded requests" },
    Edge { from: "plan", to: &["callgraph"], reason: "traces of services are read" },
    Edge { from: "plan-cli", to: &["callgraph"], reason: "`trace callgraph` prints a call graph" },
    Edge {
        from: "scenario",
        to: &["workload", "gat"],
        reason: "simulated storage charges device time as plans do; an edge admits requests by the window of gat",
    },
    Edge {
        from: "simulate",
        to: &["plan", "workload", "verify"],
        reason: "`simulate --policy` plays the workloads of a plan and judges what they observe",
    },
    Edge {
        from: "simulate-cli",
        to: &["plan", "verify"],
        reason: "a policy's cluster is described as for `plan`; verdicts are printed",
    },
    Edge {
        from: "enforce",
        to: &["workload", "discipline"],
        reason: "the proxy charges requests by device profile and queues them as the simulator does",
    },
    Edge { from: "load", to: &["wire"], reason: "requests of storage protocols are encoded" },
    Edge { from: "observe", to: &["wire"], reason: "ends of messages are found in the bytes of connections" },
    Edge { from: "profile", to: &["workload"], reason: "its result is a device profile" },
    Edge {
        from: "measure",
        to: &["enforce", "sim", "workload"],
        reason: "verdicts depend on hosts files and device profiles; observed arrivals are replayed through ideal queues",
    },
    Edge {
        from: "measure-cli",
        to: &["sim", "workload"],
        reason: "ideal latencies and parameters of disks are printed",
    },
    Edge {
        from: "experiment",
        to: &["enforce", "observe"],
        reason: "it compares what `observe` sees, and keeps its journal where `apply` keeps its state",
    },
    Edge {
        from: "limits",
        to: &["calculus", "workload"],
        reason: "limits are compared with a device profile, and bounded when all are used",
    },
    Edge { from: "reach-cli", to: &["workload"], reason: "device profiles are read" },
    Edge {
        from: "python",
        to: &["calculus", "measure", "plan", "sim", "simulate", "workload"],
        reason: "the Python package asks the questions of plan, simulate and measure",
    },
    Edge {
        from: "schedule",
        to: &["discipline"],
        reason: "the gate decides with the pool of requests that the simulator runs",
    },
    Edge {
        from: "chain",
        to: &["discipline", "scenario", "sim"],
        reason: "a scenario is played by processes and simulated side by side",
    },
    Edge {
        from: "schedule-cli",
        to: &["scenario", "simulate"],
        reason: "`schedule bench` reads scenarios as `simulate` does",
    },
    Edge {
        from: "controller",
        to: &["plan", "verify", "workload"],
        reason: "the planner decides a request from the footprint of its trace; `verify` judges what proxies saw of it",
    },
    Edge { from: "agent", to: &["workload"], reason: "reports have burst curves of what clients send" },
    Edge { from: "store", to: &["workload"], reason: "footprints of traces are kept" },
    Edge {
        from: "api",
        to: &["enforce", "workload"],
        reason: "hosts files are checked, and traces read, before a command is decided",
    },
    Edge {
        from: "serve-cli",
        to: &["enforce"],
        reason: "the agent configures proxies by their control sockets",
    },
];

/// Crates of the workspace that one crate may ship with, directly or through others.
#[derive(Debug)]
pub(super) enum Reach {
    /// These and no others.
    Only(&'static [&'static str]),
    /// All but these.
    Never(&'static [&'static str]),
}

/// A rule about one crate.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) of: &'static str,
    pub(super) reach: Reach,
    pub(super) reason: &'static str,
}

const fn only(of: &'static str, crates: &'static [&'static str], reason: &'static str) -> Limit {
    Limit { of, reach: Reach::Only(crates), reason }
}

const fn never(of: &'static str, crates: &'static [&'static str], reason: &'static str) -> Limit {
    Limit { of, reach: Reach::Never(crates), reason }
}

pub(super) const LIMITS: &[Limit] = &[
    only("units", &[], "every other crate uses it"),
    only("model", &["units"], "it is the plain data in which systems meet, and computes nothing"),
    only("confidence", &[], "statistics of any sample"),
    only("metrics", &[], "it does not know what is counted"),
    only("plot", &[], "it does not know what is drawn"),
    only("machine", &[], "thin layers over the kernel"),
    only("arrivals", &["units"], "random streams, wherever they go"),
    only("calculus", &[], "mathematics of curves; the simulator judges it and must not share its mistakes"),
    never(
        "sim",
        &["calculus", "placement", "plan", "predict"],
        "the mathematics judges it, and it judges plans",
    ),
    only(
        "discipline",
        &["model", "units"],
        "the simulator, the proxy and the gate run the same state machines",
    ),
    only(
        "callgraph",
        &["units"],
        "it reads distributed traces and does not know what is simulated with them",
    ),
    never("workload", &["calculus"], "curves describe traffic, and prove nothing"),
    never("placement", &["predict", "sim"], "it searches with any latency model"),
    never(
        "scenario",
        &["calculus", "placement", "plan", "predict"],
        "a scenario describes, and promises nothing",
    ),
    only("wire", &["units"], "bytes in, messages out: no sockets, queues or policies"),
    never(
        "enforce",
        &["calculus", "placement", "plan", "predict", "sim", "verify"],
        "it obeys a policy, whatever decided it",
    ),
    only("verify", &["confidence", "model", "units"], "a judge cannot tell where observations come from"),
    never("load", &["observe", "verify"], "a source of observations"),
    never("observe", &["load", "verify"], "a source of observations"),
    never("profile", &["calculus"], "it measures a device, whatever the profile is used for"),
    never(
        "experiment",
        &["load", "sim", "verify"],
        "it compares periods of live traffic and promises nothing",
    ),
    never("limits", &["enforce", "plan", "predict", "sim"], "it reads what others set, whatever decided it"),
    only("gat", &[], "services link it"),
    only("sched-hint", &["machine"], "services link it"),
    only("schedule", &["discipline", "machine", "model", "units"], "services link it"),
    only("gat-abi", &["gat", "machine", "sched-hint"], "services link it"),
    only("schedule-abi", &["discipline", "machine", "model", "schedule", "units"], "services link it"),
    never("schedule-tower", &["chain", "sched-ext", "sim"], "services link it"),
    never("sched-ext", &["schedule", "sim"], "threads are scheduled by age in programs that have no gate"),
    never("chain", &["calculus", "predict", "sched-ext"], "it compares schedulings, and promises nothing"),
    only(
        "agent",
        &["machine", "model", "operation", "units", "workload"],
        "it applies what was decided, whatever decided it",
    ),
    never("controller", &["enforce"], "it decides, and agents enforce"),
    only("testkit", &["machine"], "tests of every crate use it"),
    only("xtask", &[], "it judges the tree and must build when the tree does not"),
];

/// Libraries for terminals and pages.
pub(super) const FRONT_LIBRARIES: [&str; 6] =
    ["clap", "clap_complete", "cli", "console", "indicatif", "plot"];

/// True for crates that may link [`FRONT_LIBRARIES`]: the program, the `cli` crate of a system, `api`, which serves pages,
/// and what these share. Services link the others, which therefore print nothing.
pub(super) fn is_front(krate: &str) -> bool {
    ["tailwright", "api"].contains(&krate) || krate.ends_with("-cli") || FRONT_LIBRARIES.contains(&krate)
}
