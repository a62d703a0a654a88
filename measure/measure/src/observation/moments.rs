//! Mean and variance of the gaps between arrivals and of service times, from sums of integers.

use crate::observation::occupancy::RunOccupancy;
use crate::observation::sample::RequestRun;
use crate::observation::service::stack_time;
use observe::{ObservedRequest, RequestPoint};
use std::collections::BTreeMap;

/// Mean and variance of what arrives and of what it takes. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrafficMoments {
    /// Requests per nanosecond, at all workers together.
    pub arrival_rate: f64,
    /// The squared coefficient of variation of the gaps between all arrivals.
    pub gaps_scv: f64,
    /// The same for the gaps between the arrivals at each worker, on average over the gaps.
    pub worker_gaps_scv: f64,
    /// The mean service time.
    pub service_mean: f64,
    /// The variance of service times.
    pub service_variance: f64,
    /// The mean of what was measured from T1 to T6 beyond the time in the network stack and that in which the worker was
    /// busy with the request.
    pub measured_wait: f64,
}

impl TrafficMoments {
    /// The moments of all requests; service times are multiplied by `scale`.
    pub(super) fn new(runs: &[RequestRun], occupancies: &[RunOccupancy], scale: f64) -> Self {
        let requests = || runs.iter().flat_map(|run| &run.requests);
        let service = IntegerMoments::of(occupancies.iter().flat_map(|run| run.times.iter().copied()));
        let latency = IntegerMoments::of(requests().map(ObservedRequest::latency_from_stack));
        let stack = IntegerMoments::of(requests().map(stack_time));
        let gaps = gaps_by(runs, |_| 0);
        let all = gaps.values().next().copied().unwrap_or_default();
        Self {
            arrival_rate: if all.sum > 0 { all.count as f64 / all.sum as f64 } else { 0.0 },
            gaps_scv: all.scv(),
            worker_gaps_scv: mean_scv(&gaps_by(runs, |request| request.writer)),
            service_mean: service.mean() * scale,
            service_variance: service.variance() * scale * scale,
            measured_wait: (latency.mean() - service.mean() - stack.mean()).max(0.0),
        }
    }

    /// The squared coefficient of variation of service times.
    pub fn service_scv(&self) -> f64 {
        if self.service_mean > 0.0 { self.service_variance / self.service_mean.powi(2) } else { 0.0 }
    }
}

/// The gaps between neighbouring arrivals with the same key.
fn gaps_by(runs: &[RequestRun], key: impl Fn(&ObservedRequest) -> u32) -> BTreeMap<u32, IntegerMoments> {
    let mut gaps: BTreeMap<u32, IntegerMoments> = BTreeMap::new();
    for run in runs {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        for request in &run.requests {
            let key = key(request);
            let now = request.at(RequestPoint::Stack);
            if let Some(before) = last.insert(key, now) {
                gaps.entry(key).or_default().add(now - before);
            }
        }
    }
    gaps
}

fn mean_scv(gaps: &BTreeMap<u32, IntegerMoments>) -> f64 {
    let count: u128 = gaps.values().map(|moments| moments.count).sum();
    let sum: f64 = gaps.values().map(|moments| moments.scv() * moments.count as f64).sum();
    if count > 0 { sum / count as f64 } else { 0.0 }
}

/// Running sums of x and x², as Gandhi and Suresh keep them. Exact for values below 2⁴⁰ (18 minutes in nanoseconds) and
/// up to 2⁴⁷ of them.
#[derive(Debug, Clone, Copy, Default)]
struct IntegerMoments {
    count: u128,
    sum: u128,
    squares: u128,
}

