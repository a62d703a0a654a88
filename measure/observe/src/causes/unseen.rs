//! Causes of Table 1 of *Tales of the Tail* that are not told apart, or cannot be there on this machine, and why.

use std::fs;
use std::path::Path;

/// A cause that is no part of the shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenCause {
    /// The name of the cause.
    pub name: &'static str,
    /// Why it is not seen.
    pub why: String,
}

/// Looks at `/sys` and `/proc`.
pub fn unseen_causes() -> Vec<UnseenCause> {
    unseen_below(Path::new("/"))
}

fn unseen_below(root: &Path) -> Vec<UnseenCause> {
    let mut unseen = vec![UnseenCause { name: "NUMA", why: numa(&root.join("sys/devices/system/node")) }];
    let frequency = root.join("sys/devices/system/cpu/cpufreq");
    let has_policy = fs::read_dir(frequency).is_ok_and(|mut entries| entries.next().is_some());
    unseen.push(UnseenCause {
        name: "power saving: frequency",
        why: if has_policy {
            "work takes longer at a low frequency, and counts as work".to_owned()
        } else {
            "the frequency is not controlled by this kernel".to_owned()
        },
    });
    if let Some(why) = idle_states(&root.join("sys/devices/system/cpu")) {
        unseen.push(UnseenCause { name: "power saving: idle states", why });
    }
    if fs::read_to_string(root.join("proc/cpuinfo")).is_ok_and(|text| text.contains(" hypervisor ")) {
        unseen.push(UnseenCause {
            name: "steal",
            why: "what the hypervisor takes while a worker runs counts as work".to_owned(),
        });
    }
    unseen
}

fn numa(nodes: &Path) -> String {
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let names = fs::read_dir(nodes).into_iter().flatten().flatten();
    let count = names.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count();
    match count {
        0 | 1 => "the machine has one node".to_owned(),
        _ => "memory of another node takes longer, and counts as work".to_owned(),
    }
}

/// Why waking up idle CPUs shows nothing of them; nothing if it does.
fn idle_states(cpus: &Path) -> Option<String> {
    let has_states = fs::read_dir(cpus.join("cpu0/cpuidle")).is_ok_and(|mut states| states.next().is_some());
    (!has_states).then(|| "the kernel has none to choose from".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Vec<UnseenCause> {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("files are in folders")).expect("folders can be made");
            fs::write(path, text).expect("files can be written");
        }
        unseen_below(root.path())
    }

    #[test]
    fn a_plain_machine_and_a_large_one() {
        let plain = machine(&[("proc/cpuinfo", "flags : fpu hypervisor lm\n")]);
        let names: Vec<&str> = plain.iter().map(|unseen| unseen.name).collect();
        assert_eq!(names, ["NUMA", "power saving: frequency", "power saving: idle states", "steal"]);
        assert_eq!(plain[0].why, "the machine has one node");
        let large = machine(&[
            ("sys/devices/system/node/node0/cpulist", "0"),
            ("sys/devices/system/node/node1/cpulist", "1"),
            ("sys/devices/system/node/online", "0-1"),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave"),
            ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
        ]);
        let names: Vec<&str> = large.iter().map(|unseen| unseen.name).collect();
        assert_eq!(names, ["NUMA", "power saving: frequency"]);
        assert!(large.iter().all(|unseen| unseen.why.ends_with("counts as work")));
    }
}
