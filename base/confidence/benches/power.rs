//! Power and false alarms of the tests of assumptions: shares of seeded repetitions at a level of 5 %.
//! `REPETITIONS=n` sets the number of repetitions.

#[path = "../tests/support/mod.rs"]
mod support;

use confidence::{change_point, common_bursts, neighbour_correlation};
use support::{PeriodLengths, blocks, pair};

/// Windows of a series; as with ten minutes in windows of 146 ms.
const WINDOWS: usize = 1 << 12;
const LEVEL: f64 = 0.05;
const LENGTHS: [PeriodLengths; 3] =
    [PeriodLengths::Exponential, PeriodLengths::Pareto(1.6), PeriodLengths::Pareto(1.2)];

fn main() {
    let repetitions: u64 =
        std::env::var("REPETITIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    println!("{repetitions} repetitions, {WINDOWS} windows; periods {LENGTHS:?}");
    println!("share of work in common: pairs found");
    for shared in [0.0, 0.05, 0.1, 0.2, 0.5] {
        let found = LENGTHS.map(|lengths| share(repetitions, |seed| is_found(lengths, shared, seed)));
        println!("{shared:>8} {found:>8.3?}");
    }
    println!("factor of work in the last third: changes found, and not tested for long memory");
    for factor in [1.0, 1.5, 2.0, 3.0] {
        let changes =
            LENGTHS.map(|lengths| share(repetitions, |seed| change(lengths, factor, seed) == Some(true)));
        let untested =
            LENGTHS.map(|lengths| share(repetitions, |seed| change(lengths, factor, seed).is_none()));
        println!("{factor:>8} {changes:>8.3?} {untested:>8.3?}");
    }
}

fn share(repetitions: u64, is_true: impl Fn(u64) -> bool) -> f64 {
    (0..repetitions).filter(|seed| is_true(*seed)).count() as f64 / repetitions as f64
}

fn is_found(lengths: PeriodLengths, shared: f64, seed: u64) -> bool {
    let [a, b] = pair(lengths, WINDOWS, shared, seed);
    common_bursts(&a, &b).p_value <= LEVEL
}

/// Returns true if a change is found, by the procedure applied to traces; `None` if the memory is too
/// long to decide.
fn change(lengths: PeriodLengths, factor: f64, seed: u64) -> Option<bool> {
    [64, 32, 16].into_iter().find_map(|count| {
        let values = blocks(lengths, WINDOWS, count, factor, seed);
        let change = change_point(&values, 999, 1);
        let are_alike = neighbour_correlation(&values, change.at) > 1.645 / (count as f64).sqrt();
        (!are_alike).then_some(change.p_value <= LEVEL)
    })
}
