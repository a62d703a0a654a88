//! Simulated worlds with faults in which the proxy has to keep its promises. A failing seed is replayed
//! by `cargo bench -p enforce --bench simulation -- --seed N`.

mod simulated;

use simulated::faults::FaultKind;
use simulated::run::{WorldReport, play, play_pass_through};
use simulated::tamper::ProxyMistake;
use std::thread;

/// Number of worlds played in every run of the tests.
const SEEDS: u64 = 300;

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
    (0..SEEDS).find(|seed| play(*seed, Some(mistake), false).violations.iter().any(shows))
}

#[test]
fn every_mistake_is_found() {
    thread::scope(|scope| {
        let searches = ProxyMistake::ALL.map(|mistake| (mistake, scope.spawn(move || find(mistake))));
        for (mistake, search) in searches {
            let found = search.join().expect("a world that panics says so");
            println!("{mistake:?}: {found:?}");
            assert!(found.is_some(), "{mistake:?} was not found in {SEEDS} worlds");
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
