//! Packing better than first fit: several orders, then a local search that empties one server at a time.

use super::fleet::Fleet;
use super::slot::{Change, Slot};
use super::{Placement, Refusal, place_first_fit};
use crate::instance::Instance;
use crate::limits::Method;
use crate::lower_bound::sizes;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// In which order workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they arrive, first fit.
    Given,
    /// As they arrive, fast-first-fit: servers that look full at the rates in force are skipped.
    GivenFast,
    /// Whatever uses fewest servers: several orders, then a local search.
    Best,
}

/// How much work a search may do, in calls of the limit optimiser; the same effort gives the same plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort(pub u64);

impl Effort {
    /// A fraction of a second for dozens of workloads, seconds for a thousand.
    pub fn for_workloads(count: usize) -> Self {
        Self(300 + 10 * count as u64)
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Effort spent.
    pub spent: u64,
    /// Effort allowed.
    pub allowed: u64,
    /// Servers of the best placement so far.
    pub servers: usize,
}

/// Steps that a workload stays where a swap has put it.
const TABU: u64 = 40;
/// Attempts to empty a server without success before the search rests.
const ATTEMPTS: usize = 12;
/// Steps of one attempt, per workload in its pool at the start.
const STEPS_PER_WORKLOAD: u64 = 60;
/// Perturbations are the same in every run.
const SEED: u64 = 1;

/// Places every workload. A search ends when it reaches `goal` servers, for which a
/// [`lower_bound`](crate::lower_bound()) is the right number. `watch` is told of progress and may end the search early by returning false;
/// what was found by then is returned.
pub fn place(
    instance: &Instance,
    method: Method,
    order: Order,
    effort: Effort,
    goal: usize,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Placement {
    let given: Vec<usize> = (0..instance.workloads.len()).collect();
    if order != Order::Best {
        return place_first_fit(instance, method, &given, order == Order::GivenFast);
    }
    let sizes = sizes(instance);
    let key = |p: &Placement| (p.refused.len(), p.servers.len());
    let mut best: Option<Placement> = None;
    for order in orders(instance, &sizes) {
        let found = place_first_fit(instance, method, &order, false);
        let found = best.take().filter(|b| key(b) <= key(&found)).unwrap_or(found);
        let reached = found.refused.is_empty() && found.servers.len() <= goal;
        let progress = Progress { spent: 0, allowed: effort.0, servers: found.servers.len() };
        if reached || !watch(progress) {
            return found;
        }
        best = Some(found);
    }
    let best = best.expect("there is at least one order");
    Search::new(instance, method, sizes, effort, watch).improve(best, goal)
}

/// Orders worth trying: as given, by SLO, by size, by SLO and then size, by size over SLO.
fn orders(instance: &Instance, sizes: &[f64]) -> Vec<Vec<usize>> {
    let slo = |w: usize| instance.workloads[w].slo.latency.0;
    let sorted = |key: &dyn Fn(usize) -> (f64, f64)| {
        let mut order: Vec<usize> = (0..instance.workloads.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (key(a), key(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        order
    };
    vec![
        sorted(&|_| (0.0, 0.0)),
        sorted(&|w| (-sizes[w], 0.0)),
        sorted(&|w| (slo(w), -sizes[w])),
        sorted(&|w| (-slo(w), -sizes[w])),
        sorted(&|w| (-sizes[w] / slo(w).sqrt(), 0.0)),
    ]
}

struct Search<'a> {
    instance: &'a Instance,
    method: Method,
    sizes: Vec<f64>,
    effort: Effort,
    spent: u64,
    step: u64,
    /// Step until which a workload may not be moved again.
    tabu: Vec<u64>,
    random: StdRng,
    watch: &'a mut dyn FnMut(Progress) -> bool,
    stopped: bool,
}

impl<'a> Search<'a> {
    fn new(
        instance: &'a Instance,
        method: Method,
        sizes: Vec<f64>,
        effort: Effort,
        watch: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Self {
        Self {
            instance,
            method,
            sizes,
            effort,
            spent: 0,
            step: 0,
            tabu: vec![0; instance.workloads.len()],
            random: StdRng::seed_from_u64(SEED),
            watch,
            stopped: false,
        }
    }

    /// Finds room for whoever found no server left, or empties servers one after the other, until the
    /// goal, the effort or the ideas are exhausted.
    fn improve(mut self, placement: Placement, goal: usize) -> Placement {
        let (instance, method) = (self.instance, self.method);
        let mut refused = placement.refused;
        let mut best: Vec<Slot> = placement
            .servers
            .into_iter()
            .map(|s| Slot::of(instance, method, s.class, s.members).expect("a placement's servers hold"))
            .collect();
        let mut homeless: Vec<usize> =
            refused.extract_if(.., |r| r.alone.is_none()).map(|r| r.workload).collect();
        let mut failures = 0;
        while failures < ATTEMPTS && (best.len() > goal || !homeless.is_empty()) && !self.is_over(best.len())
        {
            let before = homeless.len();
            let (slots, left) = match before {
                0 => self.without_one_server(&best, failures),
                _ => self.fill(best.clone(), homeless.clone()),
            };
            if left.is_empty() || left.len() < before {
                (best, homeless, failures) = (slots, left, 0);
            } else {
                failures += 1;
            }
        }
        refused.extend(homeless.into_iter().map(|workload| Refusal { workload, alone: None }));
        refused.sort_by_key(|r| r.workload);
        Placement { servers: Fleet::of_slots(instance, method, best).into_servers(), refused }
    }

    fn is_over(&mut self, servers: usize) -> bool {
        let progress = Progress { spent: self.spent, allowed: self.effort.0, servers };
        self.stopped = self.stopped || self.spent >= self.effort.0 || !(self.watch)(progress);
        self.stopped
    }

    fn try_change(&mut self, slot: &mut Slot, change: Change) -> bool {
        self.spent += 1;
        slot.try_change(self.instance, self.method, change)
    }

    /// Dissolves one server and finds room for its workloads on the others.
    fn without_one_server(&mut self, slots: &[Slot], attempt: usize) -> (Vec<Slot>, Vec<usize>) {
        let mut slots = slots.to_vec();
        let victim = self.victim(&slots, attempt);
        let pool = slots.remove(victim).members;
        self.fill(slots, pool)
    }

    /// Places the pool on the servers, moving others as needed. Gives the servers and who is left at the
    /// moment when fewest were.
    fn fill(&mut self, mut slots: Vec<Slot>, mut pool: Vec<usize>) -> (Vec<Slot>, Vec<usize>) {
        let last_step = self.step + STEPS_PER_WORKLOAD * pool.len() as u64;
        let mut best = (slots.clone(), pool.clone());
        while let Some(workload) = self.take_largest(&mut pool) {
            self.step += 1;
            if self.step > last_step || slots.is_empty() || self.is_over(slots.len() + 1) {
                break;
            }
            if !self.insert(&mut slots, workload) && !self.swap(&mut slots, &mut pool, workload) {
                self.force(&mut slots, &mut pool, workload);
            }
            if pool.len() < best.1.len() {
                best = (slots.clone(), pool.clone());
            }
        }
        best
    }

    /// The emptiest server first, then the next ones.
    fn victim(&self, slots: &[Slot], attempt: usize) -> usize {
        let fullness = |slot: &Slot| slot.members.iter().map(|&w| self.sizes[w]).sum::<f64>();
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by(|&a, &b| fullness(&slots[a]).total_cmp(&fullness(&slots[b])));
        order[attempt % order.len()]
    }

    fn take_largest(&self, pool: &mut Vec<usize>) -> Option<usize> {
        let largest = (0..pool.len()).max_by(|&a, &b| self.sizes[pool[a]].total_cmp(&self.sizes[pool[b]]))?;
        Some(pool.swap_remove(largest))
    }

    /// Puts the workload on the fullest server that takes it.
    fn insert(&mut self, slots: &mut [Slot], workload: usize) -> bool {
        let change = Change { joins: workload, leave: &[] };
        let mut order: Vec<(f64, usize)> = Vec::new();
        for (number, slot) in slots.iter_mut().enumerate() {
            if !slot.is_hopeless(self.instance, change) {
                order.push((-slot.predict(self.instance, change), number));
            }
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().any(|(_, number)| self.try_change(&mut slots[number], change))
    }

    /// Exchanges the workload for a smaller one, the smallest possible.
    fn swap(&mut self, slots: &mut [Slot], pool: &mut Vec<usize>, workload: usize) -> bool {
        let mut candidates: Vec<(f64, usize, usize)> = Vec::new();
        for (number, slot) in slots.iter().enumerate() {
            for &out in &slot.members {
                if self.sizes[out] < self.sizes[workload] && self.tabu[out] <= self.step {
                    candidates.push((self.sizes[out], number, out));
                }
            }
        }
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, number, out) in candidates {
            let change = Change { joins: workload, leave: &[out] };
            let slot = &mut slots[number];
            if !slot.is_hopeless(self.instance, change) && self.try_change(slot, change) {
                self.tabu[workload] = self.step + TABU;
                pool.push(out);
                return true;
            }
        }
        false
    }

    /// Puts the workload on a random server and removes others from it until it fits. A class that the
    /// workload does not suit leaves it in the pool.
    fn force(&mut self, slots: &mut [Slot], pool: &mut Vec<usize>, workload: usize) {
        let slot = &mut slots[self.random.random_range(0..slots.len())];
        let mut leaving = slot.members.clone();
        leaving.shuffle(&mut self.random);
        for count in 1..=leaving.len() {
            let change = Change { joins: workload, leave: &leaving[..count] };
            if !slot.is_hopeless(self.instance, change) && self.try_change(slot, change) {
                pool.extend(&leaving[..count]);
                self.tabu[workload] = self.step + TABU;
                return;
            }
        }
        pool.push(workload);
    }
}
