//! Test for common bursts of two streams that were recorded together.
//!
//! The distribution under independence needs no model of either stream: one of them, shifted in time against
//! the other, has the same bursts and is independent of it. So the observed alignment is compared with all
//! circular shifts, as Lotwick and Silverman do on a torus. If both streams are stationary and independent,
//! the observed alignment is as likely as any shift to have the largest statistic, however long their memory.
//! The seam between the end of a recording and its beginning makes that approximate.
//!
//! At each scale there are two statistics: the rank correlation (Spearman) of work in windows, and the number
//! of windows that are among the busiest twentieth of both. Each is divided by its spread over the shifts.
//! The largest over all scales counts, so that several scales cost power but not validity. The test detects
//! streams that are busy at the same time; streams that avoid each other pass it. It judges pairs: three
//! pairwise independent streams may still be jointly dependent.

use crate::fourier::{Complex, transform};
use crate::windowed_series::{ScaleSpectrum, WindowedSeries};

/// Comparison of two streams at one scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleComparison {
    /// Windows of the series in one window of this scale.
    pub windows: usize,
    /// The rank correlation of work in windows, −1 to 1.
    pub correlation: f64,
    /// Rank correlation that one in twenty shifts exceeds; smaller values are not significant.
    pub correlation_by_chance: f64,
    /// Number of windows in which both are busy ÷ its expectation under independence; `None` if one has no
    /// busy windows.
    pub busy_together: Option<f64>,
}

/// Result of the comparison of two streams at all scales.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonBursts {
    /// The share of shifts, the observed alignment included, at which the streams are busy together at least as much.
    pub p_value: f64,
    /// Index into `scales` of the most significant scale.
    pub clearest: usize,
    /// The comparison at each scale, from the shortest windows to the longest.
    pub scales: Vec<ScaleComparison>,
}

/// Compares two series.
///
/// # Panics
/// Unless they have equally many windows.
pub fn common_bursts(a: &WindowedSeries, b: &WindowedSeries) -> CommonBursts {
    assert_eq!(a.windows, b.windows, "series over the same windows");
    let mut largest = vec![f64::NEG_INFINITY; a.windows];
    let mut clearest = 0;
    let mut scales = Vec::with_capacity(a.scales.len());
    for (number, (of_a, of_b)) in a.scales.iter().zip(&b.scales).enumerate() {
        let by_shift = products_by_shift(of_a, of_b, a.windows);
        let correlations = standardised(by_shift.iter().map(|product| product.re));
        // Square root: it makes the spread of a nearly Poisson count nearly independent of its mean.
        let coincidences = standardised(by_shift.iter().map(|product| (product.im.max(0.0) + 0.375).sqrt()));
        for (shift, of_shift) in largest.iter_mut().enumerate() {
            let here = correlations[shift].max(coincidences[shift]);
            if here > *of_shift {
                *of_shift = here;
                clearest = if shift == 0 { number } else { clearest };
            }
        }
        scales.push(comparison(of_a, of_b, &by_shift));
    }
    // Rounding must not make the observed alignment look rarer than equal shifts.
    let observed = largest[0] - 1e-4 * (1.0 + largest[0].abs());
    let as_large = largest.iter().filter(|of_shift| **of_shift >= observed).count();
    CommonBursts { p_value: as_large as f64 / a.windows as f64, clearest, scales }
}

/// Returns for each circular shift of `b` the rank correlation as real part, and the number of windows in
/// which both are busy as imaginary part.
fn products_by_shift(a: &ScaleSpectrum, b: &ScaleSpectrum, windows: usize) -> Vec<Complex> {
    let mut products = Vec::with_capacity(windows);
    for frequency in 0..windows {
        let [ranks_a, busy_a] = a.at(frequency);
        let [ranks_b, busy_b] = b.at(frequency);
        let ranks = ranks_a.conj() * ranks_b;
        let busy = busy_a.conj() * busy_b;
        // The conjugate turns the forward transform into the inverse one.
        products.push(Complex { re: ranks.re - busy.im, im: ranks.im + busy.re }.conj());
    }
    transform(&mut products);
    let scale = 1.0 / windows as f64;
    products.iter().map(|product| Complex { re: product.re * scale, im: -product.im * scale }).collect()
}

/// Values less their mean, divided by their standard deviation; zeros where they do not vary.
fn standardised(values: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.clone().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    // A smaller variance is rounding of single precision.
    let scale = if variance > 1e-10 { variance.sqrt().recip() } else { 0.0 };
    values.map(|value| (value - mean) * scale).collect()
}

fn comparison(a: &ScaleSpectrum, b: &ScaleSpectrum, by_shift: &[Complex]) -> ScaleComparison {
    let mut correlations: Vec<f64> = by_shift.iter().map(|product| product.re).collect();
    let twentieth = correlations.len() - 1 - correlations.len() / 20;
    let correlation_by_chance = *correlations.select_nth_unstable_by(twentieth, f64::total_cmp).1;
    let expected = a.busy as f64 * b.busy as f64 / by_shift.len() as f64;
    ScaleComparison {
        windows: a.length,
        correlation: by_shift[0].re,
        correlation_by_chance,
        busy_together: (expected > 0.0).then(|| by_shift[0].im.max(0.0) / expected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::centred_ranks;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn correlations_and_coincidences_are_those_of_the_definition() {
        let mut random = StdRng::seed_from_u64(4);
        let [a, b] = [0, 1].map(|_| (0..1024).map(|_| random.random::<f64>()).collect::<Vec<_>>());
        let of_a = WindowedSeries::new(&a);
        let of_b = WindowedSeries::new(&b);
        let by_shift = products_by_shift(&of_a.scales[0], &of_b.scales[0], 1024);
        let ranks_a = centred_ranks(&a);
        let ranks_b = centred_ranks(&b);
        let squares: f64 = ranks_a.iter().map(|rank| rank * rank).sum();
        let is_busy = |ranks: &[f64], at: usize| ranks[at] > 511.5 - 51.0;
        for shift in [0, 1, 77, 1023] {
            let shifted = |at: usize| (at + shift) % 1024;
            let product: f64 = (0..1024).map(|at| ranks_a[at] * ranks_b[shifted(at)]).sum();
            let both = (0..1024).filter(|&at| is_busy(&ranks_a, at) && is_busy(&ranks_b, shifted(at)));
            assert!((by_shift[shift].re - product / squares).abs() < 1e-5);
            assert!((by_shift[shift].im - both.count() as f64).abs() < 1e-3);
        }
    }

    #[test]
    fn a_stream_is_busy_together_with_itself() {
        let mut random = StdRng::seed_from_u64(5);
        let work: Vec<f64> = (0..1024).map(|_| random.random()).collect();
        let series = WindowedSeries::new(&work);
        let found = common_bursts(&series, &series);
        assert!(found.p_value <= 1.0 / 1024.0 + 1e-12 && found.clearest == 0, "{found:?}");
        assert!((found.scales[0].correlation - 1.0).abs() < 1e-3);
        assert!((found.scales[0].busy_together.expect("busy windows") - 1024.0 / 51.0).abs() < 0.1);
    }

    #[test]
    fn a_stream_without_variation_is_never_busy() {
        let mut random = StdRng::seed_from_u64(6);
        let work: Vec<f64> = (0..1024).map(|_| random.random()).collect();
        let found = common_bursts(&WindowedSeries::new(&[3.0; 1024]), &WindowedSeries::new(&work));
        assert_eq!((found.p_value, found.scales[0].busy_together), (1.0, None));
    }
}
