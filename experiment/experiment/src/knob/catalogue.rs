//! All knobs. Causes are named as in *Tales of the Tail*, Table 1.

use super::definition::{Knob, KnobFlag, KnobObstacle, KnobTarget, PID_NAMES};
use super::rights::missing_right;
use super::{files, groups, interrupts, sockets, threads};
use crate::linux::socket_place_unusable;
use crate::setting::ProcessIdentity;

const BACKGROUND: &str = "background processes";
const ORDER: &str = "background processes, non-FIFO scheduling";
const INTERRUPTS: &str = "interrupt processing";
const POWER: &str = "power saving";
const NETWORK: &str = "the network's pace (not in Table 1)";
const STORAGE: &str = "waiting for storage (not in Table 1)";

const READ_BACK: &str = "read back from each thread (sched_getattr)";
const WRITTEN_BACK: &str = "what was before is written back";
const FILE: &str = "read back from the file";
const SOCKETS: &str =
    "every pass compares what each socket has (getsockopt in the kernel) and counts those that differ";
const SOCKETS_BACK: &str =
    "each socket gets what it had before, which is kept with it, or keeps what the server has set since";
const WAITING: &[&str] = &["wakeup", "read", "processing"];
const ARRIVING: &[&str] = &["receive-queue", "network-stack"];
const INTERRUPTED: &[&str] = &["receive-queue", "network-stack", "wakeup"];

