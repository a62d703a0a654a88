//! Time of placing many workloads by a model, and its growth with their number: random draws of the published
//! traces with random SLOs.
//!
//! The table has the servers that were filled, the workloads that were refused, how often the model was asked about a server, wall
//! and processor time, and the processor time of a workload as a multiple of that in the first line. With
//! `--interrupt-at S` every placement is interrupted after that many seconds, and the last column is how long the answer took then.
//!
//! `cargo bench -p plan --bench placement_scale`; `-- --draws 62,125,250,1000,10000` for other numbers of workloads,
//! `-- --model probabilistic`, `-- --seed N`, `-- --percentiles 90,99,99.9`.

mod support;

use model::Slo;
use operation::Silent;
use plan::prediction::{ModelName, PredictionProblem, place};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::time::{ClockId, clock_gettime};
use std::str::FromStr;
use std::time::{Duration, Instant};
use support::{SERVER_SLOS, WorkloadTable, one_of, text_after};
use units::Percentile;

fn main() {
    let Some(published) = published() else { return };
    let draws: Vec<usize> = numbers_after("--draws").unwrap_or_else(|| vec![62, 125, 250]);
    let percentiles: Vec<f64> = numbers_after("--percentiles").unwrap_or_else(|| vec![99.9]);
    let seed = numbers_after("--seed").map_or(1, |numbers| numbers[0]);
    let interrupt_at = numbers_after("--interrupt-at").map(|numbers| Duration::from_secs_f64(numbers[0]));
    let model = match text_after("--model").as_deref() {
        None | Some("replayed") => ModelName::Replayed,
        Some("probabilistic") => ModelName::Probabilistic,
        Some("calibrated") => ModelName::Calibrated,
        Some("worst-case") => ModelName::WorstCase,
        Some(other) => panic!("{other}: expected replayed, probabilistic, calibrated or worst-case"),
    };
    println!("workloads  servers  refused  questions  wall s   CPU s  growth  answered");
    let mut first = None;
    for count in draws {
        let problem = draw(&published, count, &percentiles, seed);
        let begin = Instant::now();
        let cpu = cpu_seconds();
        let interrupted = || interrupt_at.is_some_and(|at| begin.elapsed() > at);
        let placement = place(&problem, model, &interrupted, &Silent);
        let wall = begin.elapsed();
        let cpu = cpu_seconds() - cpu;
        assert!(placement.is_kept(&problem), "every server that is returned keeps its SLOs");
        let each = cpu / count as f64;
        let answered = interrupt_at
            .map_or_else(String::new, |at| format!("{:.2} s later", wall.saturating_sub(at).as_secs_f64()));
        println!(
            "{count:>9}  {:>7}  {:>7}  {:>9}  {:>6.1}  {cpu:>6.1}  {:>5.2}x  {answered}",
            placement.packing.servers.len(),
            placement.packing.refused.len(),
            placement.packing.asked,
            wall.as_secs_f64(),
            each / *first.get_or_insert(each),
        );
    }
}

/// The published workloads; `None`, loudly, where they are absent.
fn published() -> Option<PredictionProblem> {
    let folder = testkit::shared("traces")?;
    let slos = folder.join("slos.csv");
    let network = "125MB/s".into();
    WorkloadTable { slos, traces: folder, network, link_only: false }.problem()
}

/// So many workloads with random traces of the problem, and random SLOs.
fn draw(problem: &PredictionProblem, count: usize, percentiles: &[f64], seed: u64) -> PredictionProblem {
    support::draw(problem, count, StdRng::seed_from_u64(seed), |random| {
        let latency = one_of(&SERVER_SLOS, random);
        let percent = percentiles[random.random_range(0..percentiles.len())];
        Slo::new(Percentile::new(percent).expect("a percentile"), latency).expect("a positive latency")
    })
}

/// Processor time of this process so far, all threads together.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The numbers after a word among the program's arguments, separated by commas.
fn numbers_after<T: FromStr<Err: std::fmt::Debug>>(word: &str) -> Option<Vec<T>> {
    let text = text_after(word)?;
    Some(text.split(',').map(|number| number.parse().expect("a number")).collect())
}
