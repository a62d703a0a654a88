//! The pool against its slow twin, against the simulator's discipline, and what its header promises.

use super::reference::ListedPool;
use super::*;
use crate::serve::{
    Assignment, Discipline, LimitedSharing, LimitedSharingParameters, PoolEntrance, QueueItem,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A step of a pool. Numbers select among the present requests.
#[derive(Debug, Clone)]
enum Step {
    Enter(RequestKey),
    Leave(usize),
    Block(usize),
    Unblock(usize),
    Limit(u32),
    /// A look with this many CPUs, which finds the watched requests asleep whose bit is set.
    Look(u32, u64),
    Forbid,
    Wake,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..50).prop_map(|entered| Step::Enter(RequestKey(entered))),
        2 => (0u64..50, 0u64..50).prop_map(|(entered, slo)| Step::Enter(RequestKey::due(entered, slo))),
        4 => any::<usize>().prop_map(Step::Leave),
        2 => any::<usize>().prop_map(Step::Block),
        2 => any::<usize>().prop_map(Step::Unblock),
        1 => (0u32..5).prop_map(Step::Limit),
        3 => (1u32..4, any::<u64>()).prop_map(|(workers, bits)| Step::Look(workers, bits)),
        1 => Just(Step::Wake),
    ]
}

/// Steps with the time before each; a few end with the loss of displacement in between.
fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let ordinary = || proptest::collection::vec((0u64..6, step()), 0..60);
    (ordinary(), any::<bool>(), ordinary()).prop_map(|(mut first, forbids, second)| {
        first.extend(forbids.then_some((1, Step::Forbid)));
        first.extend(second);
        first
    })
}

fn rules() -> impl Strategy<Value = PoolRules> {
    let order = prop_oneof![3 => Just(PoolOrder::Age), 1 => Just(PoolOrder::Arrival)];
    let displacement = prop_oneof![Just(Displacement::Never), Just(Displacement::OfYoungest)];
    let patience = proptest::option::of(1u64..30);
    (0u32..5, order, displacement, patience).prop_map(|(limit, order, displacement, patience)| PoolRules {
        limit: NonZeroU32::new(limit),
        order,
        displacement,
        patience,
    })
}

/// A pool beside its twin, and what threads did that followed its actions. A step that fits no request lets time pass.
struct Both {
    pool: RequestPool,
    twin: ListedPool,
    /// The request of each name.
    names: BTreeMap<usize, PooledRequest>,
    running: BTreeSet<PooledRequest>,
    demoted: BTreeSet<PooledRequest>,
    now: u64,
    entered: usize,
}

impl Both {
    fn new(rules: PoolRules) -> Self {
        let running = BTreeSet::new();
        let demoted = BTreeSet::new();
        let pool = RequestPool::new(rules);
        let twin = ListedPool::new(rules);
        Self { pool, twin, names: BTreeMap::new(), running, demoted, now: 0, entered: 0 }
    }

    /// The one of these names that a number chooses.
    fn choose(&self, number: usize, is_fit: impl Fn(PoolPlace) -> bool) -> Option<usize> {
        let fit: Vec<usize> =
            self.names.keys().copied().filter(|name| self.twin.place(*name).is_some_and(&is_fit)).collect();
        (!fit.is_empty()).then(|| fit[number % fit.len()])
    }

    fn play(&mut self, step: &Step) {
        let now = self.now;
        let actions = &mut Vec::new();
        match *step {
            Step::Enter(key) => {
                let request = self.pool.enter(now, key, actions);
                self.twin.enter(now, self.entered, key);
                self.names.insert(self.entered, request);
                self.entered += 1;
            }
            Step::Leave(number) => {
                let Some(name) = self.choose(number, |_| true) else { return self.play(&Step::Wake) };
                let request = self.names.remove(&name).expect("it is there");
                self.running.remove(&request);
                self.demoted.remove(&request);
                self.pool.leave(now, request, actions);
                self.twin.leave(now, name);
            }
            Step::Block(number) => {
                let is_free = |place| place != PoolPlace::Blocked;
                let Some(name) = self.choose(number, is_free) else { return self.play(&Step::Wake) };
                self.running.remove(&self.names[&name]);
                self.demoted.remove(&self.names[&name]);
                self.pool.block(now, self.names[&name], actions);
                self.twin.put(now, name, PoolPlace::Blocked);
            }
            Step::Unblock(number) => {
                let blocked = self.choose(number, |place| place == PoolPlace::Blocked);
                let Some(name) = blocked else { return self.play(&Step::Wake) };
                self.pool.unblock(now, self.names[&name], actions);
                self.twin.put(now, name, PoolPlace::Waiting);
            }
            Step::Limit(limit) => {
                self.pool.set_limit(now, NonZeroU32::new(limit), actions);
                self.twin.rules.limit = NonZeroU32::new(limit);
                self.twin.settle(now);
            }
            Step::Look(workers, bits) => self.look(workers, bits, actions),
            Step::Forbid => {
                self.pool.forbid_displacement(now, actions);
                self.twin.forbid_displacement(now);
            }
            Step::Wake => {
                self.pool.wake(now, actions);
                self.twin.settle(now);
            }
        }
        self.carry_out(actions);
    }

