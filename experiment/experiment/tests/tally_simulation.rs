//! Simulated experiments on a server with a queue, dependent latencies and a drifting load, judged like live
//! ones. A knob without effect "helps" at most at the test's level; an effective one is found in few rounds.

use experiment::{KnobVerdict, PeriodResult, ResourceUse, RoundTally, StatisticShift};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

const CONFIDENCE: f64 = 0.95;
const ROUNDS_MAX: usize = 20;
/// Requests counted in a period, and not counted after a switch; few, because there are many experiments.
const FEW: usize = 200;
const MANY: usize = 4000;

/// A queue with one worker (Lindley's recursion) whose load drifts as a random walk, with pauses now and then.
struct Server {
    random: StdRng,
    wait: f64,
    load: f64,
    requests: usize,
}

impl Server {
    fn new(seed: u64, requests: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let load = random.random_range(0.5..0.9);
        Self { random, wait: 0.0, load, requests }
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.random::<f64>()).ln()
    }

    /// A period in which service takes `factor` as long.
    fn period(&mut self, factor: f64) -> PeriodResult {
        self.load = (self.load + self.random.random_range(-0.05..0.05)).clamp(0.4, 0.95);
        for _ in 0..self.requests {
            self.request(factor);
        }
        let latencies = (0..self.requests).map(|_| self.request(factor)).collect();
        PeriodResult::of(latencies, 99.0, self.requests as f64 / self.load, ResourceUse::default())
            .expect("there are requests")
    }

    /// The latency of a request in nanoseconds.
    fn request(&mut self, factor: f64) -> u64 {
        let pause = if self.random.random_bool(0.002) { 20.0 } else { 0.0 };
        let service = factor * self.exponential() + pause;
        let latency = self.wait + service;
        self.wait = (latency - self.exponential() / self.load).max(0.0);
        // Microseconds.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let nanoseconds = (latency * 1000.0) as u64;
        nanoseconds
    }
}

/// An experiment with values that make service take so long; stops as soon as it can.
fn experiment(seed: u64, factors: &[f64], requests: usize) -> RoundTally {
    let mut server = Server::new(seed, requests);
    let mut tally = RoundTally::new(factors.len(), CONFIDENCE);
    while tally.rounds().len() < ROUNDS_MAX && !tally.is_decided() {
        let mut order: Vec<usize> = (0..=factors.len()).collect();
        order.shuffle(&mut server.random);
        let mut round = vec![None; factors.len() + 1];
        for arm in order {
            round[arm] = Some(server.period(if arm == 0 { 1.0 } else { factors[arm - 1] }));
        }
        tally.add(round.into_iter().flatten().collect());
    }
    tally
}

fn verdict(tally: &RoundTally, value: usize) -> KnobVerdict {
    tally.comparison(value).expect("there are rounds").verdict
}

/// 2000 experiments of up to 20 looks each: the level allows 100 that err, and bets that end early leave it some room. A test
/// that never errs would be one that never speaks.
#[test]
fn nothing_helps_at_most_as_often_as_its_level() {
    let decided = (0..2000).filter(|seed| experiment(*seed, &[1.0], FEW).is_decided()).count();
    assert!((20..=100).contains(&decided), "{decided} of 2000");
}

/// Any of three values that do nothing.
#[test]
fn several_values_share_the_level() {
    let errs = |seed: &u64| {
        let tally = experiment(*seed, &[1.0; 3], FEW);
        (0..3).any(|value| verdict(&tally, value) != KnobVerdict::NotShown)
    };
    let wrong = (0..700).filter(errs).count();
    assert!(wrong <= 35, "{wrong} of 700");
}

#[test]
fn what_helps_is_found_in_few_rounds_and_what_harms_too() {
    let mut found = 0;
    let mut rounds = 0;
    for seed in 0..100 {
        let tally = experiment(seed, &[0.5], MANY);
        found += usize::from(verdict(&tally, 0) == KnobVerdict::Helps);
        rounds += tally.rounds().len();
        assert_ne!(verdict(&tally, 0), KnobVerdict::Harms, "seed {seed}");
    }
    assert!(found >= 95 && rounds <= 1200, "{found} of 100, {rounds} rounds");
    let harmful =
        (0..20).filter(|seed| verdict(&experiment(*seed, &[1.5], MANY), 0) == KnobVerdict::Harms).count();
    assert!(harmful >= 15, "{harmful} of 20");
}

#[test]
fn each_of_several_values_has_its_verdict() {
    let verdicts = |seed: u64| {
        let tally = experiment(seed, &[0.4, 1.0], MANY);
        (verdict(&tally, 0), verdict(&tally, 1))
    };
    let right = (KnobVerdict::Helps, KnobVerdict::NotShown);
    let all: Vec<_> = (0..20).map(verdicts).collect();
    assert!(all.iter().filter(|verdicts| **verdicts == right).count() >= 17, "{all:?}");
}

#[test]
fn what_was_not_shown_comes_with_what_would_have_been_seen() {
    let tally = experiment(6, &[1.0], FEW);
    let comparison = tally.comparison(0).expect("there are rounds");
    assert_eq!((comparison.verdict, tally.rounds().len()), (KnobVerdict::NotShown, ROUNDS_MAX));
    let visible = comparison.visible_ns.expect("there are enough rounds");
    let StatisticShift { low, high, .. } = comparison.tested;
    assert!(low <= 0.0 && high >= 0.0 && visible > 0.0, "{comparison:?}");
    // A difference as large, added to every period with the knob on, is seen.
    let mut shifted = RoundTally::new(1, CONFIDENCE);
    for round in tally.rounds() {
        let mut round = round.clone();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let more = (2.0 * visible).ceil() as u64;
        round[1].tested_ns += more;
        shifted.add(round);
    }
    assert!(shifted.is_decided());
    assert!(!comparison.changes_load);
}