impl IntegerMoments {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut moments = Self::default();
        values.for_each(|value| moments.add(value));
        moments
    }

    fn add(&mut self, value: u64) {
        let value = u128::from(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(&self) -> f64 {
        if self.count > 0 { self.sum as f64 / self.count as f64 } else { 0.0 }
    }

    fn variance(&self) -> f64 {
        let spread =
            self.count.saturating_mul(self.squares).saturating_sub(self.sum.saturating_mul(self.sum));
        let count = self.count.max(1) as f64;
        spread as f64 / count / count
    }

    fn scv(&self) -> f64 {
        let mean = self.mean();
        if mean > 0.0 { self.variance() / mean / mean } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::mean_wait::variance_view;
    use crate::observation::occupancy::occupancy;
    use crate::observation::testing::request;
    use observe::HeldUpTime;
    use std::num::NonZeroUsize;

    fn moments(requests: Vec<ObservedRequest>, scale: f64) -> TrafficMoments {
        let occupancies = [occupancy(&requests)];
        TrafficMoments::new(&[RequestRun::new(requests, 0)], &occupancies, scale)
    }

    #[test]
    fn by_hand() {
        // Gaps 10 and 30, services 4 and 8 and 6, waits 0 and 2 and 0.
        let found = moments(vec![request(0, 0, 4), request(10, 12, 8), request(40, 40, 6)], 2.0);
        assert_eq!((found.arrival_rate, found.gaps_scv, found.worker_gaps_scv), (0.05, 0.25, 0.25));
        assert_eq!((found.service_mean, found.service_variance), (12.0, 4.0 * 8.0 / 3.0));
        assert!((found.measured_wait - 2.0 / 3.0).abs() < 1e-12);
    }

    /// Every tenth request has its worker taken away for 50 service times, of which most is known.
    #[test]
    fn what_holds_a_worker_up_is_no_variance_of_service() {
        let stream = |held_up: u64| -> Vec<ObservedRequest> {
            let served = |n: u64| {
                let taken = if n.is_multiple_of(10) { held_up } else { 0 };
                let mut served = request(n * 1_000, n * 1_000, 8 + n % 5);
                (served.points[6], served.points[7]) = (served.points[6] + taken, served.points[7] + taken);
                served.held_up.processing = taken;
                served
            };
            (0..1_000).map(served).collect()
        };
        let quiet = moments(stream(0), 1.0);
        let hogged = moments(stream(500), 1.0);
        assert_eq!((hogged.service_mean, hogged.service_scv()), (quiet.service_mean, quiet.service_scv()));
        assert!(hogged.measured_wait > quiet.measured_wait, "what is not service is waiting");
        let unknown: Vec<ObservedRequest> = stream(500)
            .into_iter()
            .map(|request| ObservedRequest { held_up: HeldUpTime::default(), ..request })
            .collect();
        assert!(moments(unknown, 1.0).service_scv() > 5.0, "it would be, if it was not known");
        // So no more is promised than a steady service is worth without the hog.
        let promise = |moments: &TrafficMoments| {
            let view = variance_view(moments, NonZeroUsize::MIN).expect("it is stable");
            view.cuts.last().map(|cut| cut.latency / view.latency)
        };
        assert_eq!(promise(&hogged), promise(&quiet));
    }

    /// Two requests are read at once. The write of the first goes on for 6 after T6, and only then the second is begun.
    #[test]
    fn the_rest_of_a_write_is_service_of_its_request() {
        let mut first = request(0, 10, 10);
        let mut second = request(1, 10, 10);
        first.points = [0, 0, 0, 10, 14, 14, 18, 20];
        second.points = [1, 1, 1, 10, 14, 26, 28, 30];
        assert_eq!(occupancy(&[first, second]).times, [16, 4]);
    }

    #[test]
    fn workers_have_gaps_of_their_own() {
        // Two workers, each with a request every 20 and 40 ns, without variation.
        let mut requests: Vec<ObservedRequest> = (0..100).map(|n| request(n * 20, n * 20, 4)).collect();
        requests.extend((0..50).map(|n| ObservedRequest {
            reader: 2,
            writer: 2,
            ..request(n * 40 + 3, n * 40 + 3, 4)
        }));
        let found = moments(requests, 1.0);
        assert_eq!((found.worker_gaps_scv, found.service_variance), (0.0, 0.0));
        assert!(found.gaps_scv > 0.1, "{found:?}");
        assert_eq!(moments(Vec::new(), 1.0), TrafficMoments::default());
    }
}