    fn look(&mut self, workers: u32, bits: u64, actions: &mut Vec<PoolAction>) {
        let watched: BTreeSet<PooledRequest> = self.pool.watched().collect();
        let mut expected = self.twin.names(PoolPlace::Asleep);
        if self.pool.is_contended() {
            expected.extend(self.twin.names(PoolPlace::Serving));
        }
        assert_eq!(watched, expected.iter().map(|name| self.names[name]).collect());
        let sleeping = |name: &usize| (bits >> (name % 64)) & 1 == 1;
        let asleep: Vec<usize> = expected.into_iter().filter(sleeping).collect();
        let requests = asleep.iter().map(|name| self.names[name]).collect();
        self.pool.look(self.now, &requests, NonZeroU32::new(workers).expect("at least 1"), actions);
        self.twin.look(self.now, &asleep, workers as usize);
    }

    /// Applies the pool's actions to the threads. Each action must change something.
    fn carry_out(&mut self, actions: &[PoolAction]) {
        for action in actions {
            let is_new = match *action {
                PoolAction::Admit(request) => self.running.insert(request),
                PoolAction::Demote(request) => {
                    self.running.contains(&request) && self.demoted.insert(request)
                }
                PoolAction::Promote(request) => self.demoted.remove(&request),
            };
            assert!(is_new, "{action:?} changes something");
        }
    }

    fn check(&self) {
        for (name, request) in &self.names {
            let place = self.twin.place(*name);
            assert_eq!(self.pool.place(*request), place, "request {name}");
            let runs = !matches!(place, Some(PoolPlace::Waiting | PoolPlace::Blocked));
            assert_eq!(self.running.contains(request), runs, "request {name} runs");
            assert_eq!(self.demoted.contains(request), place == Some(PoolPlace::Demoted), "request {name}");
        }
        assert_eq!(self.pool.counts(), self.twin.counts());
        let counts = self.pool.counts();
        let limit = self.pool.rules().limit;
        let limit = limit.map_or(usize::MAX, |limit| limit.get() as usize);
        assert!(counts.waiting + counts.demoted == 0 || counts.serving >= limit, "a place is not used");
    }
}

