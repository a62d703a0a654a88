//! Deadlines in place of ages: the time for which a request can be overtaken, and equivalence to the
//! order of age.

use super::*;
use proptest::prelude::*;

/// A request of a class with this SLO, which comes so long after the one before.
type Arrival = (u64, usize);

/// Requests that never finish, at the pool in which they enter the system.
struct EndlessRequests {
    pool: RequestPool,
    now: u64,
    /// Each request with what orders it, in the order of arrival.
    entered: Vec<(RequestKey, PooledRequest)>,
    /// Requests that can no longer be overtaken, with the time by which each continues.
    bounded: Vec<(PooledRequest, u64)>,
}

impl EndlessRequests {
    fn new(limit: u32, displacement: Displacement, patience: u64) -> Self {
        let limit = NonZeroU32::new(limit);
        let rules = PoolRules { limit, order: PoolOrder::Age, displacement, patience: Some(patience) };
        Self { pool: RequestPool::new(rules), now: 0, entered: Vec::new(), bounded: Vec::new() }
    }

    fn is_ready(&self, request: PooledRequest) -> bool {
        matches!(self.pool.place(request), Some(PoolPlace::Waiting | PoolPlace::Demoted))
    }

    fn enter(&mut self, slo: u64) {
        let key = RequestKey::due(self.now, slo);
        let request = self.pool.enter(self.now, key, &mut Vec::new());
        self.entered.push((key, request));
    }

    /// Lets time pass until then, with everything that it changes, and holds each bound.
    fn pass_until(&mut self, until: u64) {
        while let Some(due) = self.pool.wake_at().filter(|due| *due <= until) {
            self.step_to(due);
        }
        self.step_to(until);
    }

    fn step_to(&mut self, instant: u64) {
        for (request, bound) in &self.bounded {
            assert!(instant <= *bound, "{request:?} waits at {instant}, bounded by {bound}");
        }
        self.now = instant;
        self.pool.wake(instant, &mut Vec::new());
        let mut bounded = std::mem::take(&mut self.bounded);
        bounded.retain(|(request, _)| self.is_ready(*request));
        self.bounded = bounded;
    }

    /// Notes that no request can overtake this one from now on: it continues within ⌈k/c⌉ patiences.
    fn bound(&mut self, index: usize) {
        let (key, request) = self.entered[index];
        if !self.is_ready(request) {
            return;
        }
        let before = self.entered[..=index].iter().filter(|(other, of)| *other <= key && self.is_ready(*of));
        let after = self.entered[index + 1..].iter().filter(|(other, of)| *other < key && self.is_ready(*of));
        let rank = (before.count() + after.count()) as u64;
        let PoolRules { limit, patience, .. } = self.pool.rules();
        let rounds = rank.div_ceil(u64::from(limit.expect("it has one").get()));
        self.bounded.push((request, self.now + rounds * patience.expect("it has one")));
    }
}

/// Events of endless requests; at one instant in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Enters(usize),
    IsOvertakenNoMore(usize),
}

fn displacements() -> impl Strategy<Value = Displacement> {
    prop_oneof![Just(Displacement::Never), Just(Displacement::OfYoungest)]
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    proptest::collection::vec((0u64..20, any::<usize>()), 1..60)
}

proptest! {
    /// A request of an SLO of D is not overtaken by requests that enter more than D − S after it, S being
    /// the shortest SLO. From then on the patience bounds its wait, although others enter for ever and
    /// none finishes.
    #[test]
    fn nobody_starves_behind_earlier_deadlines(
        limit in 1u32..5,
        displacement in displacements(),
        slos in proptest::collection::vec(1u64..200, 1..4),
        arrivals in arrivals(),
        patience in 1u64..100,
    ) {
        let shortest = *slos.iter().min().expect("there is one");
        let mut happenings = Vec::new();
        let mut at = 0;
        for (index, (gap, class)) in arrivals.iter().enumerate() {
            at += gap;
            happenings.push((at, Happening::Enters(index)));
            let extra = slos[class % slos.len()] - shortest;
            happenings.push((at + extra, Happening::IsOvertakenNoMore(index)));
        }
        happenings.sort_unstable();
        let mut requests = EndlessRequests::new(limit, displacement, patience);
        let mut settled: Vec<RequestKey> = Vec::new();
        for (instant, happening) in happenings {
            requests.pass_until(instant);
            match happening {
                Happening::Enters(index) => {
                    requests.enter(slos[arrivals[index].1 % slos.len()]);
                    let key = requests.entered[index].0;
                    prop_assert!(settled.iter().all(|earlier| *earlier <= key), "{key:?} overtakes");
                }
                Happening::IsOvertakenNoMore(index) => {
                    requests.bound(index);
                    settled.push(requests.entered[index].0);
                }
            }
        }
        while let Some(due) = requests.pool.wake_at() {
            requests.step_to(due);
        }
        prop_assert!(requests.bounded.is_empty(), "{:?}", requests.bounded);
    }

    /// If all requests have one SLO, the pool does the same by deadline as by age.
    #[test]
    fn with_one_slo_deadlines_are_ages(
        limit in 1u32..5,
        displacement in displacements(),
        steps in proptest::collection::vec((0u64..20, 0u64..1000, proptest::option::of(any::<usize>())), 1..60),
        slo in 1u64..1_000_000_000,
        patience in proptest::option::of(1u64..100),
    ) {
        let rules = PoolRules { limit: NonZeroU32::new(limit), order: PoolOrder::Age, displacement, patience };
        let play = |slo: u64| {
            let mut pool = RequestPool::new(rules);
            let mut actions = Vec::new();
            let mut now = 0;
            let mut inside = Vec::new();
            for (gap, entered, leaves) in &steps {
                now += gap;
                match leaves {
                    Some(number) if !inside.is_empty() => {
                        let gone = inside.swap_remove(number % inside.len());
                        pool.leave(now, gone, &mut actions);
                    }
                    _ => inside.push(pool.enter(now, RequestKey::due(*entered, slo), &mut actions)),
                }
            }
            actions
        };
        prop_assert_eq!(play(slo), play(0));
    }
}

/// The bound needs a longest SLO: a request without a deadline waits as long as others enter.
#[test]
fn without_a_longest_slo_a_request_is_overtaken_without_end() {
    let rules = PoolRules {
        limit: NonZeroU32::new(1),
        order: PoolOrder::Age,
        displacement: Displacement::Never,
        patience: None,
    };
    let mut pool = RequestPool::new(rules);
    let mut actions = Vec::new();
    let mut running = pool.enter(0, RequestKey::due(0, 10), &mut actions);
    let never_due = pool.enter(0, RequestKey::due(0, u64::MAX), &mut actions);
    for now in 1..1000 {
        let next = pool.enter(now, RequestKey::due(now, 10), &mut actions);
        pool.leave(now, running, &mut actions);
        running = next;
    }
    assert_eq!(pool.place(never_due), Some(PoolPlace::Waiting));
}
