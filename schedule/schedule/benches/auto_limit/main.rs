//! The limit chosen from measured service times, against fixed limits: two tiers in a row, simulated.
//!
//! Its thresholds were chosen with the distributions of the first table. Those of the second were not
//! used then: they judge the rule. The last lines summarise both.
//!
//! `cargo bench -p tailwright-schedule --bench auto_limit`; with `-- held-out` only the second table,
//! with `-- --requests 15000` in less time.

mod held_out;
#[path = "../../tests/auto_limit/tiers.rs"]
mod tiers;

use arrivals::{DistributionFamily, TimeDistribution};
use tiers::{LOADS, MULTIPLES, SimulatedTiers, chosen_limit, laws};
use units::Seconds;

/// Default number of requests of one run.
const REQUESTS: u64 = 60_000;
/// Seeds of the runs whose percentiles are averaged.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Number of requests measured before the limit is chosen.
const MEASURED: u64 = 10_000;

fn mean_p99(tiers: SimulatedTiers<'_>, limit: Option<u32>) -> f64 {
    SEEDS.iter().map(|seed| tiers.p99(limit, *seed)).sum::<f64>() / SEEDS.len() as f64
}

/// Returns distributions between light and heavy tails.
fn others() -> Vec<(String, TimeDistribution)> {
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
    .map(|(name, family)| {
        (name.to_owned(), TimeDistribution::new(family).expect("parameters within their ranges"))
    })
    .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|argument| argument == "--requests");
    let requests =
        place.map_or(REQUESTS, |place| arguments[place + 1].parse().expect("a number of requests"));
    if !arguments.iter().any(|argument| argument == "held-out") {
        let laws = laws().into_iter().map(|(name, law)| (name.to_owned(), law));
        summary("fitted", &table("fitted", &laws.chain(others()).collect::<Vec<_>>(), requests));
    }
    summary("held out", &table("held out", &held_out::laws(), requests));
}

/// Prints and returns the ratios of the chosen limit to the best fixed one, and of no limit to it.
fn table(kind: &str, laws: &[(String, TimeDistribution)], requests: u64) -> Vec<[f64; 2]> {
    let mut ratios = Vec::new();
    for workers in [1u32, 3] {
        println!("{kind}, {workers} workers per tier: p99 in ms; limits as multiples of the workers");
        print!("{:>24} {:>5}", "law", "load");
        MULTIPLES
            .iter()
            .for_each(|multiple| print!(" {:>7}", multiple.map_or("none".to_owned(), |c| c.to_string())));
        println!(" {:>8} {:>6} {:>7}", "chosen", "c", "÷ best");
        for (name, law) in laws {
            for load in LOADS {
                print!("{name:>24} {load:>5}");
                ratios.push(row(SimulatedTiers { law, workers, load, requests }));
            }
        }
    }
    ratios
}

fn row(tiers: SimulatedTiers<'_>) -> [f64; 2] {
    let fixed = MULTIPLES.map(|multiple| {
        let p99 = mean_p99(tiers, multiple.map(|multiple| multiple * tiers.workers));
        print!(" {:>7.1}", 1e3 * p99);
        p99
    });
    let best = fixed.into_iter().fold(f64::INFINITY, f64::min);
    let limit = chosen_limit(tiers.law, tiers.workers, 9, MEASURED);
    let chosen = mean_p99(tiers, limit);
    let limit = limit.map_or("none".to_owned(), |c| c.to_string());
    println!(" {:>8.1} {limit:>6} {:>7.2}", 1e3 * chosen, chosen / best);
    [chosen / best, fixed[fixed.len() - 1] / best]
}

/// Prints the distances of the rule, and of no limit at all, from the best.
fn summary(kind: &str, ratios: &[[f64; 2]]) {
    let geometric_mean =
        |of: usize| (ratios.iter().map(|ratio| ratio[of].ln()).sum::<f64>() / ratios.len() as f64).exp();
    let largest = |of: usize| ratios.iter().map(|ratio| ratio[of]).fold(0.0, f64::max);
    let near = ratios.iter().filter(|ratio| ratio[0] <= 1.2).count();
    println!(
        "\n{kind}: chosen ÷ best {:.2} (geometric mean), {:.2} (largest), within 20 % in {near} of {}; none ÷ best {:.2}, {:.2}\n",
        geometric_mean(0),
        largest(0),
        ratios.len(),
        geometric_mean(1),
        largest(1)
    );
}
