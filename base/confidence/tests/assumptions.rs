//! Streams that are busy together are found, and those that are not are found as seldom as the level says.

mod support;

use confidence::{change_point, common_bursts};
use support::{PeriodLengths, blocks, pair};

const WINDOWS: usize = 1 << 12;
const LEVEL: f64 = 0.05;

/// Returns the number of repetitions in which a pair is found.
fn found(lengths: PeriodLengths, shared: f64, repetitions: u64) -> usize {
    let is_found = |seed: &u64| {
        let [a, b] = pair(lengths, WINDOWS, shared, *seed);
        common_bursts(&a, &b).p_value <= LEVEL
    };
    (0..repetitions).filter(is_found).count()
}

#[test]
fn independent_streams_are_found_as_seldom_as_the_level_says() {
    for lengths in [PeriodLengths::Exponential, PeriodLengths::Pareto(1.4)] {
        // 10 expected; more than 20 have a probability of 0.1 %.
        let count = found(lengths, 0.0, 200);
        assert!(count <= 20, "{lengths:?}: {count} of 200");
    }
}

#[test]
fn the_more_is_shared_the_more_is_found() {
    for lengths in [PeriodLengths::Exponential, PeriodLengths::Pareto(1.4)] {
        let [little, half] = [0.02, 0.5].map(|shared| found(lengths, shared, 40));
        assert!(half >= 38 && little <= half, "{lengths:?}: {little} and {half} of 40");
    }
}

#[test]
fn a_shift_in_time_hides_what_is_further_apart_than_the_longest_window() {
    let [a, _] = pair(PeriodLengths::Exponential, WINDOWS, 0.0, 1);
    let mut random = rand::SeedableRng::seed_from_u64(1);
    let mut work = support::on_off(PeriodLengths::Exponential, WINDOWS, &mut random);
    work.rotate_left(WINDOWS / 2);
    let found = common_bursts(&a, &confidence::WindowedSeries::new(&work));
    assert!(found.p_value > LEVEL, "{found:?}");
}

#[test]
fn a_change_is_found_and_none_where_none_is() {
    let share = |factor: f64| {
        let p_value = |seed| {
            change_point(&blocks(PeriodLengths::Exponential, 1 << 14, 32, factor, seed), 199, 1).p_value
        };
        (0..200).filter(|seed| p_value(*seed) <= LEVEL).count()
    };
    let none = share(1.0);
    let doubled = share(2.0);
    assert!(none <= 20 && doubled >= 190, "{none} and {doubled} of 200");
}
