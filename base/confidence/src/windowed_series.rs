//! A stream's work in equal windows of time, prepared so that it can be compared with others at several scales.

use crate::fourier::{Complex, transform};
use crate::ranks::centred_ranks;

/// The fewest windows of a series.
pub const WINDOWS_MIN: usize = 1024;
/// Ratio between the window lengths of successive scales.
const SCALE_FACTOR: usize = 4;
/// Minimum number of disjoint windows at the longest scale.
const WINDOWS_AT_LONGEST: usize = 16;
/// The share of windows that count as busy, at most.
const BUSY_SHARE: f64 = 0.05;

/// A stream's work in consecutive windows of equal length, with sums over longer windows. It is treated
/// as circular.
#[derive(Debug, Clone)]
pub struct WindowedSeries {
    pub(crate) windows: usize,
    pub(crate) scales: Vec<ScaleSpectrum>,
}

/// Sums over windows of one length that begin at every window of the series.
#[derive(Debug, Clone)]
pub(crate) struct ScaleSpectrum {
    /// Length of a window, in windows of the series.
    pub(crate) length: usize,
    /// Fourier transform of the normalised rank of each sum (real part) and of its indicator of being
    /// busy (imaginary part). Single precision halves the memory.
    transform: Vec<[f32; 2]>,
    /// Number of sums that count as busy: larger than all but a twentieth of them, and above zero.
    pub(crate) busy: usize,
}

impl WindowedSeries {
    /// Returns the window lengths that are compared in a series of `windows` windows, in windows of the
    /// series.
    pub fn scales(windows: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(1), |length| Some(length * SCALE_FACTOR))
            .take_while(move |length| length * WINDOWS_AT_LONGEST <= windows)
    }

    /// Takes the work in each window.
    ///
    /// # Panics
    /// Unless the number of windows is a power of two and at least [`WINDOWS_MIN`].
    pub fn new(work: &[f64]) -> Self {
        assert!(work.len().is_power_of_two() && work.len() >= WINDOWS_MIN, "a power of two of windows");
        let scales =
            Self::scales(work.len()).map(|length| ScaleSpectrum::new(&circular_sums(work, length), length));
        Self { windows: work.len(), scales: scales.collect() }
    }
}

/// Returns the sums of `length` neighbours that begin at each value, wrapping around.
fn circular_sums(work: &[f64], length: usize) -> Vec<f64> {
    // Sums of prefixes would lose small windows behind large totals; doubling does not.
    let mut sums = work.to_vec();
    let mut reached = 1;
    while reached < length {
        let shifted: Vec<f64> =
            (0..sums.len()).map(|at| sums[at] + sums[(at + reached) % sums.len()]).collect();
        sums = shifted;
        reached *= 2;
    }
    sums
}

impl ScaleSpectrum {
    fn new(sums: &[f64], length: usize) -> Self {
        let ranks = centred_ranks(sums);
        let norm = ranks.iter().map(|rank| rank * rank).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let threshold = busy_above(sums);
        let is_busy = |sum: f64| sum > threshold;
        let values = ranks.iter().zip(sums);
        let mut values: Vec<Complex> = values
            .map(|(rank, sum)| Complex { re: rank / norm, im: f64::from(u8::from(is_busy(*sum))) })
            .collect();
        transform(&mut values);
        #[allow(clippy::cast_possible_truncation, reason = "seven digits are enough")]
        let halved = values.iter().map(|value| [value.re as f32, value.im as f32]).collect();
        let busy = sums.iter().filter(|sum| is_busy(**sum)).count();
        Self { length, transform: halved, busy }
    }

    /// The transforms of the ranks and of the busy windows at a frequency.
    pub(crate) fn at(&self, frequency: usize) -> [Complex; 2] {
        let count = self.transform.len();
        let value = |index: usize| {
            let [re, im] = self.transform[index].map(f64::from);
            Complex { re, im }
        };
        let here = value(frequency);
        let mirror = value((count - frequency) % count).conj();
        let sum = here + mirror;
        let difference = here - mirror;
        let half = |re: f64, im: f64| Complex { re: 0.5 * re, im: 0.5 * im };
        [half(sum.re, sum.im), half(difference.im, -difference.re)]
    }
}

/// The sum that at most the share [`BUSY_SHARE`] of all exceeds.
fn busy_above(sums: &[f64]) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
    let above = (sums.len() as f64 * BUSY_SHARE) as usize;
    let mut sums = sums.to_vec();
    let at = sums.len() - 1 - above;
    *sums.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_around() {
        assert_eq!(circular_sums(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 4)[5..], [22.0, 18.0, 14.0]);
    }

    #[test]
    fn scales_leave_sixteen_windows() {
        assert_eq!(WindowedSeries::scales(1024).collect::<Vec<_>>(), [1, 4, 16, 64]);
    }

    #[test]
    fn one_transform_holds_both_series() {
        let work: Vec<f64> = (0..1024u32).map(|t| f64::from(t.wrapping_mul(2_654_435_761) >> 16)).collect();
        let series = WindowedSeries::new(&work);
        let [ranks, busy] = series.scales[0].at(0);
        assert!(ranks.re.abs() < 1e-3 && (busy.re - 51.0).abs() < 1e-3, "{ranks:?} {busy:?}");
        assert_eq!(series.scales[0].busy, 51);
        let energy: f64 =
            (0..1024).map(|k| series.scales[0].at(k)[0]).map(|x| x.re * x.re + x.im * x.im).sum();
        assert!((energy / 1024.0 - 1.0).abs() < 1e-3, "{energy}");
    }
}
