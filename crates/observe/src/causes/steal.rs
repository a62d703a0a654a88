//! What the hypervisor takes from the CPUs of this machine, as the kernel adds it up.

use std::fs;

/// Clock ticks of `/proc/stat` are hundredths of a second on every architecture that Rust supports.
const TICK_NS: u64 = 10_000_000;

/// What the hypervisor has taken from all CPUs since boot, in nanoseconds; `None` where the kernel does not say.
pub(crate) fn stolen() -> Option<u64> {
    stolen_in(&fs::read_to_string("/proc/stat").ok()?)
}

/// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`
fn stolen_in(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    line.split_whitespace().nth(7)?.parse::<u64>().ok()?.checked_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eighth_number_of_all_cpus_counts() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 70 1 1\n";
        assert_eq!(stolen_in(text), Some(80_000_000));
        assert_eq!(stolen_in("cpu  1 2 3\n"), None);
        assert_eq!(stolen_in("cpu0 1 1 1 1 1 1 1 70 1 1\n"), None);
        assert_eq!(stolen_in(&format!("cpu  1 2 3 4 5 6 7 {}\n", u64::MAX)), None);
    }
}
