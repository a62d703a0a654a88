//! Time slices of the kernel's scheduler, as parameters of the simulator.

use machine::scheduling;
use units::Nanos;

/// Default base slice of EEVDF on two CPUs, for kernels that do not report a thread's slice (before Linux
/// 6.12): 0.7 ms times 1 + log2 of the CPUs.
const BASE_SLICE_NS: u64 = 1_400_000;
/// Default slice of SCHED_RR.
const ROUND_ROBIN_MS: u64 = 100;

/// Slices of the scheduling classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSlices {
    /// Slice of ordinary threads. On kernels without high-resolution ticks it lasts until the next tick.
    pub fair: Nanos,
    /// Slice of threads under SCHED_RR.
    pub round_robin: Nanos,
}

impl KernelSlices {
    /// Returns the slices of this machine; Linux's defaults if the kernel does not report them.
    pub(crate) fn read() -> Self {
        let told = scheduling::scheduling(scheduling::own_thread())
            .ok()
            .map(|own| own.slice_ns)
            .filter(|slice| *slice > 0);
        let milliseconds = number("/proc/sys/kernel/sched_rr_timeslice_ms").unwrap_or(ROUND_ROBIN_MS);
        Self {
            fair: Nanos(told.unwrap_or(BASE_SLICE_NS)),
            round_robin: Nanos(milliseconds.max(1) * 1_000_000),
        }
    }
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_between_a_microsecond_and_a_second() {
        let here = KernelSlices::read();
        for slice in [here.fair, here.round_robin] {
            assert!((Nanos(1_000)..=Nanos(1_000_000_000)).contains(&slice), "{here:?}");
        }
    }
}
