//! Random streams with short and with long memory, as work in windows.

use confidence::WindowedSeries;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Distribution of the lengths of busy and idle periods.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeriodLengths {
    Exponential,
    /// Pareto with this shape: below 2, sums over windows have long memory with a Hurst parameter of (3 − shape) ÷ 2.
    Pareto(f64),
}

/// Means of busy and idle periods, in windows.
const MEANS: [f64; 2] = [8.0, 72.0];
/// Superposed sources of a stream.
const SOURCES: usize = 4;

/// The work of a stream of on-off sources in so many windows.
pub(crate) fn on_off(lengths: PeriodLengths, windows: usize, random: &mut StdRng) -> Vec<f64> {
    let mut work = vec![0.0; windows];
    for _ in 0..SOURCES {
        let mut at = -(random.random::<f64>() * 1000.0);
        while at < windows as f64 {
            let end = at + period(lengths, MEANS[0], random);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
            let [from, until] = [at, end].map(|instant| (instant.max(0.0) as usize).min(windows));
            work[from..until].iter_mut().for_each(|work| *work += random.random::<f64>());
            at = end + period(lengths, MEANS[1], random);
        }
    }
    work
}

fn period(lengths: PeriodLengths, mean: f64, random: &mut StdRng) -> f64 {
    let uniform = 1.0 - random.random::<f64>();
    match lengths {
        PeriodLengths::Exponential => -mean * uniform.ln(),
        PeriodLengths::Pareto(shape) => mean * (shape - 1.0) / shape * uniform.powf(-1.0 / shape),
    }
}

/// Returns two streams; this share of their work comes from a common third stream.
pub(crate) fn pair(lengths: PeriodLengths, windows: usize, shared: f64, seed: u64) -> [WindowedSeries; 2] {
    let mut random = StdRng::seed_from_u64(seed);
    let [common, a, b] = [0; 3].map(|_| on_off(lengths, windows, &mut random));
    [a, b].map(|own| {
        let work = own.iter().zip(&common).map(|(own, common)| own * (1.0 - shared) + common * shared);
        WindowedSeries::new(&work.collect::<Vec<_>>())
    })
}

/// Returns the work of a stream in this many blocks, multiplied by `factor` from two thirds on.
pub(crate) fn blocks(
    lengths: PeriodLengths,
    windows: usize,
    count: usize,
    factor: f64,
    seed: u64,
) -> Vec<f64> {
    let mut work = on_off(lengths, windows, &mut StdRng::seed_from_u64(seed));
    work[windows * 2 / 3..].iter_mut().for_each(|work| *work *= factor);
    work.chunks_exact(windows / count).map(|block| block.iter().sum()).collect()
}
