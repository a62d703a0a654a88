//! Layout of the memory that the scheduler shares, in words of 8 bytes. `bpf/layout.h` is the same in C,
//! and a test compares both.

/// `oldest` in the low half, `untagged_permille` in the high one.
pub(crate) const OLDEST_AND_SHARE: usize = 0;
pub(crate) const UNTAGGED_BURST_NS: usize = 1;
pub(crate) const SLICE_NS: usize = 2;
pub(crate) const PATIENCE_NS: usize = 3;
/// Number of running threads with a request in the low half, and half of the kernel's watchdog timeout in
/// the high half.
pub(crate) const RUNNING_AND_OVERDUE_MS: usize = 4;
pub(crate) const LOG_NEXT: usize = 6;
pub(crate) const EXIT_KIND: usize = 7;
pub(crate) const EXIT_REASON: std::ops::Range<usize> = 8..24;
pub(crate) const EXIT_MESSAGE: std::ops::Range<usize> = 24..56;
/// Size of `struct control` in words; the last word is only for the programs.
pub(crate) const CONTROL_WORDS: usize = 57;

/// Size of `struct cpu_state`, bytes.
pub(crate) const CPU_BYTES: u32 = 128;
/// Index of the first statistic in it.
pub(crate) const CPU_STATISTICS: usize = 7;

/// Maximum number of CPUs.
pub(crate) const CPUS_MAX: u32 = 1024;

/// Number of slots for threads, including the scheduler's own.
pub(crate) const SLOTS: u32 = 16_384;

/// Kernel functions that the programs call, by their numbers in `bpf/kernel.h`.
pub(crate) const KERNEL_FUNCTIONS: [&str; 25] = [
    "scx_bpf_create_dsq",
    "scx_bpf_dsq_insert",
    "scx_bpf_dsq_insert_vtime",
    "scx_bpf_dsq_move",
    "scx_bpf_dsq_move_to_local",
    "scx_bpf_dsq_nr_queued",
    "scx_bpf_kick_cpu",
    "scx_bpf_pick_idle_cpu",
    "scx_bpf_select_cpu_dfl",
    "scx_bpf_task_cpu",
    "bpf_cpumask_test_cpu",
    "bpf_iter_scx_dsq_new",
    "bpf_iter_scx_dsq_next",
    "bpf_iter_scx_dsq_destroy",
    "bpf_iter_num_new",
    "bpf_iter_num_next",
    "bpf_iter_num_destroy",
    "scx_bpf_kick_cid",
    "scx_bpf_task_cid",
    "scx_bpf_cid_to_cpu",
    "scx_bpf_cpu_to_cid",
    "__scx_bpf_dsq_insert_vtime",
    "scx_bpf_task_set_slice",
    "scx_bpf_sub_dispatch",
    "scx_bpf_sub_grant",
];

/// Number of the first such function in a call.
pub(crate) const KERNEL_FUNCTION_BASE: i32 = 0x10000;

/// Kernel constants that the programs use.
pub(crate) const KERNEL_CONSTANTS: [&str; 6] = [
    "SCX_DSQ_LOCAL",
    "SCX_ENQ_WAKEUP",
    "SCX_ENQ_PREEMPT",
    "SCX_KICK_IDLE",
    "SCX_KICK_PREEMPT",
    "SCX_TASK_QUEUED",
];

/// Constants that only the scheduler above a group's uses.
pub(crate) const ROOT_CONSTANTS: [&str; 2] = ["SCX_CAP_ENQ", "SCX_CAP_PREEMPT"];

/// Operations that the programs of a scheduler of the machine implement, by the kernel's names.
pub(crate) const OPERATIONS: &[&str] = &[
    "select_cpu",
    "enqueue",
    "dequeue",
    "dispatch",
    "tick",
    "running",
    "stopping",
    "disable",
    "exit_task",
    "init",
    "exit",
];

/// Operations of the scheduler of a group.
pub(crate) const GROUP_OPERATIONS: &[&str] = &[
    "select_cid",
    "enqueue",
    "dequeue",
    "dispatch",
    "tick",
    "running",
    "stopping",
    "update_idle",
    "disable",
    "exit_task",
    "init",
    "exit",
];

/// Operations of the scheduler above it.
pub(crate) const ROOT_OPERATIONS: &[&str] = &[
    "select_cid",
    "enqueue",
    "dispatch",
    "tick",
    "running",
    "stopping",
    "update_idle",
    "disable",
    "exit_task",
    "sub_attach",
    "sub_detach",
    "init",
    "exit",
];

/// Operation that may sleep.
pub(crate) const SLEEPING_OPERATION: &str = "init";

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_HEADER: &str = include_str!("../bpf/kernel.h");

    #[test]
    fn functions_have_the_numbers_of_the_header() {
        let mut listed = Vec::new();
        for line in KERNEL_HEADER.lines().filter(|line| line.contains("= KERNEL_FUNCTION(")) {
            let name = line.split("(*").nth(1).and_then(|rest| rest.split(')').next()).expect("a name");
            let number = line.rsplit("KERNEL_FUNCTION(").next().and_then(|rest| rest.split(')').next());
            assert_eq!(number.and_then(|number| number.parse().ok()), Some(listed.len()), "{line}");
            listed.push(name);
        }
        assert_eq!(listed, KERNEL_FUNCTIONS);
    }

    #[test]
    fn constants_are_those_of_the_header() {
        let declared = |line: &str| {
            line.strip_prefix("const volatile u64 ")
                .and_then(|name| name.strip_suffix(';'))
                .map(str::to_owned)
        };
        let listed: Vec<String> = KERNEL_HEADER.lines().filter_map(declared).collect();
        assert_eq!(listed, KERNEL_CONSTANTS);
    }
}
