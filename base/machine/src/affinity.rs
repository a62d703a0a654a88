//! Threads that stay on a CPU.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;

/// Keeps the calling thread on one CPU, counted from zero.
///
/// # Errors
/// When there is no such CPU, or this process may not use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        let message = format!("CPU {cpu}: expected 0 to {}", CpuSet::MAX_CPU - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(
            error.kind(),
            format!("CPU {cpu}: {error}; `nproc` and `taskset -p $$` show what there is"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{sched_getaffinity, sched_getcpu};

    #[test]
    fn a_pinned_thread_runs_there() {
        let allowed = sched_getaffinity(None).unwrap();
        for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
            pin(cpu).unwrap();
            assert_eq!(sched_getcpu(), cpu);
        }
        sched_setaffinity(None, &allowed).unwrap();
        for bad in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU] {
            assert!(pin(bad).unwrap_err().to_string().contains(&format!("CPU {bad}")));
        }
    }
}
