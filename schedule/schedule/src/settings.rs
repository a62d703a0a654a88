//! Settings of a gate: concurrency limit, order of requests, and preemption of threads.

use discipline::serve::PoolOrder;
use std::num::NonZeroU32;
use std::time::Duration;

/// Number of requests that run concurrently: c in TailClipper (§3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConcurrencyLimit {
    /// At most this many. With 1, requests run to completion in order of their keys.
    Fixed(NonZeroU32),
    /// No limit: the kernel shares the CPUs among all requests.
    Unlimited,
    /// Derived from the variability of the requests' CPU time and the number of CPUs.
    Auto,
}

/// Policy for an older request that arrives while younger ones run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatePreemption {
    /// It waits until a running request completes: admission control only.
    Never,
    /// The youngest request's thread becomes SCHED_IDLE until that request is among the oldest again.
    /// Requires that a thread of this process has returned from SCHED_IDLE to its ordinary policy; otherwise
    /// the gate only controls admission and its report gives the reason.
    WhereProven,
}

/// Settings of a gate for threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSettings {
    /// Number of requests that run concurrently.
    pub limit: ConcurrencyLimit,
    /// Order of admission: by key, or by arrival at this gate for comparison.
    pub order: PoolOrder,
    /// Preemption of younger requests by older ones.
    pub preemption: GatePreemption,
    /// Number of CPUs that the service may use, at least 1.
    pub workers: NonZeroU32,
    /// Time after which a request that does not end no longer counts against the limit, and after which a
    /// demoted request is promoted although older ones still run. `None`: unlimited. At least 1 ns.
    pub patience: Option<Duration>,
    /// Interval at which a thread, while requests wait, looks for running requests that sleep without having
    /// announced it, and admits one more while CPUs are idle. `None`: no such thread. At least 100 µs.
    pub sentinel: Option<Duration>,
}

impl Default for GateSettings {
    /// Oldest first, automatic limit, demotion where proven, all CPUs available to this process, a patience
    /// of one second, no sentinel.
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

/// Settings of a gate for asynchronous tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncGateSettings {
    /// Number of requests that run concurrently.
    pub limit: ConcurrencyLimit,
    /// Order of admission: by key, or by arrival at this gate for comparison.
    pub order: PoolOrder,
    /// Number of CPUs that the service may use, at least 1; used only by [`ConcurrencyLimit::Auto`].
    pub workers: NonZeroU32,
    /// Time after which a request that does not end no longer counts against the limit. `None`: unlimited. At
    /// least 1 ns.
    pub patience: Option<Duration>,
    /// Maximum number of requests waiting for their first turn; beyond it the youngest are refused. `None`:
    /// unlimited.
    pub waiting_max: Option<usize>,
}

impl Default for AsyncGateSettings {
    /// Oldest first, automatic limit, all CPUs available to this process, a patience of one second, unlimited
    /// waiting requests.
    fn default() -> Self {
        let GateSettings { limit, order, workers, patience, .. } = GateSettings::default();
        Self { limit, order, workers, patience, waiting_max: None }
    }
}

/// Returns a duration in nanoseconds, saturating.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
