//! Counters of the kernel as families of metrics: names, labels and units of both Prometheus outputs.

use observe::{
    ANSWER_RETRANSMITS, CounterReport, CounterUnit, KernelCounter, LISTEN_DROPS, LISTEN_OVERFLOWS,
    NAMESPACE_RETRANSMITS, QUOTA_THROTTLED_TIME, QUOTA_THROTTLES, SOFTNET_DROPS, SOFTNET_SQUEEZES, STEAL,
    UDP_DROPS,
};
use std::collections::BTreeMap;

/// The prefix of a subject that is a port.
const PORT: &str = "port ";

/// A counter as a family.
pub(super) struct CounterFamily {
    /// Name without the suffix of its unit and without `_total`.
    pub(super) name: &'static str,
    /// Description without a full stop.
    pub(super) help: &'static str,
    pub(super) label: Option<&'static str>,
    counter: &'static KernelCounter,
}

impl CounterFamily {
    /// Returns true for times, which are in seconds.
    pub(super) fn is_time(&self) -> bool {
        self.counter.unit == CounterUnit::Nanoseconds
    }
}

const fn family(
    name: &'static str,
    label: Option<&'static str>,
    counter: &'static KernelCounter,
    help: &'static str,
) -> CounterFamily {
    CounterFamily { name, help, label, counter }
}

/// All counters of the kernel that are read.
pub(super) static FAMILIES: [CounterFamily; 10] = [
    family(
        "tailwright_udp_drops",
        Some("port"),
        &UDP_DROPS,
        "Datagrams dropped because the receive buffer of the server's socket was full",
    ),
    family(
        "tailwright_listen_drops",
        Some("port"),
        &LISTEN_DROPS,
        "Connection attempts dropped at the server's listening socket",
    ),
    family(
        "tailwright_listen_overflows",
        None,
        &LISTEN_OVERFLOWS,
        "Connection attempts that found an accept queue full, in the network namespace of the server",
    ),
    family(
        "tailwright_answer_retransmits",
        None,
        &ANSWER_RETRANSMITS,
        "Segments of answers that the server's side sent again on observed connections",
    ),
    family(
        "tailwright_namespace_retransmits",
        None,
        &NAMESPACE_RETRANSMITS,
        "TCP segments sent again in the network namespace of the server",
    ),
    family(
        "tailwright_softnet_drops",
        None,
        &SOFTNET_DROPS,
        "Packets of the machine dropped because the backlog of their CPU was full",
    ),
    family(
        "tailwright_softnet_squeezes",
        None,
        &SOFTNET_SQUEEZES,
        "Rounds of receiving that ended with packets left, on the machine",
    ),
    family(
        "tailwright_cpu_quota_throttles",
        Some("group"),
        &QUOTA_THROTTLES,
        "Periods in which the CPU quota of a group of the server was used up",
    ),
    family(
        "tailwright_cpu_quota_throttled",
        Some("group"),
        &QUOTA_THROTTLED_TIME,
        "Time for which a group of the server was throttled by its CPU quota, summed over CPUs",
    ),
    family(
        "tailwright_steal",
        None,
        &STEAL,
        "CPU time that the hypervisor took from the CPUs of the machine",
    ),
];

/// Largest values seen of each counter. A namespace may turn out not to be the server's, and counters of
/// Prometheus must not fall.
#[derive(Debug, Clone)]
pub(super) struct GrownCounters {
    /// By the name of the counter and its subject.
    amounts: BTreeMap<(&'static str, String), u64>,
}

impl GrownCounters {
    /// Zeros for the machine and for these ports.
    pub(super) fn new<'a>(ports: impl IntoIterator<Item = &'a u16>) -> Self {
        let ports: Vec<String> = ports.into_iter().map(u16::to_string).collect();
        let mut amounts = BTreeMap::new();
        for row in &FAMILIES {
            match row.label {
                None => {
                    amounts.insert((row.counter.name, String::new()), 0);
                }
                Some("port") => {
                    amounts.extend(ports.iter().map(|port| ((row.counter.name, port.clone()), 0)));
                }
                Some(_) => {}
            }
        }
        Self { amounts }
    }

    /// Notes the growth since the observation began.
    pub(super) fn note(&mut self, report: &CounterReport) {
        for count in &report.counts {
            let subject = count.subject.strip_prefix(PORT).unwrap_or(&count.subject);
            let amount = self.amounts.entry((count.counter.name, subject.to_owned())).or_default();
            *amount = count.amount.max(*amount);
        }
    }

    /// Returns the values of a family by subject, in its unit.
    pub(super) fn series(&self, row: &CounterFamily) -> Vec<(String, f64)> {
        let scale = if row.is_time() { 1e9 } else { 1.0 };
        let of_family = self.amounts.iter().filter(|((name, _), _)| *name == row.counter.name);
        of_family.map(|((_, subject), amount)| (subject.clone(), *amount as f64 / scale)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::KERNEL_COUNTERS;

    #[test]
    fn every_counter_has_a_family_and_a_row_in_the_documentation() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let page = std::fs::read_to_string(page).expect("the documentation is beside the crates");
        for counter in KERNEL_COUNTERS {
            let row = FAMILIES.iter().find(|row| row.counter == counter);
            let row = row.unwrap_or_else(|| panic!("{} has no family", counter.name));
            let name = format!("`{}{}_total`", row.name, if row.is_time() { "_seconds" } else { "" });
            let line = page.lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("{name}"));
            let label = row.label.map_or("| |".to_owned(), |label| format!("| `{label}` |"));
            assert!(line.contains(&label), "{line}");
        }
    }
}
