//! Empirical distributions of samples, as points of a chart.

/// An empirical distribution. Infinite samples (requests that never finished) count in shares but are not drawn;
/// samples that are not numbers are left out.
#[derive(Debug, Clone)]
pub struct Distribution {
    sorted: Vec<f64>,
}

impl Distribution {
    /// Creates the distribution of these samples.
    pub fn from_samples(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = samples.into_iter().filter(|v| !v.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { sorted }
    }

    /// Returns the number of samples that are numbers.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns true if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the smallest sample that at least a share `q` (0 to 1) of samples do not exceed (nearest
    /// rank); `None` without samples or outside that range.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and len")]
        let rank = (q * self.len() as f64 - 1e-9).ceil().max(1.0) as usize;
        self.sorted.get(rank - 1).copied()
    }

    /// Returns the cumulative distribution as steps (x, share of samples ≤ x). The first step rises from
    /// zero at the smallest sample.
    pub fn cdf(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        for (x, at_or_below) in self.ranks() {
            if points.is_empty() {
                points.push((x, 0.0));
            }
            points.push((x, at_or_below as f64 / self.len() as f64));
        }
        points
    }

    /// Returns the complementary cumulative distribution as steps (x, share of samples > x). It ends at
    /// the largest sample with the last positive share, because a log axis has no zero.
    pub fn ccdf(&self) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut share = 1.0;
        for (x, at_or_below) in self.ranks() {
            points.push((x, share));
            if at_or_below < self.len() {
                share = (self.len() - at_or_below) as f64 / self.len() as f64;
                points.push((x, share));
            }
        }
        points
    }

    /// Counts the finite samples in `bins` bins of equal width: (lower edge, upper edge, count). The last bin includes
    /// its upper edge; if all samples are equal, there is one bin.
    pub fn histogram(&self, bins: usize) -> Vec<(f64, f64, u64)> {
        self.binned(bins, |v| v, |v| v)
    }

    /// Counts the finite positive samples in `bins` bins of equal ratio: (lower edge, upper edge, count).
    pub fn log_histogram(&self, bins: usize) -> Vec<(f64, f64, u64)> {
        let positive = self.sorted.iter().copied().filter(|&v| v > 0.0).collect();
        Self { sorted: positive }.binned(bins, f64::ln, f64::exp)
    }

    /// Returns the distinct finite samples, each with the number of samples that do not exceed it.
    fn ranks(&self) -> impl Iterator<Item = (f64, usize)> + '_ {
        let is_last = |i: usize| self.sorted.get(i + 1).is_none_or(|next| *next != self.sorted[i]);
        let last = (0..self.sorted.len()).filter(move |&i| is_last(i));
        last.map(|i| (self.sorted[i], i + 1)).filter(|(x, _)| x.is_finite())
    }

    /// Counts the finite samples in bins of equal width under the transformation `to`, whose inverse is
    /// `from`.
    fn binned(&self, bins: usize, to: fn(f64) -> f64, from: fn(f64) -> f64) -> Vec<(f64, f64, u64)> {
        let finite: Vec<f64> = self.sorted.iter().copied().filter(|v| v.is_finite()).collect();
        let (Some(&lo), Some(&hi)) = (finite.first(), finite.last()) else { return Vec::new() };
        let width = (to(hi) - to(lo)) / bins.max(1) as f64;
        if !(width > 0.0 && width.is_finite()) {
            return vec![(lo, hi, finite.len() as u64)];
        }
        let edge = |i: usize| from(to(lo) + i as f64 * width);
        let bins = bins.max(1);
        let mut counts: Vec<_> = (0..bins).map(|i| (edge(i), edge(i + 1), 0)).collect();
        for value in finite {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "`as` saturates, and the bin is limited below"
            )]
            let bin = ((to(value) - to(lo)) / width) as usize;
            counts[bin.min(bins - 1)].2 += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn closed_cases() {
        let d = Distribution::from_samples([3.0, 1.0, 2.0, 2.0, f64::NAN]);
        assert_eq!(d.cdf(), [(1.0, 0.0), (1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(d.ccdf(), [(1.0, 1.0), (1.0, 0.75), (2.0, 0.75), (2.0, 0.25), (3.0, 0.25)]);
        assert_eq!(d.histogram(2), [(1.0, 2.0, 1), (2.0, 3.0, 3)]);
        assert_eq!((d.quantile(0.5), d.quantile(1.0), d.quantile(0.0)), (Some(2.0), Some(3.0), Some(1.0)));
        assert_eq!(d.quantile(1.5), None);
        let lost = Distribution::from_samples([1.0, f64::INFINITY]);
        assert_eq!(lost.cdf(), [(1.0, 0.0), (1.0, 0.5)]);
        assert_eq!(lost.ccdf(), [(1.0, 1.0), (1.0, 0.5)]);
        let none = Distribution::from_samples([]);
        assert!(none.is_empty() && none.cdf().is_empty() && none.histogram(3).is_empty());
        assert_eq!(Distribution::from_samples([5.0, 5.0]).log_histogram(4), [(5.0, 5.0, 2)]);
    }

    proptest! {
        #[test]
        fn bins_count_every_sample_once(samples in proptest::collection::vec(1e-6f64..1e6, 1..200), bins in 1usize..20) {
            let d = Distribution::from_samples(samples.iter().copied());
            for histogram in [d.histogram(bins), d.log_histogram(bins)] {
                prop_assert_eq!(histogram.iter().map(|b| b.2).sum::<u64>(), samples.len() as u64);
            }
        }

        #[test]
        fn cdf_and_ccdf_count_like_the_definition(samples in proptest::collection::vec(0i8..20, 1..60)) {
            let d = Distribution::from_samples(samples.iter().map(|&v| f64::from(v)));
            let share = |x: f64| samples.iter().filter(|&&v| f64::from(v) <= x).count() as f64 / samples.len() as f64;
            for (x, y) in d.cdf().into_iter().skip(1) {
                prop_assert!((y - share(x)).abs() < 1e-12);
            }
            prop_assert!(d.ccdf().iter().all(|&(_, y)| y > 0.0));
        }
    }
}
