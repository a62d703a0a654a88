//! Sampled burst curves, as judges: the thesis's Algorithm 2.1 and the same arranged for vector lanes.

use workload::burst::StageArrival;

const NS_PER_S: f64 = 1e9;

/// Algorithm 2.1 (thesis §2.3.1) as printed: b in base units for each rate in base units per second.
pub(crate) fn algorithm_2_1(trace: &[StageArrival], rates: &[f64]) -> Vec<f64> {
    let mut b = vec![0.0; rates.len()];
    let mut bucket = vec![0.0; rates.len()];
    let mut previous = 0;
    for request in trace {
        let interarrival = (request.at.0 - previous) as f64 / NS_PER_S;
        for i in 0..rates.len() {
            bucket[i] -= rates[i] * interarrival;
            if bucket[i] < 0.0 {
                bucket[i] = 0.0;
            }
            bucket[i] += request.work.base_units();
            if bucket[i] > b[i] {
                b[i] = bucket[i];
            }
        }
        previous = request.at.0;
    }
    b
}

/// Rates whose buckets stay in registers during a pass over the trace.
const LANES: usize = 16;

/// The same values: a group of rates at a time, buckets in registers, maxima instead of branches.
pub(crate) fn vectorised(trace: &[StageArrival], rates: &[f64]) -> Vec<f64> {
    let steps: Vec<(f64, f64)> = std::iter::once(0)
        .chain(trace.windows(2).map(|a| a[1].at.0 - a[0].at.0))
        .zip(trace)
        .map(|(gap, a)| (gap as f64 / NS_PER_S, a.work.base_units()))
        .collect();
    let mut b = Vec::with_capacity(rates.len().next_multiple_of(LANES));
    for group in rates.chunks(LANES) {
        let mut rate = [0.0; LANES];
        rate[..group.len()].copy_from_slice(group);
        b.extend(lanes(&steps, rate));
    }
    b.truncate(rates.len());
    b
}

fn lanes(steps: &[(f64, f64)], rate: [f64; LANES]) -> [f64; LANES] {
    let mut bucket = [0.0_f64; LANES];
    let mut peak = [0.0_f64; LANES];
    for &(gap, work) in steps {
        for k in 0..LANES {
            let drained = bucket[k] - rate[k] * gap;
            bucket[k] = if drained > 0.0 { drained } else { 0.0 } + work;
            peak[k] = if peak[k] > bucket[k] { peak[k] } else { bucket[k] };
        }
    }
    peak
}
