//! Nothing is allocated per event: four times as many requests allocate no more often than the first ones. A binary of
//! its own, because it counts for the whole process.

use discipline::Limit;
use discipline::enforce::{EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use discipline::serve::{
    DisciplineSpec, FairSchedulerParameters, FeedbackClass, FeedbackParameters, LimitedSharingParameters,
    QueueChoice,
};
use sim::engine::{
    MeasurementWindow, NetworkStation, QueueingNetwork, RequestDraft, RequestEntry, SimulationEngine,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is handed on to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn rules(over: OverLimit) -> DisciplineSpec {
    let limits = vec![Limit { rate: 600_000_000, burst: 5000 }, Limit { rate: 500_000_000, burst: 20_000 }];
    let flow = |class: u32| {
        let limits = limits.clone();
        (class, FlowRules { level: class, limits, over_limit: over, largest: None, shares_limits_of: None })
    };
    DisciplineSpec::Enforced(EnforcementRules {
        flows: [flow(0), flow(1)].into(),
        bounds: OutstandingBounds { requests: 2, bytes: 100_000 },
        lower_levels: OutstandingBounds { requests: 1, bytes: 100_000 },
        reserve: 1,
        ..EnforcementRules::none()
    })
}

fn kinds() -> Vec<DisciplineSpec> {
    let fair = FairSchedulerParameters {
        latency: 2000,
        min_granularity: 300,
        wakeup_granularity: Some(200),
        credit: 500,
    };
    let class = |slo| FeedbackClass { weight: 10, slo };
    vec![
        DisciplineSpec::Fifo,
        DisciplineSpec::Lifo,
        DisciplineSpec::RandomOrder,
        DisciplineSpec::OldestFirst,
        DisciplineSpec::PreemptiveOldestFirst,
        DisciplineSpec::Priority { levels: 3 },
        DisciplineSpec::PreemptivePriority { levels: 3 },
        DisciplineSpec::Deadline { allowed: vec![1000, 2000, 3000] },
        DisciplineSpec::PreemptiveDeadline { allowed: vec![1000, 2000, 3000] },
        DisciplineSpec::Proportional { weights: vec![1, 2, 3] },
        DisciplineSpec::Split(QueueChoice::Random),
        DisciplineSpec::Split(QueueChoice::Shortest),
        DisciplineSpec::Split(QueueChoice::TwoChoices),
        DisciplineSpec::Limited(LimitedSharingParameters::oldest_first(4, 400)),
        DisciplineSpec::Limited(LimitedSharingParameters::round_robin(400)),
        DisciplineSpec::Fair(fair),
        DisciplineSpec::Sharing { limit: None },
        DisciplineSpec::Sharing { limit: Some(3) },
        DisciplineSpec::WeightedSharing { limit: None, weights: vec![1, 2, 3] },
        DisciplineSpec::Feedback(FeedbackParameters::new(
            vec![class(Some(3000)), class(Some(9000)), class(None)],
            50_000,
        )),
        rules(OverLimit::Demote),
        rules(OverLimit::Queue),
    ]
}

/// Returns the allocations of a run: repeating arrivals in bursts of 1 to 8, so that the maximum occurs
/// early.
fn allocations(kind: &DisciplineSpec, requests: u64) -> u64 {
    let station = |name: &str| NetworkStation::new(name, 2, kind.clone());
    let network =
        QueueingNetwork { classes: 3, ..QueueingNetwork::chain(vec![station("first"), station("second")]) };
    let instants = (0u64..).flat_map(|burst| (0..1 + burst % 8).map(move |_| Nanos(burst * 4000)));
    let mut drawn = 0u64;
    let draw = move |draft: &mut RequestDraft<'_>| {
        drawn += 1;
        draft.class = u32::try_from(drawn % 3).unwrap_or(0);
        draft
            .demands
            .iter_mut()
            .zip([7, 11])
            .for_each(|(demand, prime)| *demand = Nanos(200 + drawn % prime * 200));
    };
    let engine = SimulationEngine::new(&network, vec![RequestEntry::open(instants, draw)], 1).unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let measures =
        engine.run(MeasurementWindow { warm_up: 0, ..MeasurementWindow::of_requests(requests) }).unwrap();
    let count = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(measures.events >= 3 * requests);
    count
}

#[test]
fn nothing_is_allocated_per_event() {
    for kind in kinds() {
        let few = allocations(&kind, 4000);
        let many = allocations(&kind, 16_000);
        // A queue may be longer than ever before late, once or twice; per event it would be tens of thousands.
        assert!(many <= few + 8, "{kind:?}: {few} allocations, then {many}");
    }
}
