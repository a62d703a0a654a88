//! Simulated clusters in which no promise may be broken and no decision lost. A failing seed is replayed by
//! `cargo bench -p controller --bench simulation -- --seed N`.

mod burns;
mod simulated;

use simulated::mistake::Mistake;
use simulated::world::{Fault, WorldReport, play};
use std::collections::BTreeMap;
use std::thread;

/// Number of worlds played in every run of the tests.
const SEEDS: u64 = 150;
/// Number of worlds among which each mistake is sought.
const MISTAKE_SEEDS: u64 = 300;

fn replay(seed: u64) -> String {
    format!("cargo bench -p controller --bench simulation -- --seed {seed}")
}

/// Plays worlds on all CPUs.
fn play_all() -> Vec<WorldReport> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut reports = Vec::new();
    thread::scope(|scope| {
        let part = |first: u64| {
            (first..SEEDS).step_by(threads).map(|seed| play(seed, None, false)).collect::<Vec<_>>()
        };
        let players: Vec<_> = (0..threads as u64).map(|first| scope.spawn(move || part(first))).collect();
        for player in players {
            reports.extend(player.join().expect("a world that panics says so"));
        }
    });
    reports
}

#[test]
fn worlds_keep_every_promise_and_lose_no_decision() {
    let reports = play_all();
    let mut happened: BTreeMap<Fault, u64> = BTreeMap::new();
    for (fault, count) in reports.iter().flat_map(|report| &report.faults) {
        *happened.entry(*fault).or_default() += count;
    }
    let failed: Vec<_> = reports.iter().filter(|report| report.violation.is_some()).collect();
    for report in &failed {
        println!("{}\n    {}", replay(report.seed), report.violation.as_deref().unwrap_or_default());
    }
    assert!(failed.is_empty(), "{} of {SEEDS} worlds", failed.len());
    let missing: Vec<_> = Fault::ALL.iter().filter(|fault| !happened.contains_key(fault)).collect();
    assert!(missing.is_empty(), "faults that never happened: {missing:?}");
    let total = |of: fn(&WorldReport) -> u64| reports.iter().map(of).sum::<u64>();
    assert!(total(|report| report.promised) > SEEDS, "promises were made");
    assert!(total(|report| report.refused) > 0, "some requests were refused");
    assert!(total(|report| report.without_order) > 0, "some for want of an order");
    assert!(total(|report| report.counted) > SEEDS, "requests were counted");
    assert!(total(|report| report.curved) > SEEDS, "their burst curves were reported");
    assert!(total(|report| report.renewed) > 0, "promises were made larger");
    assert!(total(|report| report.given_back) > 0, "parts of promises were given back");
    assert!(total(|report| report.kept) > 0, "some renewals were refused");
}

#[test]
fn a_seed_is_a_world() {
    for seed in 0..2 {
        assert_eq!(play(seed, None, true).log, play(seed, None, true).log, "{}", replay(seed));
    }
}

#[test]
fn every_mistake_is_found() {
    thread::scope(|scope| {
        let find =
            |mistake| (0..MISTAKE_SEEDS).find(|seed| play(*seed, Some(mistake), false).violation.is_some());
        let searches = Mistake::ALL.map(|mistake| (mistake, scope.spawn(move || find(mistake))));
        for (mistake, search) in searches {
            let found = search.join().expect("a world that panics says so");
            println!("{mistake:?}: {found:?}");
            assert!(found.is_some(), "{mistake:?} was not found in {MISTAKE_SEEDS} worlds");
        }
    });
}
