//! The limit derived from measured service times, against the best fixed one, in simulation.

mod tiers;

use tiers::{LOADS, MULTIPLES, SimulatedTiers, chosen_limit, laws};

/// Number of requests measured before the limit is chosen.
const MEASURED: u64 = 4000;
/// Number of requests of one run.
const REQUESTS: u64 = 10_000;
/// Maximum ratio of the tail to that under the best fixed limit, which is unknown in advance.
const TOLERANCE: f64 = 1.2;

#[test]
fn the_tail_is_near_that_of_the_best_fixed_limit() {
    for workers in [1, 3] {
        for (name, law) in laws() {
            let chosen = chosen_limit(&law, workers, 7, MEASURED);
            assert_eq!(chosen.is_none(), name == "log-normal", "{name}: {chosen:?}");
            for load in LOADS {
                let tiers = SimulatedTiers { law: &law, workers, load, requests: REQUESTS };
                let p99 = tiers.p99(chosen, 1);
                let fixed = MULTIPLES.map(|multiple| tiers.p99(multiple.map(|c| c * workers), 1));
                let best = fixed.into_iter().fold(f64::INFINITY, f64::min);
                assert!(
                    p99 <= TOLERANCE * best,
                    "{name}, {workers} at {load}: {p99} with {chosen:?}, {fixed:?}"
                );
            }
        }
    }
}

/// The first limit is chosen from few requests, and a wrong one costs most under heavy tails.
#[test]
fn few_requests_suffice_to_see_a_heavy_tail() {
    let (_, log_normal) = &laws()[3];
    let wrong = (0..500).filter(|seed| chosen_limit(log_normal, 1, *seed, 256).is_some()).count();
    assert!(wrong <= 5, "{wrong} of 500");
}

/// Under heavy tails a small limit is far worse than none, and under light tails none is worse: the rule
/// must distinguish them.
#[test]
fn no_fixed_limit_suits_all() {
    let p99 = |law: usize, limit| {
        let (_, law) = &laws()[law];
        SimulatedTiers { law, workers: 1, load: 0.85, requests: REQUESTS }.p99(limit, 1)
    };
    assert!(p99(0, Some(1)) < 0.8 * p99(0, None), "exponential");
    assert!(p99(3, Some(1)) > 3.0 * p99(3, None), "log-normal");
}
