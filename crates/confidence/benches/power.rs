//! How often the tests of assumptions find what is there, and what is not: shares of seeded repetitions at a level of 5 %.
//! `cargo bench -p tailwright-confidence`; with `--repetitions N` more of them.

use confidence::{WindowedSeries, change_point, common_bursts, neighbour_correlation};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Windows of a series; as with ten minutes in windows of 37 ms.
const WINDOWS: usize = 1 << 14;
const LEVEL: f64 = 0.05;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--repetitions").skip(1);
    let repetitions = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(200);
    println!("share of pairs found busy together, {repetitions} repetitions, {WINDOWS} windows");
    println!(
        "{:>12} {:>14} {:>14} {:>14} {:>14}",
        "shared work", "exponential", "pareto 1.8", "pareto 1.4", "pareto 1.2"
    );
    for shared in [0.0, 0.05, 0.1, 0.2, 0.4, 0.8] {
        let memories = [None, Some(1.8), Some(1.4), Some(1.2)];
        let found = memories.map(|shape| share(repetitions, |seed| is_found(shape, shared, seed)));
        println!("{shared:>12} {:>14} {:>14} {:>14} {:>14}", found[0], found[1], found[2], found[3]);
    }
    println!("share of series found to change, {repetitions} repetitions, 64 blocks or fewer");
    println!(
        "{:>12} {:>14} {:>14} {:>14} {:>14}",
        "after", "exponential", "pareto 1.8", "pareto 1.4", "pareto 1.2"
    );
    for factor in [1.0, 1.1, 1.2, 1.5, 2.0] {
        let memories = [None, Some(1.8), Some(1.4), Some(1.2)];
        let found = memories.map(|shape| share(repetitions, |seed| is_change_found(shape, factor, seed)));
        println!("{factor:>12} {:>14} {:>14} {:>14} {:>14}", found[0], found[1], found[2], found[3]);
    }
}

fn share(repetitions: u64, is_true: impl Fn(u64) -> bool) -> String {
    let count = (0..repetitions).filter(|seed| is_true(*seed)).count();
    format!("{:.3}", count as f64 / repetitions as f64)
}

/// Whether two streams, of whose work a share is the same, are found to be busy together.
fn is_found(shape: Option<f64>, shared: f64, seed: u64) -> bool {
    let mut random = StdRng::seed_from_u64(seed);
    let [common, a, b] = [0; 3].map(|_| on_off(shape, &mut random));
    let mixed = |own: &[f64]| {
        let work: Vec<f64> =
            own.iter().zip(&common).map(|(own, common)| own * (1.0 - shared) + common * shared).collect();
        WindowedSeries::new(&work)
    };
    common_bursts(&mixed(&a), &mixed(&b)).p_value <= LEVEL
}

/// Whether a stream that has this factor of work in its last third is found to change.
fn is_change_found(shape: Option<f64>, factor: f64, seed: u64) -> bool {
    let mut work = on_off(shape, &mut StdRng::seed_from_u64(seed));
    work[WINDOWS * 2 / 3..].iter_mut().for_each(|work| *work *= factor);
    for blocks in [64, 32, 16] {
        let values: Vec<f64> = work.chunks_exact(WINDOWS / blocks).map(|block| block.iter().sum()).collect();
        let change = change_point(&values, 999, 1);
        if neighbour_correlation(&values, change.at) <= 1.645 / (blocks as f64).sqrt() {
            return change.p_value <= LEVEL;
        }
    }
    false
}

/// Four superposed sources that are off for nine tenths of the time, with periods of exponential or Pareto length.
fn on_off(shape: Option<f64>, random: &mut StdRng) -> Vec<f64> {
    let mut work = vec![0.0; WINDOWS];
    for _ in 0..4 {
        let mut at = -(random.random::<f64>() * 1000.0);
        while at < WINDOWS as f64 {
            let on = at + period(shape, 8.0, random);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let (from, until) = (at.max(0.0) as usize, (on.max(0.0) as usize).min(WINDOWS));
            work[from.min(until)..until].iter_mut().for_each(|work| *work += random.random::<f64>());
            at = on + period(shape, 72.0, random);
        }
    }
    work
}

/// A random period with this mean.
fn period(shape: Option<f64>, mean: f64, random: &mut StdRng) -> f64 {
    let uniform = 1.0 - random.random::<f64>();
    match shape {
        None => -mean * uniform.ln(),
        Some(shape) => mean * (shape - 1.0) / shape * uniform.powf(-1.0 / shape),
    }
}