/// Every knob, in the order of `--list`.
pub const KNOBS: [Knob; 31] = [
    Knob {
        name: "nothing",
        stages: &[],
        cause: "none: what is found is chance",
        sets: "nothing",
        values: "none",
        default: Some(""),
        verified: "there is nothing to verify",
        undone: "there is nothing to undo",
        costs: "nothing",
        flags: &[],
        plan: threads::nothing,
    },
    Knob {
        name: "fifo",
        stages: WAITING,
        cause: ORDER,
        sets: "real-time policy SCHED_FIFO of all threads",
        values: "a priority from 1 to 99",
        default: Some("10"),
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "other tasks starve while the server has work; the kernel keeps 5 % of a CPU for them",
        flags: &[KnobFlag::Pid],
        plan: threads::fifo,
    },
    Knob {
        name: "round-robin",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "real-time policy SCHED_RR of all threads: the priority of fifo without its order",
        values: "a priority from 1 to 99",
        default: Some("10"),
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "as fifo",
        flags: &[KnobFlag::Pid],
        plan: threads::round_robin,
    },
    Knob {
        name: "batch",
        stages: WAITING,
        cause: "non-FIFO scheduling",
        sets: "SCHED_BATCH of all threads: woken without preempting others",
        values: "none",
        default: Some(""),
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "waits for a CPU become longer where others run",
        flags: &[KnobFlag::Pid],
        plan: threads::batch,
    },
    Knob {
        name: "slice",
        stages: WAITING,
        cause: ORDER,
        sets: "the slice of all threads (EEVDF): a short one is served earlier",
        values: "a time from 100us to 100ms",
        default: Some("100us"),
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "more switches between tasks",
        flags: &[KnobFlag::Pid],
        plan: threads::slice,
    },
    Knob {
        name: "nice",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "the nice value of all threads; among tasks of other sessions autogroup makes it void",
        values: "-20 to 19",
        default: Some("-10"),
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "others get less of the CPU",
        flags: &[KnobFlag::Pid],
        plan: threads::nice,
    },
    Knob {
        name: "autogroup-nice",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "the nice value of the server's session among other sessions",
        values: "-20 to 19",
        default: Some("-10"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "other sessions get less of the CPU; a session that outlives the process named keeps it",
        flags: &[KnobFlag::Pid],
        plan: threads::autogroup_nice,
    },
    Knob {
        name: "pin",
        stages: WAITING,
        cause: "background processes, NUMA effects",
        sets: "the CPUs of all threads: one each in turn (spread), or these for all",
        values: "spread, or CPUs such as 0-1+3",
        default: Some("spread"),
        verified: "read back from each thread (sched_getaffinity)",
        undone: WRITTEN_BACK,
        costs: "a thread waits for its CPU while another one idles",
        flags: &[KnobFlag::Pid],
        plan: threads::pin,
    },
    Knob {
        name: "demote",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "SCHED_IDLE of all threads of another process",
        values: "the PID of the other process",
        default: None,
        verified: READ_BACK,
        undone: WRITTEN_BACK,
        costs: "that process hardly runs; locks that it holds are held for longer",
        flags: &[],
        plan: threads::demote,
    },
    Knob {
        name: "cpu-shares",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "cpu.shares of the server's control group (version 1)",
        values: "1 to 262144; 1024 is usual",
        default: Some("10240"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "other groups get less of the CPU",
        flags: &[KnobFlag::Pid],
        plan: files::cpu_shares,
    },
    Knob {
        name: "cpu-quota",
        stages: WAITING,
        cause: "CPU quotas (not in Table 1)",
        sets: "cpu.cfs_quota_us of the server's control group (version 1)",
        values: "microseconds in each period, -1 for no limit",
        default: Some("-1"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "the group may take what others were promised",
        flags: &[KnobFlag::Pid],
        plan: files::cpu_quota,
    },
    Knob {
        name: "group-cpus",
        stages: WAITING,
        cause: "background processes, NUMA effects",
        sets: "cpuset.cpus of the server's control group (version 1)",
        values: "CPUs such as 0-1+3",
        default: None,
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "as pin, for all processes of the group",
        flags: &[KnobFlag::Pid],
        plan: files::group_cpus,
    },
    Knob {
        name: "group-weight",
        stages: WAITING,
        cause: BACKGROUND,
        sets: "cpu.weight of the server's control group (version 2)",
        values: "1 to 10000; 100 is usual",
        default: Some("1000"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "other groups get less of the CPU",
        flags: &[KnobFlag::Pid],
        plan: groups::cpu_weight,
    },
    Knob {
        name: "interrupt-core",
        stages: INTERRUPTED,
        cause: INTERRUPTS,
        sets: "interrupts and receive work of --device on one CPU, the server on the others",
        values: "a CPU",
        default: Some("0"),
        verified: "read back from files and threads",
        undone: WRITTEN_BACK,
        costs: "throughput, where that CPU has little to do",
        flags: &[KnobFlag::Device],
        plan: interrupts::interrupt_core,
    },
    Knob {
        name: "irq-affinity",
        stages: ARRIVING,
        cause: INTERRUPTS,
        sets: "the CPUs that take the interrupts of --device",
        values: "CPUs such as 0-1+3",
        default: Some("0"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "irqbalance sets it back",
        flags: &[KnobFlag::Device],
        plan: interrupts::irq_affinity,
    },
    Knob {
        name: "rps",
        stages: INTERRUPTED,
        cause: INTERRUPTS,
        sets: "the CPUs that do the receive work of --device (RPS)",
        values: "CPUs such as 0-1+3",
        default: Some("0"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "an interrupt between CPUs for each burst of packets",
        flags: &[KnobFlag::Device],
        plan: interrupts::receive_steering,
    },
    Knob {
        name: "xps",
        stages: &["transmit"],
        cause: INTERRUPTS,
        sets: "the CPUs that use each transmit queue of --device (XPS)",
        values: "CPUs such as 0-1+3",
        default: Some("0"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "queues that no CPU uses",
        flags: &[KnobFlag::Device],
        plan: interrupts::transmit_steering,
    },
    Knob {
        name: "threaded-napi",
        stages: ARRIVING,
        cause: INTERRUPTS,
        sets: "receive work of --device in kernel threads that are scheduled, instead of softirqs",
        values: "0 or 1",
        default: Some("1"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "a wake-up for each burst of packets",
        flags: &[KnobFlag::Device],
        plan: interrupts::threaded_napi,
    },
    Knob {
        name: "busy-poll",
        stages: &["receive-queue", "network-stack", "wakeup", "read"],
        cause: "interrupt processing, power saving",
        sets: "net.core.busy_poll, busy_read; only sockets that are opened later have the second",
        values: "microseconds, 0 to 100000",
        default: Some("50"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "CPU time while waiting",
        flags: &[],
        plan: files::busy_poll,
    },
    Knob {
        name: "congestion-control",
        stages: &["transmit"],
        cause: NETWORK,
        sets: "net.ipv4.tcp_congestion_control, for connections that begin later only",
        values: "a name such as cubic",
        default: Some("cubic"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "acts on clients that reconnect in every period, and on all servers of the machine",
        flags: &[],
        plan: files::congestion_control,
    },
    Knob {
        name: "nodelay",
        stages: &["transmit"],
        cause: NETWORK,
        sets: "TCP_NODELAY of the server's open sockets: small answers are sent at once, or not",
        values: "on or off",
        default: Some("on"),
        verified: SOCKETS,
        undone: SOCKETS_BACK,
        costs: "on: more packets; off: small answers wait for acknowledgements of earlier ones",
        flags: &[KnobFlag::Pid, KnobFlag::Port],
        plan: sockets::no_delay,
    },
    Knob {
        name: "socket-congestion-control",
        stages: &["transmit"],
        cause: NETWORK,
        sets: "the congestion control of the server's open connections (TCP_CONGESTION)",
        values: "a name such as cubic",
        default: None,
        verified: SOCKETS,
        undone: SOCKETS_BACK,
        costs: "new connections have it within 100 ms; it begins with the present window; what bbr has paced stays paced",
        flags: &[KnobFlag::Pid, KnobFlag::Port],
        plan: sockets::congestion_control,
    },
    Knob {
        name: "wakeup-latency",
        stages: &["receive-queue", "wakeup"],
        cause: POWER,
        sets: "how long idle CPUs may take to wake up (/dev/cpu_dma_latency, held open)",
        values: "microseconds; 0 keeps CPUs awake",
        default: Some("0"),
        verified: "read back from the device",
        undone: "the kernel does it when the file is closed, or this program ends",
        costs: "energy; idle CPUs poll",
        flags: &[],
        plan: files::wakeup_latency,
    },
    Knob {
        name: "idle-states",
        stages: &["receive-queue", "wakeup"],
        cause: POWER,
        sets: "no idle states of CPUs deeper than this one",
        values: "the number of a state",
        default: Some("0"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "energy",
        flags: &[],
        plan: files::idle_states,
    },
    Knob {
        name: "governor",
        stages: &["processing"],
        cause: POWER,
        sets: "how the frequency of CPUs is chosen",
        values: "a name such as performance",
        default: Some("performance"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "energy",
        flags: &[],
        plan: files::governor,
    },
    Knob {
        name: "io-scheduler",
        stages: &["processing"],
        cause: STORAGE,
        sets: "the I/O scheduler of --disk",
        values: "a name such as mq-deadline",
        default: Some("none"),
        verified: FILE,
        undone: "what was before is written back: the scheduler, then its settings and nr_requests",
        costs: "CPU time, fairness between processes; nr_requests is the kernel's default while it is on",
        flags: &[KnobFlag::Disk],
        plan: files::io_scheduler,
    },
    Knob {
        name: "queue-depth",
        stages: &["processing"],
        cause: STORAGE,
        sets: "how many requests the queue of --disk takes (nr_requests)",
        values: "1 to 65536",
        default: Some("32"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "throughput, where it is too short",
        flags: &[KnobFlag::Disk],
        plan: files::queue_depth,
    },
    Knob {
        name: "group-io-max",
        stages: &["processing"],
        cause: STORAGE,
        sets: "io.max of the server's control group for --disk (version 2)",
        values: "limits such as wbps=1048576+riops=max",
        default: Some("rbps=max+wbps=max+riops=max+wiops=max"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "a limit delays the group itself; without one it may delay others",
        flags: &[KnobFlag::Pid, KnobFlag::Disk],
        plan: groups::io_max,
    },
    Knob {
        name: "group-io-latency",
        stages: &["processing"],
        cause: STORAGE,
        sets: "io.latency of the server's control group for --disk (version 2)",
        values: "a time such as 10ms",
        default: Some("10ms"),
        verified: FILE,
        undone: WRITTEN_BACK,
        costs: "groups with longer targets are throttled while this one misses its own",
        flags: &[KnobFlag::Pid, KnobFlag::Disk],
        plan: groups::io_latency,
    },
    Knob {
        name: "command",
        stages: &[],
        cause: "the user's own, such as the concurrency architecture (workers)",
        sets: "what --apply does and --revert takes back, such as a server's number of workers",
        values: "any; it stands for {} in the commands",
        default: Some(""),
        verified: "the command exits with 0",
        undone: "--revert is run, also where --apply was cut short",
        costs: "what the commands do",
        flags: &[KnobFlag::Commands],
        plan: threads::command,
    },
    Knob {
        name: "load",
        stages: &[],
        cause: "the clients: their protocol, and how long their connections are",
        sets: "another load: --load-command with this value for {}, instead of that of --load-off",
        values: "any; it stands for {} in the command",
        default: None,
        verified: "the command runs until it is ended",
        undone: "the command and all that it has started are ended",
        costs: "connections begin anew in every period, also with the knob off",
        flags: &[KnobFlag::Load],
        plan: threads::load,
    },
];

/// Returns the knob with this name.
pub fn knob(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

impl Knob {
    /// Returns the reason why the knob cannot be used on this machine, without changing anything. A target
    /// without processes is tried with the process `stand_in`.
    pub fn obstacle(&self, target: &KnobTarget, stand_in: Option<ProcessIdentity>) -> Option<KnobObstacle> {
        let mut tried = target.clone();
        if tried.processes.is_empty() {
            tried.processes.extend(stand_in);
        }
        let missing = self.missing_flags(&tried);
        if !missing.is_empty() {
            let lack = if self.flags.contains(&KnobFlag::Port) { socket_place_unusable() } else { None };
            return Some(match lack {
                Some(error) => KnobObstacle::Machine(error.message),
                None => KnobObstacle::Flags(self.missing_flags(target)),
            });
        }
        let example = self.default.or_else(|| example(self.name));
        let error = match (self.plan)(&tried, example.unwrap_or_default()) {
            Err(error) => error,
            Ok(changes) => missing_right(&changes)?,
        };
        // The stand-in has no group of its own, as most servers do.
        if target.processes.is_empty() && error.message.starts_with(PID_NAMES) {
            return Some(KnobObstacle::Flags(vec![KnobFlag::Pid]));
        }
        Some(KnobObstacle::Machine(error.message))
    }
}

/// Returns a value to try for a knob without a default.
fn example(name: &str) -> Option<&'static str> {
    match name {
        // PID 1 always exists, and ordinary users may not change it.
        "demote" => Some("1"),
        "group-cpus" => Some("0"),
        "load" => Some("other"),
        "socket-congestion-control" => Some("reno"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_distinct_and_stages_are_those_of_observations() {
        let names: BTreeSet<&str> = KNOBS.iter().map(|knob| knob.name).collect();
        assert_eq!(names.len(), KNOBS.len());
        for knob in &KNOBS {
            assert!(knob.stages.iter().all(|stage| observe::STAGE_NAMES.contains(stage)), "{}", knob.name);
            assert!(knob.default.is_some() || example(knob.name).is_some(), "{}", knob.name);
        }
    }

    #[test]
    fn cpus_that_there_are_not_are_refused() {
        let processes = crate::linux::identity(std::process::id()).into_iter().collect();
        let target = KnobTarget { processes, device: Some("lo".into()), ..KnobTarget::default() };
        for name in ["pin", "rps", "interrupt-core"] {
            let error = knob(name).and_then(|knob| knob.plan(&target, Some("8191")).err());
            let error = error.unwrap_or_else(|| panic!("{name}: there is a CPU 8191"));
            assert!(error.message.contains("there is no CPU 8191"), "{error}");
            assert_eq!(error.blame, model::Blame::Input, "{error}");
        }
    }

    #[test]
    fn errors_name_the_knob_as_it_was_written() {
        let fifo = knob("fifo").expect("a knob");
        let message = |value| fifo.plan(&KnobTarget::default(), value).map_err(|error| error.message);
        assert_eq!(message(None), Err("fifo: it is about threads: expected --pid".into()));
        assert_eq!(message(Some("7")), Err("fifo=7: it is about threads: expected --pid".into()));
    }
}
