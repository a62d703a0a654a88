//! Coverage of the intervals for latencies that depend on each other. The reference is a queue with known
//! percentiles.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;
use verify::judge;

/// Response times of M/M/1 with service of 1 ms at this load, from the stationary state, by Lindley's equation.
fn queue(load: f64, count: usize, seed: u64) -> Vec<Option<Nanos>> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut exponential = |mean: f64| -(1.0 - random.random::<f64>()).ln() * mean;
    // The stationary wait is 0 or exponential; here from a long warm-up instead, which is as good.
    let mut wait = 0.0f64;
    let mut response = || {
        let service = exponential(1e6);
        let response = wait + service;
        wait = (response - exponential(1e6 / load)).max(0.0);
        response
    };
    for _ in 0..2000 {
        response();
    }
    // Responses are far below 2⁵³ ns.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0..count).map(|_| Some(Nanos(response() as u64))).collect()
}

/// Returns the share of 100 samples whose interval contains the true percentile.
fn coverage(load: f64, percent: f64, count: usize) -> f64 {
    // Responses are exponential with mean 1 ms ÷ (1 − load).
    let truth = -(1.0 - percent / 100.0f64).ln() * 1e6 / (1.0 - load);
    let slo = format!("{percent}% < 1s").parse().unwrap();
    let holds = |seed: &u64| {
        let found = judge(queue(load, count, *seed), slo, 0.95);
        let low = found.ci_low_s.is_none_or(|low| low * 1e9 <= truth);
        let high = found.ci_high_s.is_none_or(|high| high * 1e9 >= truth);
        low && high
    };
    (0..100).filter(holds).count() as f64 / 100.0
}

#[test]
fn intervals_hold_on_dependent_latencies() {
    let cases = [(0.5, 99.0, 10_000), (0.8, 50.0, 10_000), (0.8, 99.0, 20_000), (0.9, 99.0, 20_000)];
    for (load, percent, count) in cases {
        let got = coverage(load, percent, count);
        println!("load {load}, p{percent}, {count} requests: {:.1} % of intervals hold", 100.0 * got);
        // 95 % is promised; a few less where dependence reaches far, and 5 % by chance.
        assert!(got >= 0.8, "load {load}, p{percent}: only {got} of intervals contain the percentile");
    }
}
