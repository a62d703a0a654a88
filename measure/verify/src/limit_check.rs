//! Conformance of the traffic of a workload to its limits at every stage.

use crate::agreement::ServiceAgreement;
use crate::conformance::{ConformanceMeter, ExcessPeriod};
use model::{PerStage, Request, Stage, StageLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Computes the work of a request of a workload at each stage, in the unit of the limits: bytes on the
/// network, seconds of device time on storage. It is called for all requests in order. Limits of a stage
/// whose work is `None` are not judged.
pub type WorkFunction<'a> = Box<dyn FnMut(&Request) -> PerStage<Option<f64>> + 'a>;

/// A workload's traffic compared with one of its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitFinding {
    /// The stage that the limit applies to.
    pub stage: Stage,
    /// The work per second that the limit allows: bytes, or seconds of device time.
    pub rate_per_s: f64,
    /// The work that the limit allows at once.
    pub burst: f64,
    /// The smallest burst with which the traffic would conform to the rate.
    pub needed_burst: f64,
    /// True if the traffic conforms to the limit.
    pub kept: bool,
    /// When the traffic first exceeded the limit, in seconds since the origin.
    pub first_over_s: Option<f64>,
    /// The share of the work that arrived while the limit was exceeded, 0 to 1.
    pub share_over: f64,
    /// The periods in which the limit was exceeded; many are merged.
    pub periods: Vec<ExcessPeriod>,
}

impl LimitFinding {
    fn new(meter: ConformanceMeter, limit: &StageLimit) -> Self {
        let (conformance, periods) = meter.finish();
        Self {
            stage: limit.stage,
            rate_per_s: conformance.rate,
            burst: conformance.burst,
            needed_burst: conformance.needed_burst,
            kept: conformance.first_over.is_none(),
            first_over_s: conformance.first_over.map(Nanos::as_secs),
            share_over: conformance.share_over,
            periods,
        }
    }
}

/// Traffic compared with all limits of its workload.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct LimitCheck {
    /// A finding per limit, in their order, without the limits that cannot be judged.
    pub(crate) limits: Vec<LimitFinding>,
    /// True if some limits cannot be judged.
    pub(crate) is_partial: bool,
    /// For each request, true if the workload exceeded a limit when it arrived, or if its bound does not
    /// cover the request.
    pub(crate) over: Vec<bool>,
}

/// Compares requests with the limits of a workload, and with the largest request that its bound covers.
/// Their `arrival` must not decrease.
pub(crate) fn check_limits(
    requests: impl IntoIterator<Item = Request>,
    agreement: &ServiceAgreement,
    mut work: WorkFunction<'_>,
) -> LimitCheck {
    let limits = &agreement.limits;
    let mut meters: Vec<ConformanceMeter> =
        limits.iter().map(|limit| ConformanceMeter::new(limit.rate_per_s, limit.burst_work)).collect();
    // Without any request, all limits count as judged and kept.
    let mut is_known = vec![true; limits.len()];
    let mut over = Vec::new();
    for request in requests {
        let needs = work(&request);
        let mut is_over = !agreement.is_about(&needs);
        for ((meter, limit), is_known) in meters.iter_mut().zip(limits).zip(&mut is_known) {
            match needs[limit.stage] {
                Some(amount) => is_over |= meter.add(request.arrival, amount),
                None => *is_known = false,
            }
        }
        over.push(is_over);
    }
    let judged = meters.into_iter().zip(limits).zip(&is_known).filter(|(_, is_known)| **is_known);
    let limits = judged.map(|((meter, limit), _)| LimitFinding::new(meter, limit)).collect();
    LimitCheck { limits, is_partial: is_known.contains(&false), over }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Op, RateLimit};
    use units::Bytes;

    fn limit(stage: Stage, rate_per_s: f64, burst_work: f64) -> StageLimit {
        StageLimit { rate_per_s, burst_work, ..StageLimit::new(stage, RateLimit::default(), 0.0) }
    }

    fn request(ms: u64, size: u64) -> Request {
        let arrival = Nanos(ms * 1_000_000);
        Request { arrival, size: Bytes(size), op: Op::Read, offset: None, response: None }
    }

    /// Bytes on the network; storage is not known.
    fn bytes() -> WorkFunction<'static> {
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
        let slo = "99% < 1s".parse().unwrap();
        let agreement = ServiceAgreement { limits: limits.to_vec(), ..ServiceAgreement::slo_only("a", slo) };
        let check = check_limits([request(0, 20), request(1, 20), request(100, 20)], &agreement, bytes());
        assert!(check.is_partial && check.over == [false, true, false]);
        let kept: Vec<_> = check.limits.iter().map(|limit| (limit.stage, limit.kept)).collect();
        assert_eq!(kept, [(Stage::NetworkIn, true), (Stage::NetworkOut, false)]);
        let out = &check.limits[1];
        assert!((out.needed_burst - 39.0).abs() < 1e-9 && (out.share_over - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((out.first_over_s, out.periods.len()), (Some(0.001), 1));
        assert_eq!(check_limits([], &agreement, bytes()).over, [false; 0]);
    }

    /// A bound is about requests up to a size and a density; others count as beyond the limits.
    #[test]
    fn larger_and_denser_requests_are_beyond_the_agreement() {
        let slo = "99% < 1s".parse().unwrap();
        let agreement = ServiceAgreement {
            largest_request: Some(0.02),
            densest_answer: Some(2000.0),
            ..ServiceAgreement::slo_only("a", slo)
        };
        // A millisecond of device time for every byte until 8, then half of that.
        let work = || -> WorkFunction<'static> {
            Box::new(|request| {
                let bytes = request.size.0 as f64;
                let device = if bytes > 8.0 { bytes / 2000.0 } else { bytes / 1000.0 };
                PerStage::from_fn(|stage| Some(if stage == Stage::Storage { device } else { bytes }))
            })
        };
        let sizes = [1, 8, 9, 40, 41];
        let over = |agreement| check_limits(sizes.map(|size| request(0, size)), agreement, work()).over;
        assert_eq!(over(&agreement), [false, false, false, false, true]);
        let sparse = ServiceAgreement { densest_answer: Some(1000.0), ..agreement.clone() };
        assert_eq!(over(&sparse), [false, false, true, true, true]);
        let any = ServiceAgreement { densest_answer: None, largest_request: None, ..sparse.clone() };
        assert_eq!(over(&any), [false; 5]);
    }
}
