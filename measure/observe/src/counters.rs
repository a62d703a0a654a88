//! Counters of the kernel that name a cause exactly: read when an observation begins and ends, shown as differences.
//!
//! What is divided among causes was seen event by event. What never became a request, a datagram that was dropped, is in
//! no latency, and is known from these counters alone.

use crate::seconds::in_seconds;
use machine::cpu_quota::{CpuHierarchy, CpuQuota, QuotaCounts};
use machine::cpu_time;
use machine::network_counts::{
    NamespaceNumber, NetworkCounts, SocketAtPort, SoftnetCounts, namespace_of, of_namespaces_with, softnet,
};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// The most processes whose groups and namespaces are looked up; servers with a process for each connection have many.
const PROCESSES_MAX: usize = 256;

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// A number of things.
    Count,
    /// Time, nanoseconds.
    Nanoseconds,
}

/// A counter of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct KernelCounter {
    /// Its name for machines.
    pub name: &'static str,
    /// Where the kernel has it.
    pub source: &'static str,
    /// What it counts.
    pub unit: CounterUnit,
    /// One and several of what is counted, for people; of time, what passed.
    pub words: [&'static str; 2],
    /// What acts on it.
    pub what_acts_on_it: &'static str,
    /// What is counted never became a request, and is in no latency.
    pub is_loss: bool,
}

/// Periods in which the quota of a group of the server was used up.
pub static QUOTA_THROTTLES: KernelCounter = KernelCounter {
    name: "cpu_quota_throttles",
    source: "cpu.stat: nr_throttled",
    unit: CounterUnit::Count,
    words: ["period throttled by the CPU quota", "periods throttled by the CPU quota"],
    what_acts_on_it: "a larger CPU quota",
    is_loss: false,
};

/// For how long such a group was throttled.
pub static QUOTA_THROTTLED_TIME: KernelCounter = KernelCounter {
    name: "cpu_quota_throttled_time",
    source: "cpu.stat: throttled_time, throttled_usec",
    unit: CounterUnit::Nanoseconds,
    words: ["throttled by the CPU quota, summed over CPUs"; 2],
    what_acts_on_it: "a larger CPU quota",
    is_loss: false,
};

/// Datagrams that found the receive buffer of the server's socket full.
pub static UDP_DROPS: KernelCounter = KernelCounter {
    name: "udp_drops",
    source: "/proc/net/udp: drops",
    unit: CounterUnit::Count,
    words: [
        "datagram was dropped at the server's socket: it is in no latency below",
        "datagrams were dropped at the server's socket: they are in no latency below",
    ],
    what_acts_on_it: "a larger SO_RCVBUF (net.core.rmem_max), more threads that read",
    is_loss: true,
};

/// Connection attempts that the server's listening socket dropped.
pub static LISTEN_DROPS: KernelCounter = KernelCounter {
    name: "listen_drops",
    source: "sock_diag: SK_MEMINFO_DROPS of the listening socket",
    unit: CounterUnit::Count,
    words: [
        "connection attempt was dropped at the server's listening socket: its wait is in no latency below",
        "connection attempts were dropped at the server's listening socket: their waits are in no latency below",
    ],
    what_acts_on_it: "a larger backlog (net.core.somaxconn), accepting sooner",
    is_loss: true,
};

/// Connection attempts that found an accept queue full, in the whole network namespace.
pub static LISTEN_OVERFLOWS: KernelCounter = KernelCounter {
    name: "listen_overflows",
    source: "/proc/net/netstat: ListenOverflows",
    unit: CounterUnit::Count,
    words: [
        "connection attempt found an accept queue of this network namespace full",
        "connection attempts found an accept queue of this network namespace full",
    ],
    what_acts_on_it: "a larger backlog (net.core.somaxconn), accepting sooner",
    is_loss: false,
};

/// Segments of answers that the server's side sent again.
pub static ANSWER_RETRANSMITS: KernelCounter = KernelCounter {
    name: "answer_retransmits",
    source: "tracepoint tcp_retransmit_skb, observed connections",
    unit: CounterUnit::Count,
    words: ["segment of answers was sent again", "segments of answers were sent again"],
    what_acts_on_it: "the network: packets of observed connections are lost or late",
    is_loss: false,
};

