//! What this machine has and can do: programs, threads on its CPUs, real-time priority, clocks, users,
//! network namespaces, their counters and virtual networks of them, CPU quotas, pressure, programs in the kernel, files that appear whole, folders of one process.
//!
//! Thin layers over the kernel, without unsafe code but for two system calls in [`scheduling`], a look
//! before `main` in [`standard_output`], and what [`bpf`] says. What is missing (no root,
//! an old kernel) is an error that says what to do; whether it matters is for the caller to decide.

pub mod affinity;
pub mod bpf;
pub mod clock;
pub mod cpu_quota;
pub mod cpu_time;
pub mod folder_lock;
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
