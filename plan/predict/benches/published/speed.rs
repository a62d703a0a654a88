//! One decision over all n members: as published beside tables.

use super::support::Real;
use super::{members, percentile, worst_ms};
use calculus::snc::{MarkovArrivals, MgfEnvelope};
use model::{CircularTrace, Job, LatencyModel, Stage};
use predict::{SncByStage, StageSketch, markov_arrivals};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::time::Instant;
use units::Nanos;

pub(super) fn print(real: &[Real]) {
    let model = SncByStage::default();
    let start = Instant::now();
    let sketches: Vec<StageSketch> = real.iter().map(|r| model.sketch(&r.traffic)).collect();
    let each = start.elapsed().as_secs_f64() * 1e3 / real.len() as f64;
    println!("sketch: {each:.1} ms and {} bytes per workload", sketches[0].heap_bytes());
    let chains: Vec<[MarkovArrivals; 2]> = real.iter().map(|r| both(&model, &r.traffic)).collect();
    println!("One decision over n workloads; the worst bound as published over that of tables");
    println!(
        "{:>5}{:>11}{:>15}{:>12}{:>9}{:>9}",
        "n", "dependent", "published ms", "tables ms", "ratio", "bounds"
    );
    for n in [1, 2, 4, 8, 16, 32, 62, 250, 1000] {
        compare(&model, &sketches, &chains, (n, 0));
    }
    for case in [(4, 2), (4, 3), (4, 4), (8, 2), (8, 3), (8, 4), (62, 2), (62, 3), (62, 4), (1000, 4)] {
        compare(&model, &sketches, &chains, case);
    }
    println!();
}

fn both(model: &SncByStage, traffic: &CircularTrace<Job>) -> [MarkovArrivals; 2] {
    [Stage::NetworkIn, Stage::NetworkOut].map(|stage| {
        let fitted = model.fitted(traffic, stage, Nanos::ZERO).expect("requests");
        markov_arrivals(&fitted).expect("fewer than one request per step")
    })
}

fn compare(
    model: &SncByStage,
    sketches: &[StageSketch],
    chains: &[[MarkovArrivals; 2]],
    (n, dependent): (usize, usize),
) {
    let members = members((0..n).map(|k| &sketches[k % sketches.len()]), dependent, percentile(99.9));
    let time = |_| {
        let start = Instant::now();
        let worst = worst_ms(model, &members);
        (start.elapsed().as_secs_f64() * 1e3, worst)
    };
    let runs = if n > 100 { 1 } else { 5 };
    let (fast, bound) = (0..runs).map(time).min_by(|a, b| a.0.total_cmp(&b.0)).expect("one run");
    // Beyond, the published way takes minutes.
    if n > if dependent == 0 { 62 } else { 8 } {
        println!("{n:>5}{dependent:>11}{:>15}{fast:>12.3}", "-");
        return;
    }
    let start = Instant::now();
    let mut naive = Naive { chains, dependent, rng: StdRng::seed_from_u64(1) };
    let worst = (0..n).map(|m| naive.latency_ms(m)).fold(0.0, f64::max);
    let slow = start.elapsed().as_secs_f64() * 1e3;
    println!("{n:>5}{dependent:>11}{slow:>15.1}{fast:>12.3}{:>9.0}{:>9.3}", slow / fast, worst / bound);
}

/// Every ρ(θ) computed anew, Hölder's weights drawn at random.
struct Naive<'a> {
    chains: &'a [[MarkovArrivals; 2]],
    dependent: usize,
    rng: StdRng,
}

/// Evaluations per latency, about as many as the tabulated search takes: over θ, and over θ and weights.
const PROBES: (u32, u32) = (64, 4600);
/// The first θ and the decades.
const THETA: (f64, f64) = (0.05, 1e8);
const STEP: f64 = 1e-5;
const EXCEEDED: f64 = 5e-4;

impl Naive<'_> {
    fn latency_ms(&mut self, member: usize) -> f64 {
        (self.stage(member, 0) + self.stage(member, 1)) * 1e3
    }

    fn stage(&mut self, member: usize, stage: usize) -> f64 {
        // Groups of A.4 among those before the member, and whether it is of their dependency group.
        let groups = member.min(self.dependent);
        let own = member > 0 && member < self.dependent;
        if groups < 2 && !own {
            let theta = |i: u32| THETA.0 * THETA.1.powf(f64::from(i) / f64::from(PROBES.0));
            let all = (0..PROBES.0).filter_map(|i| self.evaluate(member, stage, theta(i), &[1.0; 2]));
            return all.fold(f64::INFINITY, f64::min);
        }
        let mut least = f64::INFINITY;
        for _ in 0..PROBES.1 {
            let theta = THETA.0 * THETA.1.powf(self.rng.random::<f64>());
            let weights = self.weights(groups, own);
            least = least.min(self.evaluate(member, stage, theta, &weights).unwrap_or(f64::INFINITY));
        }
        least
    }

    /// The member's and the groups' weights; an independent member has weight 1 beside the groups' sum of 1.
    fn weights(&mut self, groups: usize, own: bool) -> Vec<f64> {
        let raw: Vec<f64> = (0..groups + usize::from(own)).map(|_| -self.rng.random::<f64>().ln()).collect();
        let sum: f64 = raw.iter().sum();
        let shares = raw.into_iter().map(|w| w / sum);
        if own { shares.collect() } else { std::iter::once(1.0).chain(shares).collect() }
    }

    fn evaluate(&self, member: usize, stage: usize, theta: f64, weights: &[f64]) -> Option<f64> {
        let rate =
            |k: usize, w: f64| Some(self.chains[k % self.chains.len()][stage].bound_at(theta / w)?.rate);
        let own = rate(member, weights[0])?;
        let mut left = -1.0;
        for k in 0..member {
            // The k-th of the dependency group is in the k-th group, all independent ones in the first.
            left += rate(k, weights[1 + if k < self.dependent { k } else { 0 }])?;
        }
        let gap = -left - own;
        let union = (gap > 0.0).then(|| -(-(-theta * gap * STEP).exp_m1()).ln())?;
        Some((union - EXCEEDED.ln()) / theta / -left)
    }
}