proptest! {
    #[test]
    fn as_its_slow_twin(rules in rules(), steps in steps()) {
        let mut both = Both::new(rules);
        for (pause, step) in &steps {
            both.now += pause;
            both.play(step);
            both.check();
            if let Some(due) = both.pool.wake_at() {
                prop_assert!(due > both.now, "what is due has been done");
            }
        }
    }

    /// Nothing is due before the instant that it names, and something is then.
    #[test]
    fn time_alone_changes_something_when_it_says(rules in rules(), steps in steps()) {
        let mut both = Both::new(rules);
        steps.iter().for_each(|(pause, step)| {
            both.now += pause;
            both.play(step);
        });
        if let Some(due) = both.pool.wake_at() {
            let before = both.pool.counts();
            both.now = due - 1;
            both.play(&Step::Wake);
            prop_assert_eq!(both.pool.counts(), before);
            both.now = due;
            both.play(&Step::Wake);
            both.check();
            prop_assert_ne!(both.pool.counts(), before);
        }
    }

    /// For the same arrivals and departures the simulator's pool is the same set, independent of its
    /// slices.
    #[test]
    fn as_the_pool_of_the_simulator(
        workers in 1u32..4,
        more in 0u32..4,
        steps in proptest::collection::vec((0u8..4, any::<usize>(), 0u64..40), 1..120),
    ) {
        let limit = workers + more;
        let parameters = LimitedSharingParameters {
            entrance: PoolEntrance::Preempt, ..LimitedSharingParameters::oldest_first(limit, 1)
        };
        let mut simulated = Simulated::new(workers, parameters);
        let limit = NonZeroU32::new(limit);
        let order = PoolOrder::Age;
        let displacement = Displacement::OfYoungest;
        let mut pool = RequestPool::new(PoolRules { limit, order, displacement, patience: None });
        let mut requests = BTreeMap::new();
        let mut actions = Vec::new();
        for (now, (kind, number, key)) in (0u64..).zip(steps) {
            match kind {
                0 | 1 => {
                    let item = simulated.arrive(now, key);
                    requests.insert(item, pool.enter(now, RequestKey(key), &mut actions));
                }
                2 => {
                    if let Some(item) = simulated.depart(now, number) {
                        pool.leave(now, requests.remove(&item).expect("it entered"), &mut actions);
                    }
                }
                _ => simulated.expire(now, number),
            }
            let serving = requests.iter().filter(|(_, of)| pool.place(**of) == Some(PoolPlace::Serving));
            prop_assert_eq!(simulated.station.pool(), serving.map(|(item, _)| *item).collect());
        }
    }

    /// The k-th oldest of those waiting or demoted continues within ⌈k/c⌉ · patience, although no request
    /// ever finishes.
    #[test]
    fn nobody_starves(
        limit in 1u32..5,
        displacement in prop_oneof![Just(Displacement::Never), Just(Displacement::OfYoungest)],
        keys in proptest::collection::vec((0u64..1000, 0u64..30), 1..60),
        patience in 1u64..100,
    ) {
        let rules = PoolRules {
            limit: NonZeroU32::new(limit), order: PoolOrder::Age, displacement, patience: Some(patience),
        };
        let mut pool = RequestPool::new(rules);
        let mut actions = Vec::new();
        let mut now = 0;
        let mut entered = Vec::new();
        for (key, pause) in keys {
            now += pause;
            entered.push((key, pool.enter(now, RequestKey(key), &mut actions)));
        }
        entered.sort();
        let begin = now;
        let mut ready: Vec<PooledRequest> = entered.iter().map(|(_, request)| *request).collect();
        ready.retain(|request| matches!(pool.place(*request), Some(PoolPlace::Waiting | PoolPlace::Demoted)));
        let ranks: BTreeMap<PooledRequest, u64> = ready.iter().copied().zip(1..).collect();
        while let Some(due) = pool.wake_at() {
            prop_assert!(due <= now + patience, "nothing is due later than the patience");
            now = due;
            actions.clear();
            pool.wake(now, &mut actions);
            for action in &actions {
                if let PoolAction::Admit(request) | PoolAction::Promote(request) = action {
                    let rounds = ranks[request].div_ceil(u64::from(limit));
                    prop_assert!(now - begin <= rounds * patience, "rank {} of {}", ranks[request], limit);
                }
            }
        }
        prop_assert_eq!(pool.counts().waiting + pool.counts().demoted, 0);
    }
}

/// The simulator's discipline, with the item on each worker.
struct Simulated {
    station: LimitedSharing,
    workers: Vec<Option<u32>>,
    items: u32,
}

impl Simulated {
    fn new(workers: u32, parameters: LimitedSharingParameters) -> Self {
        let station = LimitedSharing::new(workers, parameters);
        Self { station, workers: vec![None; workers as usize], items: 0 }
    }

    fn follow(&mut self, assignments: &[Assignment]) {
        assignments.iter().for_each(|order| self.workers[order.worker as usize] = Some(order.item));
    }

    fn arrive(&mut self, now: u64, age: u64) -> u32 {
        let id = self.items;
        let mut assignments = Vec::new();
        self.items += 1;
        self.station.arrive(now, QueueItem { id, class: 0, age, size: 1, access: None }, &mut assignments);
        self.follow(&assignments);
        id
    }

    /// A busy worker that a number chooses.
    fn busy(&self, number: usize) -> Option<u32> {
        let busy: Vec<u32> = (0u32..)
            .zip(&self.workers)
            .filter(|(_, item)| item.is_some())
            .map(|(worker, _)| worker)
            .collect();
        (!busy.is_empty()).then(|| busy[number % busy.len()])
    }

    fn depart(&mut self, now: u64, number: usize) -> Option<u32> {
        let worker = self.busy(number)?;
        let item = self.workers[worker as usize].take();
        let mut assignments = Vec::new();
        self.station.depart(now, worker, &mut assignments);
        self.follow(&assignments);
        item
    }

    fn expire(&mut self, now: u64, number: usize) {
        if let Some(worker) = self.busy(number) {
            let mut assignments = Vec::new();
            self.station.expire(now, worker, &mut assignments);
            self.follow(&assignments);
        }
    }
}

fn admission_only(limit: u32) -> RequestPool {
    let limit = NonZeroU32::new(limit);
    let order = PoolOrder::Age;
    let displacement = Displacement::Never;
    RequestPool::new(PoolRules { limit, order, displacement, patience: None })
}

