//! Which rights this process lacks to observe.

use std::fs;

/// A capability as its name and its number in `linux/capability.h`.
struct Capability(&'static str, u32);

const SYS_ADMIN: Capability = Capability("CAP_SYS_ADMIN", 21);
const NEEDED: [Capability; 2] = [Capability("CAP_BPF", 39), Capability("CAP_PERFMON", 38)];

/// The names of the capabilities that observing takes and this process does not have; CAP_SYS_ADMIN stands for all.
/// Empty where the kernel does not tell.
pub fn missing_rights() -> Vec<&'static str> {
    fs::read_to_string("/proc/self/status").map(|status| missing_in(&status)).unwrap_or_default()
}

/// Whether this process may have the kernel measure the run time of programs.
pub fn may_measure_cost() -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| effective(&status).is_some_and(|set| has(set, &SYS_ADMIN)))
}

fn missing_in(status: &str) -> Vec<&'static str> {
    let Some(set) = effective(status) else { return Vec::new() };
    if has(set, &SYS_ADMIN) {
        return Vec::new();
    }
    NEEDED.iter().filter(|needed| !has(set, needed)).map(|Capability(name, _)| *name).collect()
}

fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn has(set: u64, Capability(_, number): &Capability) -> bool {
    set >> number & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::missing_in;

    #[test]
    fn each_capability_counts() {
        for (set, missing) in [
            ("000001ffffffffff", &[][..]),
            ("0000000000200000", &[]),
            ("000000c000000000", &[]),
            ("0000008000000000", &["CAP_PERFMON"]),
            ("0000004000000000", &["CAP_BPF"]),
            ("0000000000000000", &["CAP_BPF", "CAP_PERFMON"]),
        ] {
            assert_eq!(missing_in(&format!("Name:\tx\nCapEff:\t{set}\n")), missing, "{set}");
        }
        assert!(missing_in("Name:\tx\n").is_empty());
    }
}
