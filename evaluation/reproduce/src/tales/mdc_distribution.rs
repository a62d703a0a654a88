//! The exact latency distribution of M/D/c, first come, first served, with which the simulated figures of §2 are
//! compared.
//!
//! Franx: with (k − 1)D ≤ t < kD,
//! P(W ≤ t) = e^{−λ(kD − t)} Σ_{j < kc} Q_{kc−j−1} (λ(kD − t))ʲ/j!, where Qⱼ is the probability of at most c + j
//! requests in the system. All terms are positive, unlike those of Erlang's formula for M/D/1, which cancel each other
//! beyond a few dozen service times.

use super::runs::SERVICE;

/// The latency distribution of M/D/c with a service time of [`SERVICE`].
pub(crate) struct MdcDistribution {
    workers: usize,
    /// Mean number of arrivals per service time.
    rate: f64,
    /// The probability that at most this many requests are in the system, by number.
    at_most: Vec<f64>,
}

/// Probabilities below this are taken for zero.
const NEGLIGIBLE: f64 = 1e-16;

impl MdcDistribution {
    /// Computes the stationary distribution of the number in the system, by iteration.
    ///
    /// # Panics
    /// Unless the utilisation is above 0 and below 1.
    pub(crate) fn new(workers: usize, utilisation: f64) -> Self {
        assert!(utilisation > 0.0 && utilisation < 1.0, "a stationary queue");
        let rate = workers as f64 * utilisation;
        let arrivals = poisson(rate);
        // Enough states for the tail, which falls by about e^{−2(1 − ρ)} per request.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let states = workers + arrivals.len() + (20.0 / (1.0 - utilisation)) as usize;
        let mut now = vec![0.0; states];
        now[0] = 1.0;
        loop {
            let next = after_one_service(&now, workers, &arrivals);
            let change = now.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            now = next;
            if change < NEGLIGIBLE {
                break;
            }
        }
        let mut at_most = Vec::with_capacity(states);
        let mut sum = 0.0;
        for probability in now {
            sum += probability;
            at_most.push(sum);
        }
        Self { workers, rate, at_most }
    }

    /// The probability that a latency is at most this, seconds: Franx' formula.
    pub(crate) fn cumulative(&self, latency: f64) -> f64 {
        let wait = latency / SERVICE - 1.0;
        if wait < 0.0 {
            return 0.0;
        }
        // The number of service times is not negative and far below 2⁶⁴. The distribution is continuous, so that rounding at
        // a border does not matter.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let k = wait.floor() as usize + 1;
        let left = self.rate * (k as f64 - wait);
        let mut term = (-left).exp();
        let mut sum = 0.0;
        for j in 0..k * self.workers {
            let at_most = self.workers + k * self.workers - j - 1;
            sum += term * self.at_most.get(at_most).copied().unwrap_or(1.0);
            term *= left / (j + 1) as f64;
        }
        sum
    }

    /// The latency that a share of the requests does not exceed, seconds.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut low = 0.0;
        let mut high = SERVICE;
        while self.cumulative(high) < share {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.cumulative(middle) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// The distribution of the number in the system one service time later: requests that are in service now have left, and
/// those that arrived meanwhile are there.
fn after_one_service(now: &[f64], workers: usize, arrivals: &[f64]) -> Vec<f64> {
    let mut next = vec![0.0; now.len()];
    for (number, p) in now.iter().enumerate() {
        for (arrived, q) in arrivals.iter().enumerate() {
            let later = number.saturating_sub(workers) + arrived;
            next[later.min(now.len() - 1)] += p * q;
        }
    }
    next
}

/// Poisson probabilities from 0 to where they are negligible.
fn poisson(mean: f64) -> Vec<f64> {
    let mut probabilities = Vec::new();
    let mut probability = (-mean).exp();
    while probability > NEGLIGIBLE || (probabilities.len() as f64) < mean {
        probabilities.push(probability);
        probability *= mean / probabilities.len() as f64;
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_is_as_erlang_says() {
        for utilisation in [0.3, 0.5, 0.7, 0.95] {
            let exact = MdcDistribution::new(1, utilisation);
            for t in [0.0, 0.3, 0.999, 1.0, 2.5, 7.0] {
                let here = exact.cumulative((1.0 + t) * SERVICE);
                let there = testkit::waits_in_m_d_1(utilisation, t);
                assert!((here - there).abs() < 1e-9, "{utilisation} {t}: {here} {there}");
            }
        }
    }

    /// Pollaczek and Khinchine: the mean wait is ρ/(2(1 − ρ)) services.
    #[test]
    fn means_are_those_of_the_formula() {
        for utilisation in [0.5, 0.95] {
            let exact = MdcDistribution::new(1, utilisation);
            let step = 0.001;
            let beyond = |i: i32| 1.0 - exact.cumulative((1.0 + (f64::from(i) + 0.5) * step) * SERVICE);
            let mean: f64 = (0..300_000).map(beyond).sum::<f64>() * step;
            let formula = utilisation / (2.0 * (1.0 - utilisation));
            assert!((mean / formula - 1.0).abs() < 1e-3, "{mean} {formula}");
        }
    }

    #[test]
    fn many_workers_wait_less_and_quantiles_invert() {
        let [one, four] = [1, 4].map(|workers| MdcDistribution::new(workers, 0.8));
        assert!(one.quantile(0.99) > four.quantile(0.99));
        for share in [0.5, 0.9, 0.999] {
            assert!((four.cumulative(four.quantile(share)) - share).abs() < 1e-6);
        }
        // By chance, more requests than workers arrive in a service time, and one waits.
        assert!(four.cumulative(SERVICE) < 1.0 && four.cumulative(SERVICE) > one.cumulative(SERVICE));
    }
}
