//! The probabilistic model beside a replay of the traces at random shifts.
#[path = "../tests/support/mod.rs"]
mod support;

use model::{PerStage, Stage};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Recording, Service, Stream, System};
use std::time::Instant;
use support::{Through, published};
use tailwright_predict::{Member, Model as _, Prediction, Probabilistic, ProbabilisticSketch, Traffic};
use units::{Nanos, Percentile};

const SLOS_MS: [u32; 4] = [10, 20, 50, 100];

struct Case {
    members: Vec<usize>,
    priority: Vec<u32>,
    percentile: Percentile,
}

fn case(random: &mut StdRng, of: usize) -> Case {
    let n = 1 << random.random_range(1..=5u32);
    let mut members: Vec<usize> = (0..of).collect();
    members.shuffle(random);
    members.truncate(n);
    let priority = members.iter().map(|_| SLOS_MS[random.random_range(0..4)]).collect();
    let percentile = Percentile::new([90.0, 99.0, 99.9][random.random_range(0..3)]).unwrap();
    Case { members, priority, percentile }
}

/// The percentile over all requests of all alignments.
fn replayed(case: &Case, recordings: &[Recording], seed: u64, count: usize) -> Option<Vec<f64>> {
    let streams = case.members.iter().zip(&case.priority).enumerate().map(|(group, (m, p))| Stream {
        recording: &recordings[*m],
        priority: PerStage::from_fn(|_| *p),
        group,
    });
    let system = System::new(streams.collect()).ok()?;
    let alignments: Vec<Alignment> = Alignment::random(seed, count).collect();
    let percentiles = vec![case.percentile; case.members.len()];
    let runs = sim::percentiles(&system, Service::Preemptive, &alignments, &percentiles);
    let mut sums = vec![0.0; case.members.len()];
    for (run, _) in &runs {
        sums.iter_mut().zip(run).for_each(|(s, v)| *s += v.unwrap_or(Nanos::ZERO).as_secs() / count as f64);
    }
    Some(sums)
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.is_empty() { f64::NAN } else { values[((values.len() - 1) as f64 * q).round() as usize] }
}

fn main() {
    let count: usize = std::env::var("MIXES").ok().and_then(|v| v.parse().ok()).unwrap_or(20);
    let model = Probabilistic::default();
    for through in [Through::Link, Through::Server] {
        let Some(real) = published(through) else { return };
        let traffic: Vec<&Traffic> = real.iter().map(|r| &r.traffic).collect();
        let start = Instant::now();
        let sketches: Vec<ProbabilisticSketch> = traffic.iter().map(|t| model.sketch(t)).collect();
        let seconds = start.elapsed().as_secs_f64();
        let bytes: usize = sketches.iter().map(ProbabilisticSketch::bytes).sum();
        println!("{through:?}: sketches {seconds:.2} s, {} kB each", bytes / 1000 / sketches.len());
        let recordings: Vec<Recording> =
            traffic.iter().map(|t| Recording::new(t.jobs(), t.period()).unwrap()).collect();
        for r in &real {
            if std::env::var("STATS").is_ok() {
                let u = r.traffic.utilisation();
                println!(
                    "{} n={} util {:.4} {:.4} {:.4}",
                    r.name,
                    r.traffic.jobs().len(),
                    u[Stage::NetworkIn],
                    u[Stage::Storage],
                    u[Stage::NetworkOut]
                );
            }
        }
        let mut random = StdRng::seed_from_u64(7);
        let mut ratios: Vec<(usize, f64, f64)> = Vec::new();
        let (mut none, mut time) = (0, 0.0);
        for index in 0..count {
            let case = case(&mut random, real.len());
            let Some(truth) = replayed(&case, &recordings, index as u64, 4) else { continue };
            let member = |(i, m): (usize, &usize)| Member {
                sketch: &sketches[*m],
                priority: PerStage::from_fn(|_| case.priority[i]),
                group: i,
                percentile: case.percentile,
            };
            let members: Vec<Member<'_, ProbabilisticSketch>> =
                case.members.iter().enumerate().map(member).collect();
            let start = Instant::now();
            let bounds = model.predict(&members);
            time += start.elapsed().as_secs_f64() / members.len() as f64;
            for (bound, truth) in bounds.iter().zip(truth) {
                match bound {
                    Ok(Prediction { bound, .. }) => {
                        ratios.push((case.members.len(), case.percentile.percent(), bound / truth))
                    }
                    Err(_) => none += 1,
                }
            }
        }
        println!("  time per member {:.1} ms; no bound {none}", time / count as f64 * 1e3);
        for n in [2, 4, 8, 16, 32] {
            for p in [90.0, 99.0, 99.9] {
                let mut r: Vec<f64> = ratios.iter().filter(|x| x.0 == n && x.1 == p).map(|x| x.2).collect();
                let below = r.iter().filter(|x| **x < 1.0).count();
                println!(
                    "  n={n:2} p{p:<4} {:4} ratios: 10% {:.2} median {:.2} 90% {:.2}; below 1: {below}",
                    r.len(),
                    quantile(&mut r, 0.1),
                    quantile(&mut r, 0.5),
                    quantile(&mut r, 0.9)
                );
            }
        }
    }
}
