//! The limit that is chosen from measured service times, against fixed ones: two tiers in a row, simulated.
//!
//! `cargo bench -p tailwright-schedule --bench auto_limit`

#[path = "../tests/auto_limit/tiers.rs"]
mod tiers;

use tiers::{LOADS, MULTIPLES, SimulatedTiers, laws};

/// Requests of one run.
const REQUESTS: u64 = 60_000;
/// Runs of which percentiles are averaged.
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() {
    for workers in [1u32, 3] {
        println!("{workers} workers per tier: p99 in ms; limits as multiples of the workers");
        print!("{:>12} {:>5}", "law", "load");
        MULTIPLES
            .iter()
            .for_each(|multiple| print!(" {:>7}", multiple.map_or("none".to_owned(), |c| c.to_string())));
        println!();
        for (name, law) in laws() {
            for load in LOADS {
                let tiers = SimulatedTiers { law: &law, workers, load, requests: REQUESTS };
                print!("{name:>12} {load:>5}");
                for multiple in MULTIPLES {
                    let limit = multiple.map(|multiple| multiple * workers);
                    let mean =
                        SEEDS.iter().map(|seed| tiers.p99(limit, *seed)).sum::<f64>() / SEEDS.len() as f64;
                    print!(" {:>7.1}", 1e3 * mean);
                }
                println!();
            }
        }
    }
}
