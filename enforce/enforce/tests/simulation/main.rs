//! Simulated worlds with faults in which the proxy has to keep its promises. A failing seed is replayed
//! by `cargo bench -p enforce --bench simulation -- --seed N`.

mod simulated;

use simulated::attack::{Attack, REQUESTS};
use simulated::faults::FaultKind;
use simulated::run::{WorldReport, play, play_looped, play_pass_through};
use simulated::tamper::ProxyMistake;
use std::thread;

/// Number of worlds played in every run of the tests.
const SEEDS: u64 = 300;
/// Number of worlds among which each mistake is sought; the first that shows it ends the search.
const MISTAKE_SEEDS: u64 = 1200;

/// Plays worlds on all CPUs.
fn play_all(play_one: fn(u64) -> WorldReport) -> Vec<WorldReport> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut reports = Vec::new();
    thread::scope(|scope| {
        let part = |first: u64| (first..SEEDS).step_by(threads).map(play_one).collect::<Vec<_>>();
        let players: Vec<_> = (0..threads as u64).map(|first| scope.spawn(move || part(first))).collect();
        for player in players {
            reports.extend(player.join().expect("a world that panics says so"));
        }
    });
    reports
}

fn replay(seed: u64) -> String {
    format!("cargo bench -p enforce --bench simulation -- --seed {seed}")
}

#[test]
fn worlds_find_every_promise_kept() {
    let reports = play_all(|seed| play(seed, None, false));
    let mut happened = [0; FaultKind::ALL.len()];
    let mut answered = 0;
    for report in &reports {
        answered += report.answered;
        for (sum, count) in happened.iter_mut().zip(report.faults) {
            *sum += count;
        }
    }
    let failed: Vec<_> = reports.iter().filter(|report| !report.violations.is_empty()).collect();
    for report in &failed {
        println!("{}\n    {}", replay(report.seed), report.violations.join("\n    "));
    }
    assert!(
        failed.is_empty(),
        "{} of {SEEDS} worlds, the first by: {}",
        failed.len(),
        replay(failed[0].seed)
    );
    assert!(answered > 10 * SEEDS, "honest clients were served: {answered} answers");
    let missing: Vec<_> = FaultKind::ALL.iter().filter(|kind| happened[**kind as usize] == 0).collect();
    assert!(missing.is_empty(), "accidents that never happened: {missing:?}");
}

#[test]
fn worlds_with_loops_find_every_promise_kept() {
    let reports = play_all(|seed| play_looped(seed, None, false));
    let failed: Vec<_> = reports.iter().filter(|report| !report.violations.is_empty()).collect();
    for report in &failed {
        println!("{} --loops 1\n    {}", replay(report.seed), report.violations.join("\n    "));
    }
    assert!(failed.is_empty(), "{} of {SEEDS} worlds", failed.len());
}

#[test]
fn a_seed_is_a_world() {
    for seed in 0..4 {
        let first = play(seed, None, true);
        let second = play(seed, None, true);
        assert_eq!(first.log, second.log, "{}", replay(seed));
        assert_eq!((first.rounds, first.answered), (second.rounds, second.answered), "{}", replay(seed));
    }
}

/// Returns the first seed whose world exposes a mistake with the expected violation.
fn find(mistake: ProxyMistake) -> Option<u64> {
    let shows = |text: &String| {
        let told = text.split(" s: ").nth(1).unwrap_or("");
        mistake.shows_as().iter().any(|word| told.starts_with(word))
    };
    (0..MISTAKE_SEEDS).find(|seed| play(*seed, Some(mistake), false).violations.iter().any(shows))
}

#[test]
fn every_mistake_is_found() {
    thread::scope(|scope| {
        let searches = ProxyMistake::ALL.map(|mistake| (mistake, scope.spawn(move || find(mistake))));
        for (mistake, search) in searches {
            let found = search.join().expect("a world that panics says so");
            println!("{mistake:?}: {found:?}");
            assert!(found.is_some(), "{mistake:?} was not found in {MISTAKE_SEEDS} worlds");
        }
    });
}

#[test]
fn a_proxy_that_passes_everything_on_is_found() {
    let mut found = Vec::new();
    for seed in 0..SEEDS / 3 {
        found.extend(play_pass_through(seed).violations);
    }
    assert!(found.iter().any(|violation| violation.contains("outstanding:")), "{found:#?}");
}

/// Returns the 99th percentile of ascending latencies, microseconds.
fn p99_us(latencies: &[u64]) -> f64 {
    let Some(last) = latencies.len().checked_sub(1) else { return f64::INFINITY };
    latencies[last * 99 / 100] as f64 / 1e3
}

/// Longest wait for a request that the server never answers, simulated nanoseconds: the patience with it, and
/// two checks for it.
const UNANSWERED_MAX_NS: u64 = 50_000_000;

#[test]
fn what_is_never_answered_delays_others_once() {
    for seed in 0..4 {
        let report = Attack::Unanswered.play(seed, true);
        let longest = report.latencies.last().copied().unwrap_or(u64::MAX);
        println!("seed {seed}: {:.1} ms at most", longest as f64 / 1e6);
        assert!(report.violations.is_empty(), "seed {seed}: {:?}", report.violations);
        assert!(report.latencies.len() > REQUESTS as usize / 2, "seed {seed}: it was served");
        assert!(longest >= UNANSWERED_MAX_NS / 4, "seed {seed}: all places were taken once");
        assert!(longest <= UNANSWERED_MAX_NS, "seed {seed}: {longest} ns");
    }
}

/// Largest ratio of the 99th percentile beside an attack to the one alone.
const BESIDE_MAX: f64 = 3.0;

fn check_attack(attack: Attack, seed: u64) {
    let [alone, beside] = [false, true].map(|is_attacked| attack.play(seed, is_attacked));
    let [fast, slow] = [&alone, &beside].map(|report| p99_us(&report.latencies));
    println!("{attack:?}, seed {seed}: p99 {fast:.0} µs alone, {slow:.0} beside, {:.2}", slow / fast);
    for report in [&alone, &beside] {
        assert!(report.violations.is_empty(), "{attack:?}, seed {seed}: {:?}", report.violations);
        // Some of its requests have no answer.
        let count = report.latencies.len();
        assert!(count > REQUESTS as usize / 2, "{attack:?}, seed {seed}: it was not served: {count}");
    }
    assert!(slow <= BESIDE_MAX * fast, "{attack:?}, seed {seed}: p99 {fast} µs alone, {slow} beside");
}

#[test]
fn no_attack_keeps_the_highest_priority_waiting() {
    thread::scope(|scope| {
        for attack in Attack::ALL {
            scope.spawn(move || (0..2).for_each(|seed| check_attack(attack, seed)));
        }
    });
}