/// Segments that anything in the server's network namespace sent again.
pub static NAMESPACE_RETRANSMITS: KernelCounter = KernelCounter {
    name: "namespace_retransmits",
    source: "/proc/net/snmp: RetransSegs",
    unit: CounterUnit::Count,
    words: [
        "TCP segment of this network namespace was sent again",
        "TCP segments of this network namespace were sent again",
    ],
    what_acts_on_it: "the network: packets are lost or late",
    is_loss: false,
};

/// Packets that found the backlog of a CPU full.
pub static SOFTNET_DROPS: KernelCounter = KernelCounter {
    name: "softnet_drops",
    source: "/proc/net/softnet_stat, second column",
    unit: CounterUnit::Count,
    words: [
        "packet of this machine was dropped: the backlog of its CPU was full",
        "packets of this machine were dropped: the backlogs of their CPUs were full",
    ],
    what_acts_on_it: "net.core.netdev_max_backlog, RPS",
    is_loss: true,
};

/// Rounds of receiving that ended with work left.
pub static SOFTNET_SQUEEZES: KernelCounter = KernelCounter {
    name: "softnet_squeezes",
    source: "/proc/net/softnet_stat, third column",
    unit: CounterUnit::Count,
    words: ["round of receiving ended with packets left", "rounds of receiving ended with packets left"],
    what_acts_on_it: "net.core.netdev_budget, RPS",
    is_loss: false,
};

/// What the hypervisor took from all CPUs.
pub static STEAL: KernelCounter = KernelCounter {
    name: "steal",
    source: "/proc/stat: steal",
    unit: CounterUnit::Nanoseconds,
    words: ["of CPU time taken by the hypervisor"; 2],
    what_acts_on_it: "other guests of the host",
    is_loss: false,
};

/// All counters that are read.
pub static KERNEL_COUNTERS: [&KernelCounter; 10] = [
    &UDP_DROPS,
    &LISTEN_DROPS,
    &SOFTNET_DROPS,
    &QUOTA_THROTTLES,
    &QUOTA_THROTTLED_TIME,
    &LISTEN_OVERFLOWS,
    &ANSWER_RETRANSMITS,
    &NAMESPACE_RETRANSMITS,
    &SOFTNET_SQUEEZES,
    &STEAL,
];

/// What a counter has counted while requests counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelCount {
    /// Which counter it is.
    pub counter: &'static KernelCounter,
    /// What it is about: a group, a port; empty for the machine.
    pub subject: String,
    /// How much it has grown.
    pub amount: u64,
}

/// A group of the server whose CPU quota kept it from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThrottledGroup {
    /// Its path in the hierarchy of groups.
    pub group: String,
    /// Its quota at the end; `None` if it has none any more.
    #[serde(flatten, serialize_with = "quota_in_seconds")]
    #[schemars(with = "QuotaSeconds")]
    pub quota: Option<CpuQuota>,
    /// Periods in which it was throttled.
    pub throttled: u64,
    /// For how long, nanoseconds, summed over CPUs.
    #[serde(rename = "throttled_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64", description = "Summed over CPUs.")]
    pub throttled_ns: u64,
    /// Processes of the server in it or below.
    pub processes: Vec<u32>,
    /// A command that doubles the quota.
    pub command: Option<String>,
}

/// A CPU quota as documents have it.
#[derive(Serialize, JsonSchema)]
struct QuotaSeconds {
    /// CPU time in each period; null where the group has no quota any more.
    quota_s: Option<f64>,
    period_s: Option<f64>,
}

fn quota_in_seconds<S: Serializer>(quota: &Option<CpuQuota>, serializer: S) -> Result<S::Ok, S::Error> {
    let seconds = |microseconds: u64| microseconds as f64 / 1e6;
    QuotaSeconds {
        quota_s: quota.map(|quota| seconds(quota.quota_us)),
        period_s: quota.map(|quota| seconds(quota.period_us)),
    }
    .serialize(serializer)
}

/// What counters of the kernel say of an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterReport {
    /// Counters that have grown, in the order of [`KERNEL_COUNTERS`].
    pub counts: Vec<KernelCount>,
    /// Groups that were throttled, the longest one first.
    pub throttled: Vec<ThrottledGroup>,
    /// For how long quotas kept threads that answer requests from running, nanoseconds, as events have it.
    pub threads_throttled_ns: u64,
}

impl CounterReport {
    /// What never became a request, and is in no latency.
    pub fn losses(&self) -> impl Iterator<Item = &KernelCount> {
        self.counts.iter().filter(|count| count.counter.is_loss)
    }

