//! What a request spends its time on, and what acts on that.
//!
//! The causes are those of Table 1 of *Tales of the Tail*, with the waiting that arrivals imply, and with what a
//! scheduler makes a thread wait for. They are shares of time: each nanosecond of a request has one.

/// What a nanosecond of a request's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// T0 to T2: from the device to the socket.
    NetworkIn,
    /// Its worker was busy with earlier requests, and so was every other worker of the server.
    AllBusy,
    /// Its worker was busy with earlier requests while another worker of the server had nothing to do.
    OtherIdle,
    /// It was read together with others, which were answered first.
    ReadTogether,
    /// Its worker slept, and was not yet woken.
    NotWoken,
    /// The wake-up of its worker had begun, and the worker was not yet in the queue of a CPU, which somebody had.
    BeingWoken,
    /// Its worker was woken, and its CPU was idle: until the CPU ran it.
    IdleCpu,
    /// Its worker was ready to run, and a CPU quota of one of its groups kept it from running.
    Throttled,
    /// Its worker was ready to run, had been made to leave its CPU, and nothing else used the CPU.
    HeldBack,
    /// Its worker was ready to run, and another thread of the server had the CPU.
    SameServer,
    /// Its worker was ready to run, and another process had the CPU.
    OtherProcess,
    /// Softirqs had the CPU of its worker.
    Softirq,
    /// Interrupts of devices had the CPU of its worker.
    Interrupt,
    /// Its worker was ready to run, and the hypervisor had taken its CPU.
    Stolen,
    /// Its worker was stopped by a signal or a debugger.
    Stopped,
    /// Its worker waited for I/O, as the kernel notes it: block devices, and file systems over the network.
    WaitingForIo,
    /// Its worker waited in the kernel for something else, and could not be interrupted: locks of the kernel.
    Blocked,
    /// Its worker slept in the middle of a request or of its answer: it meant to, or waited for a lock or for another
    /// service.
    Asleep,
    /// Its worker ran, for it; between the writes of its answer, for whatever it was.
    Work,
    /// From the last write that the network waited for, T5 or later, to the device: T6.
    NetworkOut,
    /// Its worker was ready to run, and who had its CPU was not seen.
    UnseenOccupant,
    /// What its worker did was not seen.
    Unknown,
}

/// The number of causes.
pub const CAUSES: usize = 22;

impl Cause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [Self; CAUSES] = [
        Self::NetworkIn,
        Self::AllBusy,
        Self::OtherIdle,
        Self::ReadTogether,
        Self::NotWoken,
        Self::BeingWoken,
        Self::IdleCpu,
        Self::Throttled,
        Self::HeldBack,
        Self::SameServer,
        Self::OtherProcess,
        Self::Softirq,
        Self::Interrupt,
        Self::Stolen,
        Self::Stopped,
        Self::WaitingForIo,
        Self::Blocked,
        Self::Asleep,
        Self::Work,
        Self::NetworkOut,
        Self::UnseenOccupant,
        Self::Unknown,
    ];

    /// Whether a worker that has this time while it is busy with a request does not work for it: others have its CPU, or
    /// it may not run.
    pub(crate) fn holds_up(self) -> bool {
        matches!(
            self,
            Self::Throttled
                | Self::HeldBack
                | Self::SameServer
                | Self::OtherProcess
                | Self::Softirq
                | Self::Interrupt
                | Self::Stolen
                | Self::Stopped
                | Self::UnseenOccupant
        )
    }

    /// A name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::NetworkIn => "network, coming in",
            Self::AllBusy => "all workers busy",
            Self::OtherIdle => "busy worker, another idle",
            Self::ReadTogether => "read together",
            Self::NotWoken => "not woken yet",
            Self::BeingWoken => "being woken",
            Self::IdleCpu => "waking an idle CPU",
            Self::Throttled => "CPU quota",
            Self::HeldBack => "held back, CPU idle",
            Self::SameServer => "other threads of server",
            Self::OtherProcess => "other processes",
            Self::Softirq => "softirq",
            Self::Interrupt => "interrupts of devices",
            Self::Stolen => "stolen by the hypervisor",
            Self::Stopped => "stopped",
            Self::WaitingForIo => "waiting for I/O",
            Self::Blocked => "blocked in the kernel",
            Self::Asleep => "asleep in processing",
            Self::Work => "work",
            Self::NetworkOut => "network, going out",
            Self::UnseenOccupant => "not seen: who had its CPU",
            Self::Unknown => "not seen: its worker",
        }
    }

    /// What acts on it: the kind of knob of Table 1 of *Tales of the Tail* where it has one, otherwise where to look.
    pub fn what_acts_on_it(self) -> &'static str {
        match self {
            Self::NetworkIn | Self::Softirq | Self::Interrupt => "interrupt cores, RPS",
            Self::AllBusy => "more workers, fewer requests",
            Self::OtherIdle => "one queue for all workers",
            Self::ReadTogether => "smaller batches",
            Self::NotWoken => "wake-ups in the server",
            Self::BeingWoken => "busy polling, pinning",
            Self::IdleCpu => "idle states, busy polling",
            Self::Throttled => "a larger CPU quota",
            Self::HeldBack => "CPU quotas, affinity",
            Self::SameServer => "FIFO scheduling, pinning",
            Self::OtherProcess => "real-time priority, pinning",
            Self::Stolen => "other guests of the host",
            Self::Stopped => "not stopping it",
            Self::WaitingForIo => "disks, locked memory",
            Self::Blocked => "locks of the kernel",
            Self::Asleep => "locks, other services",
            Self::Work => "the server's code",
            Self::NetworkOut => "TCP_NODELAY, congestion control",
            Self::UnseenOccupant | Self::Unknown => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the table of docs/reference/observe.md, some of whose rows are about two causes.
    #[test]
    fn the_documentation_has_the_same_words() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/observe.md");
        let page = std::fs::read_to_string(page).expect("the documentation is beside the crates");
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        for cause in Cause::ALL {
            let is_it = |name: &str| name == cause.name() || name.split(", ").any(|one| one == cause.name());
            let row = rows.iter().find(|row| row.len() == 3 && is_it(row[0]));
            assert_eq!(row.map(|row| row[2]), Some(cause.what_acts_on_it()), "{cause:?}");
        }
    }

    #[test]
    fn causes_are_numbered_in_the_order_of_the_list() {
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
        }
    }
}
