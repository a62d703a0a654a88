//! How often replays of random mixes exceed the published bound.

use super::support::Real;
use super::{members, percentile};
use model::{LatencyModel, PerStage, ServerMember, UndefinedLatency};
use predict::Replayed;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use units::Nanos;

const ALIGNMENTS: usize = 11;

pub(super) fn print<M: LatencyModel>(model: &M, through: &str, real: &[Real], mixes: u32) {
    let judge = Replayed::new(ALIGNMENTS, 0.8, 0.9, 7).expect("enough");
    let sketches: Vec<_> = real.iter().map(|r| model.sketch(&r.traffic)).collect();
    let recordings: Vec<_> = real.iter().map(|r| judge.sketch(&r.traffic)).collect();
    println!(
        "{}: {mixes} mixes of 2 … 16 workloads on one {through}, {ALIGNMENTS} alignments: bounds that replay exceeds",
        model.name()
    );
    println!(
        "{:>7}{:>9}{:>16}{:>16}{:>13}{:>14}{:>14}",
        "", "members", "in the median", "in any of all", "worst ratio", "bound/median", "5 … 95 %"
    );
    for percent in [90.0, 99.0, 99.9] {
        let mut rng = StdRng::seed_from_u64(3);
        let mut tally = Tally::default();
        for _ in 0..mixes {
            let picked = pick(&mut rng, real.len());
            let bounds =
                model.predict(&members(picked.iter().map(|&k| &sketches[k]), 0, percentile(percent)));
            let alike = |(k, &w): (usize, &usize)| ServerMember {
                sketch: &recordings[w],
                priority: PerStage::from_fn(|_| u32::try_from(k).expect("few")),
                group: k + 1,
                percentile: percentile(percent),
            };
            let replayed = judge.samples(&picked.iter().enumerate().map(alike).collect::<Vec<_>>());
            for (bound, samples) in bounds.into_iter().zip(replayed) {
                tally.add(bound.map(|b| b.bound), samples);
            }
        }
        tally.print(percent);
    }
    println!();
}

/// Different workloads in random order.
fn pick(rng: &mut StdRng, of: usize) -> Vec<usize> {
    let count = rng.random_range(2..=16);
    let mut all: Vec<usize> = (0..of).collect();
    for k in 0..count {
        let other = rng.random_range(k..of);
        all.swap(k, other);
    }
    all.truncate(count);
    all
}

#[derive(Default)]
struct Tally {
    undefined: usize,
    in_median: usize,
    in_any: usize,
    worst: f64,
    ratios: Vec<f64>,
}

impl Tally {
    fn add(&mut self, bound: Result<f64, UndefinedLatency>, samples: Result<Vec<Nanos>, UndefinedLatency>) {
        let (Ok(bound), Ok(mut samples)) = (bound, samples) else {
            self.undefined += 1;
            return;
        };
        samples.sort_unstable();
        let median = samples[samples.len() / 2].as_secs();
        let most = samples[samples.len() - 1].as_secs();
        self.in_median += usize::from(median > bound);
        self.in_any += usize::from(most > bound);
        self.worst = self.worst.max(median / bound);
        self.ratios.push(bound / median);
    }

    fn print(mut self, percent: f64) {
        self.ratios.sort_by(f64::total_cmp);
        let n = self.ratios.len();
        let part = |count: usize| 100.0 * count as f64 / n as f64;
        let at = |q: usize| self.ratios[q * (n - 1) / 100];
        let median = part(self.in_median);
        let any = part(self.in_any);
        println!(
            "{:>7}{n:>9}{median:>14.1} %{any:>14.1} %{:>13.2}{:>14.2}{:>8.2} …{:>5.1}  undefined {}",
            format!("p{percent}"),
            self.worst,
            at(50),
            at(5),
            at(95),
            self.undefined
        );
    }
}