#[test]
fn with_one_place_it_is_first_come_first_served_by_key() {
    let mut pool = admission_only(1);
    let mut actions = Vec::new();
    let requests = [50, 10, 40, 10, 20].map(|key| pool.enter(0, RequestKey(key), &mut actions));
    let mut order = vec![0];
    for place in 0..5 {
        let next = actions.iter().find_map(|action| match action {
            PoolAction::Admit(request) => requests.iter().position(|of| of == request),
            _ => None,
        });
        order.extend(next.filter(|_| place > 0));
        actions.clear();
        pool.leave(0, requests[order[place]], &mut actions);
    }
    assert_eq!(order, [0, 1, 3, 4, 2], "the first came alone; of equal keys the first that came");
}

#[test]
fn without_a_limit_everybody_is_admitted() {
    let mut pool = admission_only(0);
    let mut actions = Vec::new();
    let requests = [3, 1, 2].map(|key| pool.enter(0, RequestKey(key), &mut actions));
    assert_eq!(actions, requests.map(PoolAction::Admit));
    assert_eq!(pool.counts(), PoolCounts { serving: 3, ..PoolCounts::default() });
}

#[test]
fn the_patience_counts_while_somebody_wants_to_go_on() {
    for limit in [1, 4] {
        let order = PoolOrder::Age;
        let displacement = Displacement::OfYoungest;
        let patience = Some(10);
        let limit = NonZeroU32::new(limit);
        let mut pool = RequestPool::new(PoolRules { limit, order, displacement, patience });
        let mut actions = Vec::new();
        let young = pool.enter(0, RequestKey(9), &mut actions);
        pool.enter(100, RequestKey(1), &mut actions);
        pool.set_limit(105, NonZeroU32::new(1), &mut actions);
        assert_eq!(
            pool.place(young),
            Some(PoolPlace::Demoted),
            "it ran alone, and then beside the older one"
        );
        assert_eq!(pool.wake_at(), Some(if limit == NonZeroU32::new(1) { 110 } else { 115 }));
    }
}

/// One CPU and c = 2: the first look that finds both asleep admits one, and only one.
#[test]
fn a_look_admits_one_more_while_all_sleep() {
    use PoolPlace::{Asleep, Serving, Waiting};
    let mut pool = admission_only(2);
    let mut actions = Vec::new();
    let requests = [1, 2, 3, 4].map(|key| pool.enter(0, RequestKey(key), &mut actions));
    let mut look = |pool: &mut RequestPool, asleep: &[usize]| {
        let asleep = asleep.iter().map(|index| requests[*index]).collect();
        pool.look(0, &asleep, NonZeroU32::MIN, &mut actions);
        requests.map(|request| pool.place(request).expect("it is there"))
    };
    assert_eq!(look(&mut pool, &[0]), [Serving, Serving, Waiting, Waiting], "one is awake");
    assert_eq!(look(&mut pool, &[0, 1]), [Serving, Asleep, Serving, Waiting]);
    assert_eq!(look(&mut pool, &[0, 1]), [Serving, Asleep, Serving, Waiting], "the new one is awake");
    assert_eq!(look(&mut pool, &[0, 1, 2]), [Serving, Asleep, Asleep, Serving]);
    assert_eq!(look(&mut pool, &[]), [Serving; 4], "who is awake counts, and who was admitted stays");
}

/// With displacement those too many step back once the sleepers are seen awake.
#[test]
fn who_wakes_up_displaces_the_youngest() {
    let order = PoolOrder::Age;
    let displacement = Displacement::OfYoungest;
    let limit = Some(NonZeroU32::MIN);
    let mut pool = RequestPool::new(PoolRules { limit, order, displacement, patience: None });
    let mut actions = Vec::new();
    let [old, young] = [1, 2].map(|key| pool.enter(0, RequestKey(key), &mut actions));
    pool.look(1, &[old].into(), NonZeroU32::MIN, &mut actions);
    assert_eq!(
        [old, young].map(|request| pool.place(request)),
        [PoolPlace::Asleep, PoolPlace::Serving].map(Some)
    );
    actions.clear();
    pool.look(2, &BTreeSet::new(), NonZeroU32::MIN, &mut actions);
    assert_eq!(actions, [PoolAction::Demote(young)], "the thread of the older one has gone on already");
    pool.leave(3, old, &mut actions);
    assert_eq!(pool.place(young), Some(PoolPlace::Serving));
}

#[test]
fn names_are_used_again() {
    let mut pool = admission_only(2);
    let mut actions = Vec::new();
    let first = pool.enter(0, RequestKey(1), &mut actions);
    pool.leave(0, first, &mut actions);
    assert_eq!(pool.place(first), None);
    assert_eq!(pool.enter(0, RequestKey(2), &mut actions), first);
}

#[test]
#[should_panic(expected = "it returns from a block")]
fn only_the_blocked_return() {
    let mut pool = admission_only(1);
    let mut actions = Vec::new();
    let request = pool.enter(0, RequestKey(1), &mut actions);
    pool.unblock(0, request, &mut actions);
}
