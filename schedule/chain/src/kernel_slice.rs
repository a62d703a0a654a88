//! For how long the kernel lets one of several threads run before the next has its turn, as the simulator must know it.

use machine::scheduling;
use units::Nanos;

/// The base slice of EEVDF on two CPUs unless somebody has changed it, where a thread is not told its own (before
/// Linux 6.12): 0.7 ms, times 1 + log2 of the CPUs.
const BASE_SLICE_NS: u64 = 1_400_000;
/// The slice of SCHED_RR unless somebody has changed it.
const ROUND_ROBIN_MS: u64 = 100;

/// Slices of the scheduling classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSlices {
    /// Of ordinary threads. Kernels without high-resolution ticks let it last until the next tick.
    pub fair: Nanos,
    /// Of threads under SCHED_RR.
    pub round_robin: Nanos,
}

impl KernelSlices {
    /// Those of this machine; the defaults of Linux where it does not say.
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
