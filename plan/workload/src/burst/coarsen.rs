//! Bounds the size of a curve that is merged again and again.
//!
//! [`BurstEnvelope::reduce`] chooses the best few segments of one hull and takes its time. Here all three hulls of a
//! curve are cut, in sorting time, so that it still merges: an edge is replaced by the corner above it, which has the
//! duration of its begin and the work of its end. The result dominates the curve in every rate, and what is merged with
//! it dominates what would be merged with the curve. Merging stays associative only for curves that are small enough.

use super::hull::{self, HullPoint};

/// A chain of at most `limit` points that dominates `chain` and ends with the same work.
pub(super) fn coarsened(mut chain: Vec<HullPoint>, limit: usize) -> Vec<HullPoint> {
    while chain.len() > limit {
        let mut edges: Vec<(f64, usize)> = (0..chain.len() - 1).map(|k| (excess(&chain, k), k)).collect();
        edges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Of two neighbouring edges only one is replaced in a pass.
        let mut is_touched = vec![false; chain.len()];
        let mut is_replaced = vec![false; chain.len()];
        let mut left = chain.len() - limit;
        for (_, k) in edges {
            if left > 0 && !is_touched[k] && !is_touched[k + 1] {
                is_touched[k] = true;
                is_touched[k + 1] = true;
                is_replaced[k] = true;
                left -= 1;
            }
        }
        let mut points = Vec::with_capacity(chain.len());
        let mut k = 0;
        while k < chain.len() {
            if is_replaced[k] {
                points.push(HullPoint { x: chain[k].x, y: chain[k + 1].y });
                k += 1;
            } else {
                points.push(chain[k]);
            }
            k += 1;
        }
        chain = hull::hull_of(points);
    }
    chain
}

/// The share by which b(r) grows, at the rate that is the slope of edge `k`, when the edge becomes a corner.
fn excess(chain: &[HullPoint], k: usize) -> f64 {
    let from = chain[k];
    let to = chain[k + 1];
    let rise = (to.y - from.y) as f64;
    let burst = from.y as f64 - rise / (to.x - from.x) as f64 * from.x as f64;
    rise / burst.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::{BurstCurve, StageArrival};
    use proptest::prelude::*;
    use std::num::NonZeroUsize;
    use units::{Nanos, Work};

    fn curve(gaps: &[(u64, u64)]) -> BurstCurve {
        let mut at = 0;
        let arrival = |&(gap, work): &(u64, u64)| {
            at += gap;
            StageArrival { at: Nanos(at), work: Work(work) }
        };
        BurstCurve::from_arrivals(&gaps.iter().map(arrival).collect::<Vec<_>>()).expect("some arrivals")
    }

    fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
        // Gaps that grow quickly give hulls of many corners.
        let gap = (0..40u32, 0..1000u64).prop_map(|(scale, part)| (1 << scale) * (1000 + part) / 1000);
        prop::collection::vec((gap, 1..10_000u64), 1..200)
    }

    proptest! {
        #[test]
        fn a_coarse_curve_dominates_alone_and_merged(
            first in arrivals(), second in arrivals(), corners in 1usize..12,
        ) {
            let corners = NonZeroUsize::new(corners).expect("at least one");
            let first = curve(&first);
            let second = curve(&second).shifted(first.last()).expect("in range");
            let merged = first.merge(&second).expect("in order");
            let [coarse_first, coarse_second] =
                [first.clone(), second].map(|curve| curve.coarsened(corners));
            prop_assert!(coarse_first.envelope().dominates(first.envelope()));
            let coarse = coarse_first.merge(&coarse_second).expect("in order").coarsened(corners);
            prop_assert!(coarse.envelope().dominates(merged.envelope()));
            prop_assert!(coarse.corners() <= corners.get());
            prop_assert_eq!((coarse.total(), coarse.count()), (merged.total(), merged.count()));
            // Written curves are accepted again.
            let text = serde_json::to_string(&coarse).expect("plain data");
            prop_assert_eq!(serde_json::from_str::<BurstCurve>(&text).expect("a curve"), coarse);
        }

        #[test]
        fn the_least_rate_is_the_inverse_of_the_burst(gaps in arrivals(), share in 0.0..1.2f64) {
            let envelope = curve(&gaps).envelope().clone();
            let all = envelope.vertices().last().expect("at least one").work.base_units();
            let burst = share * all;
            match envelope.least_rate(burst) {
                None => prop_assert!(envelope.vertices()[0].work.base_units() > burst),
                Some(rate) => {
                    prop_assert!(envelope.burst(rate) <= burst * (1.0 + 1e-9) + 1e-9 * all);
                    prop_assert!(rate == 0.0 || envelope.burst(rate * 0.999) > burst * (1.0 - 1e-9));
                }
            }
        }
    }
}