    /// Returns the growth since an earlier report of the same observation.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let count_before = |count: &KernelCount| {
            let is_it =
                |other: &&KernelCount| other.counter == count.counter && other.subject == count.subject;
            earlier.counts.iter().find(is_it).map_or(0, |before| before.amount)
        };
        let grown = |count: &KernelCount| KernelCount {
            amount: count.amount.saturating_sub(count_before(count)),
            ..count.clone()
        };
        let group = |group: &ThrottledGroup| {
            let before = earlier.throttled.iter().find(|before| before.group == group.group);
            let (throttled, throttled_ns) =
                before.map_or((0, 0), |before| (before.throttled, before.throttled_ns));
            ThrottledGroup {
                throttled: group.throttled.saturating_sub(throttled),
                throttled_ns: group.throttled_ns.saturating_sub(throttled_ns),
                ..group.clone()
            }
        };
        let mut throttled: Vec<ThrottledGroup> = self.throttled.iter().map(group).collect();
        throttled.retain(|group| group.throttled > 0 || group.throttled_ns > 0);
        throttled.sort_by_key(|group| std::cmp::Reverse(group.throttled_ns));
        Self {
            counts: self.counts.iter().map(grown).filter(|count| count.amount > 0).collect(),
            throttled,
            threads_throttled_ns: self.threads_throttled_ns.saturating_sub(earlier.threads_throttled_ns),
        }
    }

    /// By how much a counter has grown, over all that it is about.
    pub fn total(&self, counter: &KernelCounter) -> u64 {
        self.counts.iter().filter(|count| count.counter == counter).map(|count| count.amount).sum()
    }
}

/// Readings at one moment.
#[derive(Debug, Default)]
struct CounterReading {
    groups: BTreeMap<String, QuotaCounts>,
    networks: BTreeMap<NamespaceNumber, NetworkCounts>,
    softnet: SoftnetCounts,
    stolen_ns: u64,
}

/// Counters while a server is observed.
#[derive(Debug)]
pub(crate) struct CounterWatch {
    ports: BTreeSet<u16>,
    hierarchy: Option<CpuHierarchy>,
    /// Groups of processes of the server.
    processes: BTreeMap<u32, BTreeSet<String>>,
    namespaces: BTreeSet<NamespaceNumber>,
    /// The readings when counting began, while it goes on.
    before: Option<CounterReading>,
    sum: CounterReading,
    pub(crate) retransmits: u64,
    pub(crate) threads_throttled_ns: u64,
}

impl CounterWatch {
    /// A watch of servers at these ports that does not count yet.
    pub(crate) fn new(ports: &BTreeSet<u16>) -> Self {
        Self {
            ports: ports.clone(),
            hierarchy: CpuHierarchy::of_machine(),
            processes: BTreeMap::new(),
            namespaces: BTreeSet::new(),
            before: None,
            sum: CounterReading::default(),
            retransmits: 0,
            threads_throttled_ns: 0,
        }
    }

    fn reading(&self) -> CounterReading {
        let groups: BTreeSet<&String> = self.processes.values().flatten().collect();
        let counts = |group: &String| Some((group.clone(), self.hierarchy.as_ref()?.counts(group)?));
        CounterReading {
            groups: groups.into_iter().filter_map(counts).collect(),
            networks: of_namespaces_with(&self.ports, &self.namespaces),
            softnet: softnet().unwrap_or_default(),
            stolen_ns: cpu_time::stolen().unwrap_or(0),
        }
    }

    /// From now on it counts.
    pub(crate) fn begin(&mut self) {
        self.before = Some(self.reading());
    }

    /// A process serves. Its groups count from now on: they were not known before.
    pub(crate) fn add_process(&mut self, process: u32) {
        if self.processes.contains_key(&process) || self.processes.len() >= PROCESSES_MAX {
            return;
        }
        self.namespaces.extend(namespace_of(Some(process)));
        let Some(hierarchy) = &self.hierarchy else { return };
        let groups = hierarchy.groups_of(process);
        if let Some(before) = &mut self.before {
            for group in &groups {
                let Some(counts) = hierarchy.counts(group) else { continue };
                before.groups.entry(group.clone()).or_insert(counts);
            }
        }
        self.processes.insert(process, groups);
    }

    /// It counts no more until it begins again.
    pub(crate) fn end(&mut self) {
        if let Some(before) = self.before.take() {
            let after = self.reading();
            self.add_growth_between(&before, &after);
        }
    }

