//! For how long the kernel lets one of several threads run before the next has its turn, as the simulator must know it.

use rustix::time::{ClockId, clock_getres};
use units::Nanos;

/// The base slice of EEVDF on two CPUs unless somebody has changed it: 0.7 ms, times 1 + log2 of the CPUs. On more CPUs it
/// is longer; only root may read it.
const BASE_SLICE_NS: u64 = 1_400_000;
/// The slice of SCHED_RR unless somebody has changed it.
const ROUND_ROBIN_MS: u64 = 100;

/// Slices of the scheduling classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelSlices {
    /// Of ordinary threads of equal weight: the base slice in whole ticks, because it ends with a tick.
    pub fair: Nanos,
    /// Of threads under SCHED_RR.
    pub round_robin: Nanos,
}

impl KernelSlices {
    /// Those of this machine; the defaults of Linux where it does not say.
    pub(crate) fn read() -> Self {
        let base = number("/sys/kernel/debug/sched/base_slice_ns").unwrap_or(BASE_SLICE_NS);
        let milliseconds = number("/proc/sys/kernel/sched_rr_timeslice_ms").unwrap_or(ROUND_ROBIN_MS);
        Self { fair: whole_ticks(base, tick_ns()), round_robin: Nanos(milliseconds.max(1) * 1_000_000) }
    }
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The time between two ticks: the resolution of the clocks that only ticks move.
fn tick_ns() -> u64 {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    u64::try_from(resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec).unwrap_or(0)
}

fn whole_ticks(time: u64, tick: u64) -> Nanos {
    Nanos(if tick == 0 { time } else { time.div_ceil(tick).max(1) * tick })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_whole_ticks() {
        assert_eq!(whole_ticks(2_800_000, 4_000_000), Nanos(4_000_000));
        assert_eq!(whole_ticks(2_800_000, 1_000_000), Nanos(3_000_000));
        assert_eq!(whole_ticks(0, 1_000_000), Nanos(1_000_000));
        assert_eq!(whole_ticks(5, 0), Nanos(5));
        let here = KernelSlices::read();
        assert!(here.fair >= Nanos(1_000_000) && here.round_robin >= Nanos(1_000_000), "{here:?}");
    }
}
