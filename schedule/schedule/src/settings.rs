//! What a gate is told: how many requests run at once, in which order, and whether threads may be demoted.

use discipline::serve::PoolOrder;
use std::num::NonZeroU32;
use std::time::Duration;

/// How many requests run at once: c of TailClipper (§3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConcurrencyLimit {
    /// At most so many. With 1, first come, first served by key.
    Fixed(NonZeroU32),
    /// All that come: the kernel shares the CPUs among them.
    Unlimited,
    /// Chosen from how much the CPU time of requests varies, and the CPUs that the service has.
    Auto,
}

/// Whether an older request may take the CPU from a younger one that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatePreemption {
    /// It waits until one of those running is done: admission only.
    Never,
    /// The thread of the youngest becomes SCHED_IDLE until it is among the oldest again, where a thread of this process was
    /// seen to become an ordinary one again. Otherwise admission only, and the report says why.
    WhereProven,
}

/// How a gate is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSettings {
    /// How many requests run at once.
    pub limit: ConcurrencyLimit,
    /// Which ones: by key, or as they come here, for comparison.
    pub order: PoolOrder,
    /// Whether older requests take the CPU from younger ones.
    pub preemption: GatePreemption,
    /// The CPUs that the service has, at least 1.
    pub workers: NonZeroU32,
    /// How long a request that does not end keeps others waiting, or these keep a demoted one waiting, before it does not
    /// count any more; `None`: for ever. At least a nanosecond.
    pub patience: Option<Duration>,
    /// How often a thread looks, while somebody waits, which of those running sleep without having said so, and admits one
    /// more while CPUs have no work; `None`: nobody looks. At least 100 µs.
    pub sentinel: Option<Duration>,
}

impl Default for GateSettings {
    /// The oldest first with a limit by measurement, demotion where it is proven, all CPUs that this process may use, a
    /// patience of one second, and no sentinel.
    fn default() -> Self {
        let workers = std::thread::available_parallelism().ok();
        let workers = workers.and_then(|workers| NonZeroU32::try_from(workers).ok());
        Self {
            limit: ConcurrencyLimit::Auto,
            order: PoolOrder::Age,
            preemption: GatePreemption::WhereProven,
            workers: workers.unwrap_or(NonZeroU32::MIN),
            patience: Some(Duration::from_secs(1)),
            sentinel: None,
        }
    }
}

/// How a gate for tasks is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncGateSettings {
    /// How many requests run at once.
    pub limit: ConcurrencyLimit,
    /// Which ones: by key, or as they come here, for comparison.
    pub order: PoolOrder,
    /// The CPUs that the service has, at least 1; only [`ConcurrencyLimit::Auto`] looks at them.
    pub workers: NonZeroU32,
    /// How long a request that does not end keeps others waiting before it does not count any more; `None`: for ever. At
    /// least a nanosecond.
    pub patience: Option<Duration>,
    /// How many requests may wait for their first turn; of those too many the youngest are refused. `None`: any number.
    pub waiting_max: Option<usize>,
}

impl Default for AsyncGateSettings {
    /// The oldest first with a limit by measurement, all CPUs that this process may use, a patience of one second, and any
    /// number that waits.
    fn default() -> Self {
        let GateSettings { limit, order, workers, patience, .. } = GateSettings::default();
        Self { limit, order, workers, patience, waiting_max: None }
    }
}

/// A duration in nanoseconds, the largest number when it is longer than that.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
