//! The table of causes: the words for each, what of its time is usual, and what to do next.

use observe::Cause;

/// Time of a cause that a server has when nothing disturbs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsualTime {
    /// None: whatever there is disturbs the server, or is not known not to.
    None,
    /// A queue as random arrivals make it at a moderate load.
    Queue,
    /// A few times what faster requests have of it, or their whole latency.
    LikeFasterOnes,
}

/// The step that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// An experiment with this knob, and its default value.
    Knob(&'static str),
    /// An experiment that demotes the process that takes most of the time; with `fifo` where none does.
    DemoteOrFifo,
    /// An observation of block devices.
    Block,
    /// What to do, in words.
    Words(&'static str),
}

/// What is said of a cause.
#[derive(Debug, Clone, Copy)]
pub(super) struct CauseRow {
    pub(super) cause: Cause,
    /// What the time is spent on, after "97 % of it". `{}` stands for the culprit.
    pub(super) phrase: &'static str,
    /// The same where there is no culprit with a name.
    pub(super) without_culprit: &'static str,
    /// A word for the list of what was tested; causes may share one.
    pub(super) tested: &'static str,
    pub(super) usual: UsualTime,
    pub(super) step: Step,
}

const fn row(
    cause: Cause,
    (phrase, without_culprit): (&'static str, &'static str),
    tested: &'static str,
    usual: UsualTime,
    step: Step,
) -> CauseRow {
    CauseRow { cause, phrase, without_culprit, tested, usual, step }
}

const INTERRUPTS: Step = Step::Words(
    "move the interrupts of the network card to another CPU (tailwright experiment --list interrupt-core)",
);
const WORKERS: Step = Step::Words("add workers, or limit the clients that send most");
const HYPERVISOR: Step =
    Step::Words("look at the other guests of the host: no setting of this machine helps");

/// A row for each cause.
pub(super) const ROWS: &[CauseRow] = &[
    row(
        Cause::NetworkIn,
        ("comes in from {}", "is between the network device and the socket"),
        "the network",
        UsualTime::LikeFasterOnes,
        INTERRUPTS,
    ),
    row(
        Cause::AllBusy,
        ("waits behind requests of {}", "waits behind earlier requests"),
        "queues",
        UsualTime::Queue,
        WORKERS,
    ),
    row(
        Cause::OtherIdle,
        (
            "waits behind requests of {} while another worker is idle",
            "waits behind earlier requests while another worker is idle",
        ),
        "queues",
        UsualTime::Queue,
        Step::Words("spread connections evenly, or give all workers one queue"),
    ),
    row(
        Cause::ReadTogether,
        (
            "waits behind requests of {} that were read with it",
            "waits behind requests that were read with it",
        ),
        "queues",
        UsualTime::Queue,
        Step::Words("read fewer requests at a time"),
    ),
    row(
        Cause::NotWoken,
        ("waits for {} to be woken", "passes before its worker is woken"),
        "wake-ups",
        UsualTime::LikeFasterOnes,
        Step::Words("look at what the server's threads wait for when they sleep"),
    ),
    row(
        Cause::BeingWoken,
        ("waits for {} to wake up", "waits for its worker to wake up"),
        "wake-ups",
        UsualTime::LikeFasterOnes,
        Step::Knob("wakeup-latency"),
    ),
    row(
        Cause::IdleCpu,
        ("waits for {} to wake up", "waits for an idle CPU to wake up"),
        "wake-ups",
        UsualTime::LikeFasterOnes,
        Step::Knob("wakeup-latency"),
    ),
    row(
        Cause::HeldBack,
        ("is held back by the CPU quota of {}", "is held back while the CPU is idle, as by a CPU quota"),
        "CPU quotas",
        UsualTime::None,
        Step::Knob("cpu-quota"),
    ),
    row(
        Cause::Throttled,
        ("is held back by the CPU quota of {}", "is held back by its CPU quota"),
        "CPU quotas",
        UsualTime::None,
        Step::Knob("cpu-quota"),
    ),
    row(
        Cause::SameServer,
        ("waits behind {}", "waits behind other threads of the server"),
        "its own threads",
        UsualTime::Queue,
        Step::Knob("pin"),
    ),
    row(
        Cause::OtherProcess,
        ("waits behind {}", "waits behind other processes"),
        "other processes",
        UsualTime::None,
        Step::DemoteOrFifo,
    ),
    row(
        Cause::Softirq,
        ("waits behind softirqs of {}", "waits behind softirqs, which handle packets"),
        "interrupts",
        UsualTime::LikeFasterOnes,
        INTERRUPTS,
    ),
    row(
        Cause::Interrupt,
        ("waits behind interrupts of {}", "waits behind interrupts of devices"),
        "interrupts",
        UsualTime::LikeFasterOnes,
        INTERRUPTS,
    ),
    row(
        Cause::Stolen,
        ("is taken by {}", "is taken by the hypervisor"),
        "steal",
        UsualTime::None,
        HYPERVISOR,
    ),
    row(
        Cause::Stopped,
        (
            "passes while {} is stopped by a signal",
            "passes while the server is stopped by a signal or a debugger",
        ),
        "stops",
        UsualTime::None,
        Step::Words("find who stops the server: strace -p PID shows the sender of each signal"),
    ),
    row(Cause::WaitingForIo, ("waits for {}", "waits for disks"), "disks", UsualTime::None, Step::Block),
    row(
        Cause::Blocked,
        ("is blocked in the kernel by {}", "is blocked in the kernel, mostly by its locks"),
        "kernel locks",
        UsualTime::None,
        Step::Words("look at the kernel stacks of the server's threads: cat /proc/PID/task/*/stack"),
    ),
    row(
        Cause::Asleep,
        ("is sleep in the server for {}", "is sleep in the server: a lock, another service, or on purpose"),
        "sleep in the server",
        UsualTime::None,
        Step::Words("find the lock or service that the server waits for: strace -f -T -p PID"),
    ),
    row(
        Cause::Work,
        ("is the server's own work on {}", "is the server's own work"),
        "its own work",
        UsualTime::LikeFasterOnes,
        Step::Words("profile the server: perf record -g -p PID"),
    ),
    row(
        Cause::NetworkOut,
        ("is {} on their way out", "waits for the network to take the answer"),
        "the network",
        UsualTime::None,
        Step::Knob("nodelay"),
    ),
    row(
        Cause::UnseenOccupant,
        ("was not seen", "waits for a CPU, and what ran on it was not seen"),
        "",
        UsualTime::None,
        Step::Words("observe for longer, when the machine is less busy"),
    ),
    row(
        Cause::Unknown,
        ("was not seen", "was spent on what was not seen of its worker"),
        "",
        UsualTime::None,
        Step::Words("observe for longer: the activity of its worker was not seen"),
    ),
];

/// What is said of a cause without a row: its name.
pub(super) fn row_of(cause: Cause) -> CauseRow {
    let own = row(
        cause,
        (cause.name(), cause.name()),
        cause.name(),
        UsualTime::None,
        Step::Words(cause.what_acts_on_it()),
    );
    ROWS.iter().find(|row| row.cause == cause).copied().unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_has_two_rows() {
        for cause in Cause::ALL {
            assert!(ROWS.iter().filter(|row| row.cause == cause).count() <= 1, "{cause:?}");
            assert!(!row_of(cause).without_culprit.is_empty(), "{cause:?}");
        }
    }
}
