//! The limit that is chosen from measured service times, against fixed ones: two tiers in a row, simulated.
//!
//! `cargo bench -p tailwright-schedule --bench auto_limit`

#[path = "../tests/auto_limit/tiers.rs"]
mod tiers;

use arrivals::{DistributionFamily, TimeDistribution};
use tiers::{LOADS, MULTIPLES, SimulatedTiers, chosen_limit, laws};
use units::Seconds;

/// Requests of one run.
const REQUESTS: u64 = 60_000;
/// Runs of which percentiles are averaged.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Requests that are measured before the limit is chosen.
const MEASURED: u64 = 10_000;

fn mean_p99(tiers: SimulatedTiers<'_>, limit: Option<u32>) -> f64 {
    SEEDS.iter().map(|seed| tiers.p99(limit, *seed)).sum::<f64>() / SEEDS.len() as f64
}

/// Laws between light and heavy tails.
fn others() -> Vec<(&'static str, TimeDistribution)> {
    let log_normal = |c2| DistributionFamily::LogNormal { mean: Seconds(0.01), c2 };
    let rare = DistributionFamily::Points(vec![(0.99, Seconds(0.005)), (0.01, Seconds(0.5))]);
    let two_phases = DistributionFamily::Hyperexponential { mean: Seconds(0.01), c2: 8.0 };
    [
        ("lnorm 2", log_normal(2.0)),
        ("lnorm 5", log_normal(5.0)),
        ("lnorm 10", log_normal(10.0)),
        ("hyperexp 8", two_phases),
        ("rare long", rare),
    ]
    .into_iter()
    .map(|(name, family)| (name, TimeDistribution::new(family).expect("parameters within their ranges")))
    .collect()
}

fn main() {
    for workers in [1u32, 3] {
        println!("{workers} workers per tier: p99 in ms; limits as multiples of the workers");
        print!("{:>12} {:>5}", "law", "load");
        MULTIPLES
            .iter()
            .for_each(|multiple| print!(" {:>7}", multiple.map_or("none".to_owned(), |c| c.to_string())));
        println!(" {:>8} {:>6} {:>7}", "chosen", "c", "÷ best");
        for (name, law) in laws().into_iter().chain(others()) {
            for load in LOADS {
                let tiers = SimulatedTiers { law: &law, workers, load, requests: REQUESTS };
                print!("{name:>12} {load:>5}");
                let mut best = f64::INFINITY;
                for multiple in MULTIPLES {
                    let p99 = mean_p99(tiers, multiple.map(|multiple| multiple * workers));
                    best = best.min(p99);
                    print!(" {:>7.1}", 1e3 * p99);
                }
                let limit = chosen_limit(&law, workers, 9, MEASURED);
                let chosen = mean_p99(tiers, limit);
                let limit = limit.map_or("none".to_owned(), |c| c.to_string());
                println!(" {:>8.1} {limit:>6} {:>7.2}", 1e3 * chosen, chosen / best);
            }
        }
    }
}
