//! Whether a workload keeps to its limits at every stage.

use crate::{Bucket, Period};
use model::{PerStage, Request, Stage, StageLimit};
use serde::{Deserialize, Serialize};
use units::Nanos;

/// What the requests of one workload, in order, need at each stage in the unit of its limits: bytes on the network,
/// seconds of device time on storage. None where nobody can say: those limits are not judged.
pub type Work<'a> = Box<dyn FnMut(&Request) -> PerStage<Option<f64>> + 'a>;

/// A workload's traffic against one of its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFinding {
    /// Where the limit applies.
    pub stage: Stage,
    /// Work per second that it allows: bytes, or seconds of device time.
    pub rate_per_s: f64,
    /// Work that it allows at once.
    pub burst: f64,
    /// The smallest burst with which the traffic would keep to the rate.
    pub needed_burst: f64,
    /// Whether the traffic kept to the limit.
    pub kept: bool,
    /// When it was first beyond it, seconds since the origin.
    pub first_over_s: Option<f64>,
    /// Share of the work that came while it was, 0 to 1.
    pub share_over: f64,
    /// When it was; many periods are told together.
    pub periods: Vec<Period>,
}

/// Traffic against all limits.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Traffic {
    /// By limit, without those that cannot be judged.
    pub(crate) limits: Vec<LimitFinding>,
    /// Whether there are limits that cannot be judged.
    pub(crate) is_partial: bool,
    /// By request, whether it came while the workload was beyond a limit.
    pub(crate) over: Vec<bool>,
}

/// Follows requests in order of `arrival`, which does not decrease.
pub(crate) fn traffic(
    requests: impl IntoIterator<Item = Request>,
    limits: &[StageLimit],
    mut work: Work<'_>,
) -> Traffic {
    let mut buckets: Vec<Bucket> =
        limits.iter().map(|limit| Bucket::new(limit.rate_per_s, limit.burst_work)).collect();
    // Nobody says what the work of no request would be.
    let mut known = vec![true; limits.len()];
    let mut over = Vec::new();
    for request in requests {
        let needs = work(&request);
        let mut is_over = false;
        for ((bucket, limit), known) in buckets.iter_mut().zip(limits).zip(&mut known) {
            match needs[limit.stage] {
                Some(amount) => is_over |= bucket.push(request.arrival, amount),
                None => *known = false,
            }
        }
        over.push(is_over);
    }
    let judged = buckets.into_iter().zip(limits).zip(&known).filter(|(_, known)| **known);
    let limits = judged.map(|((bucket, limit), _)| finding(bucket, limit)).collect();
    Traffic { limits, is_partial: known.contains(&false), over }
}

fn finding(bucket: Bucket, limit: &StageLimit) -> LimitFinding {
    let (found, periods) = bucket.finish();
    LimitFinding {
        stage: limit.stage,
        rate_per_s: found.rate,
        burst: found.burst,
        needed_burst: found.needed_burst,
        kept: found.first_over.is_none(),
        first_over_s: found.first_over.map(Nanos::as_secs),
        share_over: found.share_over,
        periods,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Op, RateLimit};
    use units::Bytes;

    fn limit(stage: Stage, rate_per_s: f64, burst_work: f64) -> StageLimit {
        StageLimit { stage, limit: RateLimit::default(), rate_per_s, burst_work }
    }

    fn request(ms: u64, size: u64) -> Request {
        let arrival = Nanos(ms * 1_000_000);
        Request { arrival, size: Bytes(size), op: Op::Read, offset: None, response: None }
    }

    /// Bytes on the network; storage is not known.
    fn bytes() -> Work<'static> {
        Box::new(|request| {
            PerStage::from_fn(|stage| (stage != Stage::Storage).then_some(request.size.0 as f64))
        })
    }

    #[test]
    fn every_stage_has_its_own_answer() {
        let limits = [
            limit(Stage::NetworkIn, 1000.0, 50.0),
            limit(Stage::Storage, 0.5, 0.1),
            limit(Stage::NetworkOut, 1000.0, 30.0),
        ];
        let found = traffic([request(0, 20), request(1, 20), request(100, 20)], &limits, bytes());
        assert!(found.is_partial && found.over == [false, true, false]);
        let kept: Vec<_> = found.limits.iter().map(|limit| (limit.stage, limit.kept)).collect();
        assert_eq!(kept, [(Stage::NetworkIn, true), (Stage::NetworkOut, false)]);
        let out = &found.limits[1];
        assert!((out.needed_burst - 39.0).abs() < 1e-9 && (out.share_over - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((out.first_over_s, out.periods.len()), (Some(0.001), 1));
        assert_eq!(traffic([], &limits, bytes()).over, []);
    }
}