    /// Reads the counters in the middle of a time in which they count.
    pub(crate) fn refresh(&mut self) {
        if let Some(before) = self.before.take() {
            let after = self.reading();
            self.add_growth_between(&before, &after);
            self.before = Some(after);
        }
    }

    fn add_growth_between(&mut self, before: &CounterReading, after: &CounterReading) {
        self.sum.softnet.dropped += after.softnet.dropped.saturating_sub(before.softnet.dropped);
        self.sum.softnet.squeezed += after.softnet.squeezed.saturating_sub(before.softnet.squeezed);
        self.sum.stolen_ns += after.stolen_ns.saturating_sub(before.stolen_ns);
        for (group, counts) in &after.groups {
            let earlier = before.groups.get(group).copied().unwrap_or_default();
            let sum = self.sum.groups.entry(group.clone()).or_default();
            sum.throttled += counts.throttled.saturating_sub(earlier.throttled);
            sum.throttled_ns += counts.throttled_ns.saturating_sub(earlier.throttled_ns);
        }
        for (namespace, counts) in &after.networks {
            // A namespace that was not read before had no socket of the server then: its own counters say nothing.
            let earlier = before.networks.get(namespace);
            let sum = self.sum.networks.entry(*namespace).or_default();
            if let Some(earlier) = earlier {
                sum.listen_overflows += counts.listen_overflows.saturating_sub(earlier.listen_overflows);
                sum.retransmits += counts.retransmits.saturating_sub(earlier.retransmits);
            }
            let none = NetworkCounts::default();
            let earlier = earlier.unwrap_or(&none);
            add_growth(&mut sum.udp_drops, &counts.udp_drops, &earlier.udp_drops);
            add_growth(&mut sum.listen_drops, &counts.listen_drops, &earlier.listen_drops);
        }
    }

    /// What came of it.
    pub(crate) fn report(mut self) -> CounterReport {
        self.end();
        self.so_far()
    }

    /// Returns the counts up to the last reading.
    pub(crate) fn so_far(&self) -> CounterReport {
        let throttled = self.throttled_groups();
        let mut counts = Vec::new();
        let mut add = |counter: &'static KernelCounter, subject: String, amount: u64| {
            if amount > 0 {
                counts.push(KernelCount { counter, subject, amount });
            }
        };
        // Where no process is known, nothing was read, and a socket at the port is the server's.
        let is_of_server =
            |namespace: &NamespaceNumber| self.namespaces.is_empty() || self.namespaces.contains(namespace);
        let networks =
            || self.sum.networks.iter().filter(|(number, _)| is_of_server(number)).map(|(_, one)| one);
        for port in &self.ports {
            let at_port = |drops: &BTreeMap<SocketAtPort, u64>| -> u64 {
                drops.iter().filter(|(socket, _)| socket.port == *port).map(|(_, drops)| drops).sum()
            };
            let [udp, listen] = [
                networks().map(|network| at_port(&network.udp_drops)).sum(),
                networks().map(|network| at_port(&network.listen_drops)).sum(),
            ];
            add(&UDP_DROPS, format!("port {port}"), udp);
            add(&LISTEN_DROPS, format!("port {port}"), listen);
        }
        for group in &throttled {
            add(&QUOTA_THROTTLES, group.group.clone(), group.throttled);
            add(&QUOTA_THROTTLED_TIME, group.group.clone(), group.throttled_ns);
        }
        add(&SOFTNET_DROPS, String::new(), self.sum.softnet.dropped);
        add(&LISTEN_OVERFLOWS, String::new(), networks().map(|network| network.listen_overflows).sum());
        add(&ANSWER_RETRANSMITS, String::new(), self.retransmits);
        add(&NAMESPACE_RETRANSMITS, String::new(), networks().map(|network| network.retransmits).sum());
        add(&SOFTNET_SQUEEZES, String::new(), self.sum.softnet.squeezed);
        add(&STEAL, String::new(), self.sum.stolen_ns);
        let place =
            |count: &KernelCount| KERNEL_COUNTERS.iter().position(|counter| *counter == count.counter);
        counts.sort_by_key(place);
        CounterReport { counts, throttled, threads_throttled_ns: self.threads_throttled_ns }
    }

    fn throttled_groups(&self) -> Vec<ThrottledGroup> {
        let was_throttled =
            |(_, counts): &(&String, &QuotaCounts)| counts.throttled > 0 || counts.throttled_ns > 0;
        let described = |(group, counts): (&String, &QuotaCounts)| {
            let hierarchy = self.hierarchy.as_ref();
            let quota = hierarchy.and_then(|hierarchy| hierarchy.quota(group));
            let doubled = quota.map(|quota| CpuQuota { quota_us: quota.quota_us.saturating_mul(2), ..quota });
            let is_in_it = |(_, groups): &(&u32, &BTreeSet<String>)| groups.contains(group);
            ThrottledGroup {
                group: group.clone(),
                quota,
                throttled: counts.throttled,
                throttled_ns: counts.throttled_ns,
                command: hierarchy
                    .zip(doubled)
                    .and_then(|(hierarchy, quota)| hierarchy.command(group, quota)),
                processes: self.processes.iter().filter(is_in_it).map(|(process, _)| *process).collect(),
            }
        };
        let mut groups: Vec<ThrottledGroup> =
            self.sum.groups.iter().filter(was_throttled).map(described).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.throttled_ns));
        groups
    }
}

