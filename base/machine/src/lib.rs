//! Facilities of the local machine: programs, threads on its CPUs, real-time priority, clocks, users, network
//! namespaces, their counters and virtual networks of them, names and devices, CPU quotas, pressure, programs in the kernel,
//! files that appear whole, folders locked by one process.
//!
//! Thin layers over the kernel. Unsafe code is limited to two system calls in [`scheduling`], a check before
//! `main` in [`standard_output`], and [`bpf`]. A missing facility (no root, an old kernel) is an error that
//! says how to get it; its importance is the caller's to decide.

pub mod affinity;
pub mod bpf;
pub mod clock;
pub mod cpu_quota;
pub mod cpu_time;
pub mod folder_lock;
pub mod identity;
pub mod listening;
pub mod netns;
pub mod network_counts;
pub mod offspring;
pub mod parallel;
pub mod pressure;
pub mod programs;
pub mod realtime;
pub mod scheduling;
mod standard_output;
pub mod terminal;
pub mod thread_state;
pub mod user;
pub mod virtual_network;
pub mod whole_file;

pub use standard_output::{has_output_reader, standard_output};
