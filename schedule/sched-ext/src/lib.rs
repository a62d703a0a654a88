//! Schedules threads by the age of the request that they work for: Oldest Request First in the kernel, by sched_ext, for
//! threads that their application does not control.
//!
//! The scheduler is a BPF program (`bpf/oldest_first.bpf.c`, compiled in the tree). [`KernelScheduler`] puts it into the kernel
//! and takes it out; the kernel does so as well when the process ends, whatever ends it, and when a thread has waited for
//! longer than the watchdog's time. Threads are the kernel's own again then. Programs say which request a thread works for by
//! [`sched_hint`]. [`choice`] is the rule as a pure function, by which [`replay`] and, with one queue
//! for all CPUs, [`shared_replay`] judge what the kernel did.
//!
//! All threads of the machine are switched that are not real-time or deadline threads; or those of a [`CpuPartition`]: ordinary
//! threads on its CPUs would starve them; or, since Linux 7.3, those of a [`ControlGroup`], under a scheduler that has all others:
//! the one that there is, if it lets it, or one of fair shares (`bpf/fair_root.bpf.c`), which comes and goes with it.

mod account;
mod attach;
pub mod choice;
mod complaint;
mod control_group;
mod kernel_types;
mod layout;
mod object;
mod partition;
mod pinned;
mod probe;
pub mod replay;
mod root;
mod settings;
mod shared;
pub mod shared_replay;

pub use attach::{AttachRequest, KernelScheduler, ScheduledThreads, SchedulerEnd};
pub use control_group::ControlGroup;
pub use partition::{CpuList, CpuPartition};
pub use probe::{is_supported, state};
pub use settings::{DEFAULT_WATCHDOG, OldestFirstSettings, QueueLayout};
pub use shared::{CpuStatistics, SchedulerControl};
