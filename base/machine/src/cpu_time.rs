//! CPU time of threads, processes and the whole machine, and time stolen by the hypervisor.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::BTreeSet;

/// Clock ticks of `/proc/stat` per second: USER_HZ, which is 100 on every architecture that Rust supports.
const TICK_NS: u64 = 10_000_000;

/// Returns the CPU time of the calling thread, nanoseconds.
pub fn of_thread() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the CPU time of all threads of this process, ended ones included, nanoseconds.
pub fn of_process() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanoseconds(time: Timespec) -> u64 {
    let positive = |value: i64| u64::try_from(value).expect("CPU time begins at zero");
    positive(time.tv_sec) * 1_000_000_000 + positive(time.tv_nsec)
}

/// Returns the sum of the busy times of these CPUs since boot, nanoseconds with a resolution of 10 ms;
/// `None` if the kernel does not report it.
pub fn busy(cpus: &BTreeSet<usize>) -> Option<u64> {
    busy_total(&std::fs::read_to_string("/proc/stat").ok()?, cpus)
}

fn busy_total(text: &str, cpus: &BTreeSet<usize>) -> Option<u64> {
    let mut busy_ns = 0;
    for cpu in cpus {
        busy_ns += time_of(text, &format!("cpu{cpu} "))?.busy_ns;
    }
    Some(busy_ns)
}

/// Time of all CPUs since boot, in nanoseconds with a resolution of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    /// Neither idle nor idle while waiting for I/O.
    pub busy_ns: u64,
    /// Idle, with or without waiting for I/O.
    pub idle_ns: u64,
}

impl MachineTime {
    /// Returns the busy share of the CPUs' time since an earlier reading, 0 to 1.
    pub fn busy_since(self, before: Self) -> f64 {
        let busy = self.busy_ns.saturating_sub(before.busy_ns) as f64;
        let idle = self.idle_ns.saturating_sub(before.idle_ns) as f64;
        if busy + idle > 0.0 { busy / (busy + idle) } else { 0.0 }
    }
}

/// Returns the busy and idle time of all CPUs; `None` if the kernel does not report it.
pub fn of_machine() -> Option<MachineTime> {
    time_of(&std::fs::read_to_string("/proc/stat").ok()?, "cpu ")
}

/// The line of this name: `cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`. All but idle and I/O wait is busy; guests
/// are within user.
fn time_of(text: &str, name: &str) -> Option<MachineTime> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut time = MachineTime { busy_ns: 0, idle_ns: 0 };
    for (index, field) in line.split_whitespace().take(8).enumerate() {
        let ns = field.parse::<u64>().ok()?.checked_mul(TICK_NS)?;
        let total = if matches!(index, 3 | 4) { &mut time.idle_ns } else { &mut time.busy_ns };
        *total = total.checked_add(ns)?;
    }
    Some(time)
}

/// Returns the steal time of all CPUs since boot, nanoseconds with a resolution of 10 ms; `None` if the
/// kernel does not report it.
pub fn stolen() -> Option<u64> {
    stolen_total(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`
fn stolen_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_whitespace().nth(7)?.parse::<u64>().ok()?.checked_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_all_cpus_is_stolen() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 70 1 1\n";
        assert_eq!(stolen_total(text), Some(80_000_000));
        assert_eq!(stolen_total("cpu  1 2 3\n"), None);
        assert_eq!(stolen_total("cpu0 1 1 1 1 1 1 1 70 1 1\n"), None);
        assert_eq!(stolen_total(&format!("cpu  1 2 3 4 5 6 7 {}\n", u64::MAX)), None);
    }

    #[test]
    fn all_but_idle_and_waiting_of_the_machine_is_busy() {
        let text = "cpu  1 2 3 1000 500 4 5 6 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let time = time_of(text, "cpu ").unwrap();
        assert_eq!(time, MachineTime { busy_ns: 21 * TICK_NS, idle_ns: 1500 * TICK_NS });
        let later = MachineTime { busy_ns: time.busy_ns + 3 * TICK_NS, idle_ns: time.idle_ns + TICK_NS };
        assert_eq!(later.busy_since(time), 0.75);
        assert_eq!(time.busy_since(time), 0.0);
        assert_eq!(time_of("cpu  1 x 3\n", "cpu "), None);
        assert_eq!(time_of("cpu0 1 1 1 1 1 1 1 1 1 1\n", "cpu "), None);
        assert_eq!(time_of(&format!("cpu  {}\n", u64::MAX), "cpu "), None);
    }

    #[test]
    fn idle_and_waiting_do_not_count() {
        let text = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 1000 500 4 5 6 7 8\ncpu10 1 0 0 0 0 0 0 0 0 0\ncpu1 2 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(busy_total(text, &BTreeSet::from([0])), Some(21 * TICK_NS));
        assert_eq!(busy_total(text, &BTreeSet::from([0, 1])), Some(23 * TICK_NS));
        assert_eq!(busy_total(text, &BTreeSet::from([2])), None);
        assert_eq!(busy_total("", &BTreeSet::from([0])), None);
    }

    #[test]
    fn a_thread_is_part_of_its_process() {
        // The process first: what the thread spends between the two readings counts for both.
        let process = of_process();
        let thread = of_thread();
        while of_thread() < thread + 2_000_000 {}
        assert!(of_process() >= process + 2_000_000);
    }
}
