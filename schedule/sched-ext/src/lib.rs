//! Schedules threads by the age of the request that they work for: Oldest Request First in the kernel, by
//! sched_ext, for threads that their application does not control.
//!
//! The scheduler is a BPF program (`bpf/oldest_first.bpf.c`, compiled in the tree). [`KernelScheduler`]
//! attaches it to the kernel and detaches it. The kernel itself detaches it when the process ends in any
//! way, and when a thread has waited for longer than the watchdog's timeout; its own scheduler then takes
//! the threads back. Programs declare the request of a thread by [`sched_hint`]. `choice` is the rule
//! as a pure function; [`replay`] and, with one queue for all CPUs, [`shared_replay`] check the kernel's
//! choices against it.
//!
//! The scheduler has one of three sets of threads. It may have all threads of the machine except
//! real-time and deadline threads. It may have those of a [`CpuPartition`], which has no ordinary
//! threads, because these would starve them. Or, since Linux 7.3, it may have those of a
//! [`ControlGroup`], below a scheduler for all others. That is the one already attached, if it permits
//! this, or one of fair shares (`bpf/fair_root.bpf.c`), attached and detached together with it.

mod account;
mod attach;
mod choice;
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
pub use probe::state;
pub use settings::{DEFAULT_WATCHDOG, OldestFirstSettings, QueueLayout};
pub use shared::{CpuStatistics, SchedulerControl};