/// Sockets that were not there before began with zero.
fn add_growth(
    sums: &mut BTreeMap<SocketAtPort, u64>,
    after: &BTreeMap<SocketAtPort, u64>,
    before: &BTreeMap<SocketAtPort, u64>,
) {
    for (socket, drops) in after {
        let earlier = before.get(socket).copied().unwrap_or(0);
        *sums.entry(*socket).or_default() += drops.saturating_sub(earlier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::cpu_quota::QuotaCounts;

    #[test]
    fn names_are_unique_and_losses_come_first() {
        let names: BTreeSet<&str> = KERNEL_COUNTERS.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), KERNEL_COUNTERS.len());
        assert!(KERNEL_COUNTERS.is_sorted_by_key(|counter| !counter.is_loss));
    }

    #[test]
    fn a_part_of_an_observation_has_its_own_growth() {
        let count =
            |counter, subject: &str, amount| KernelCount { counter, subject: subject.to_owned(), amount };
        let group = |throttled, throttled_ns| ThrottledGroup {
            group: "/a".to_owned(),
            quota: None,
            throttled,
            throttled_ns,
            command: None,
            processes: Vec::new(),
        };
        let report = |counts, throttled| CounterReport { counts, throttled, threads_throttled_ns: 0 };
        let early = report(vec![count(&UDP_DROPS, "port 1", 3), count(&STEAL, "", 9)], vec![group(4, 70)]);
        let late = report(
            vec![count(&UDP_DROPS, "port 1", 3), count(&UDP_DROPS, "port 2", 5), count(&STEAL, "", 10)],
            vec![group(5, 100)],
        );
        let grown = late.since(&early);
        assert_eq!(grown.counts, [count(&UDP_DROPS, "port 2", 5), count(&STEAL, "", 1)]);
        assert_eq!(grown.throttled, [group(1, 30)]);
        assert_eq!(late.since(&late), CounterReport::default());
    }

    #[test]
    fn only_what_grew_while_it_counted_is_reported() {
        let mut watch = CounterWatch::new(&BTreeSet::from([80]));
        let [old, new] = [1, 2].map(|inode| SocketAtPort { port: 80, inode });
        let network = |drops: &[(SocketAtPort, u64)]| NetworkCounts {
            udp_drops: drops.iter().copied().collect(),
            ..NetworkCounts::default()
        };
        let mut sums = BTreeMap::new();
        for (before, after) in [(&[(old, 5)][..], &[(old, 7), (new, 3)][..]), (&[(old, 9)], &[(old, 9)])] {
            add_growth(&mut sums, &network(after).udp_drops, &network(before).udp_drops);
        }
        assert_eq!(sums, BTreeMap::from([(old, 2), (new, 3)]));
        watch.processes.insert(7, BTreeSet::from(["/a".to_owned(), "/".to_owned()]));
        watch.sum.groups.insert("/a".to_owned(), QuotaCounts { throttled: 3, throttled_ns: 50 });
        watch.sum.groups.insert("/".to_owned(), QuotaCounts::default());
        let report = watch.report();
        assert_eq!(report.total(&QUOTA_THROTTLED_TIME), 50);
        assert_eq!(report.throttled.len(), 1);
        assert_eq!(
            (report.throttled[0].group.as_str(), &report.throttled[0].processes[..]),
            ("/a", &[7][..])
        );
        assert_eq!(report.losses().count(), 0);
    }
}