#[test]
fn a_change_of_the_load_is_told() {
    let used = ResourceUse { cpu_ns: Some(100), energy_uj: Some(3_000_000) };
    let period = |requests: usize| PeriodResult::of(vec![5; requests], 99.0, 1.0, used).expect("requests");
    let mut tally = RoundTally::new(1, CONFIDENCE);
    assert!(tally.comparison(0).is_none() && tally.needed() == 6);
    for round in 0..8 {
        tally.add(vec![period(1000 + round), period(700 - round)]);
    }
    let comparison = tally.comparison(0).expect("there are rounds");
    assert!(comparison.changes_load && comparison.verdict == KnobVerdict::NotShown, "{comparison:?}");
    assert!(tally.load_spread().is_some_and(|spread| spread < 0.01));
    assert!(comparison.cpu_per_request_ns.is_some_and(|cpu| cpu.on > cpu.off));
    let energy = comparison.energy_per_request_j.expect("it is known");
    assert!((0.0029..0.0031).contains(&energy.off) && energy.on > 0.004, "{energy:?}");
    assert!((energy.shift - (energy.on - energy.off)).abs() < 1e-4, "{energy:?}");
    assert!(energy.low > 0.001 && energy.high < 0.002, "{energy:?}");
}

/// A period without energy takes its round out of the comparison of energy, and of nothing else.
#[test]
fn energy_is_compared_in_the_rounds_in_which_it_is_known() {
    let period = |energy_uj: Option<u64>| {
        let used = ResourceUse { cpu_ns: Some(100), energy_uj };
        PeriodResult::of(vec![5; 10], 99.0, 1.0, used).expect("there are requests")
    };
    let mut whole = RoundTally::new(1, CONFIDENCE);
    let mut tally = RoundTally::new(1, CONFIDENCE);
    tally.add(vec![period(None), period(Some(900))]);
    let comparison = tally.comparison(0).expect("there is a round");
    assert!(comparison.energy_per_request_j.is_none() && comparison.cpu_per_request_ns.is_some());
    for round in 0..8 {
        let periods = vec![period(Some(10 + round)), period(Some(20 + 3 * round))];
        whole.add(periods.clone());
        tally.add(periods);
        tally.add(vec![period(Some(700)), period(None)]);
    }
    let energy =
        |tally: &RoundTally| tally.comparison(0).and_then(|comparison| comparison.energy_per_request_j);
    assert!(energy(&tally).is_some());
    assert_eq!(energy(&tally), energy(&whole));
}

/// Twelve rounds in which the knob helps decide; twenty with longer latencies, which other values took to be decided, turn
/// the estimate around and are no evidence for harm yet.
#[test]
fn the_verdict_has_the_side_of_the_evidence() {
    let period = |nanoseconds: u64| {
        PeriodResult::of(vec![nanoseconds], 99.0, 1.0, ResourceUse::default()).expect("a request")
    };
    let mut tally = RoundTally::new(1, CONFIDENCE);
    (0..12).for_each(|round| tally.add(vec![period(1000), period(900 - round)]));
    assert_eq!(verdict(&tally, 0), KnobVerdict::Helps);
    (0..20).for_each(|_| tally.add(vec![period(1000), period(1500)]));
    let tested = tally.comparison(0).expect("there are rounds").tested;
    assert!(tested.shift > 0.0 && verdict(&tally, 0) == KnobVerdict::Helps, "{tested:?}");
}

/// Medians of arms may differ the other way around than periods of a round do.
#[test]
fn the_relative_difference_has_the_sign_of_the_difference() {
    let period = |nanoseconds: u64| {
        PeriodResult::of(vec![nanoseconds], 99.0, 1.0, ResourceUse::default()).expect("a request")
    };
    let mut tally = RoundTally::new(1, CONFIDENCE);
    for (off, on) in [(100, 80), (200, 180), (300, 280), (100, 240), (400, 250)] {
        tally.add(vec![period(off), period(on)]);
    }
    let tested = tally.comparison(0).expect("there are rounds").tested;
    assert!(tested.on > tested.off && tested.shift < 0.0, "{tested:?}");
    assert!(tested.relative.is_some_and(|share| share < 0.0));
    assert_eq!(tested.relative, tally.relative_shift(0));
}

/// A latency cannot fall by more than 100 %, not even if rounds with a long one fall most and the median
/// is short.
#[test]
fn no_latency_falls_by_more_than_all_of_it() {
    let period = |nanoseconds: u64| {
        PeriodResult::of(vec![nanoseconds], 99.0, 1.0, ResourceUse::default()).expect("a request")
    };
    let mut tally = RoundTally::new(1, CONFIDENCE);
    for (off, on) in [(700, 90), (5000, 100), (800, 95), (7000, 110), (750, 100), (9000, 90), (790, 80)] {
        tally.add(vec![period(off), period(on)]);
    }
    let compared = tally.comparison(0).expect("there are rounds");
    assert!(compared.tested.shift.abs() > compared.tested.off, "{:?}", compared.tested);
    for shift in [compared.tested, compared.mean_ns].iter().chain(&compared.percentiles_ns) {
        let relative = shift.relative.expect("all values are above zero");
        assert!((-1.0..-0.8).contains(&relative), "{shift:?}");
        assert!(shift.low <= shift.shift && shift.shift <= shift.high, "{shift:?}");
    }
}
