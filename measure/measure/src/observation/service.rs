//! What is known of the time that requests take a worker, and how sure that is.

use crate::observation::occupancy::RunOccupancy;
use crate::observation::sample::RequestRun;
use observe::{ObservedRequest, RequestPoint, in_seconds};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Nanos, in_base_units};

/// So many requests must have been waiting for their worker, before the times between answers say something.
const WAITING_MIN: usize = 100;

/// The time that a request takes a worker, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ServiceEstimate {
    /// The mean time in which a worker was busy with a request: reading, processing and transmitting, without what is
    /// known to have held it up.
    #[serde(rename = "busy_mean_s", serialize_with = "in_seconds")]
    pub busy_mean: f64,
    /// Half of the requests took less: what held up some requests unseen is not in it.
    #[serde(rename = "busy_median_s", serialize_with = "in_seconds")]
    pub busy_median: f64,
    /// The mean time between answers of a worker for which the next request was waiting already: what a request takes
    /// with all that it brings along. `None` when that was seldom so.
    #[serde(rename = "between_answers_s", serialize_with = "in_seconds")]
    pub between_answers: Option<f64>,
    /// How often a request was waiting already.
    #[serde(rename = "waiting_requests")]
    pub waiting: usize,
    /// The median time in the network stack, T2 − T1.
    #[serde(rename = "network_stack_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub stack: u64,
    /// The mean that the user gave instead, with the network stack.
    #[serde(rename = "given_s", serialize_with = "in_base_units")]
    #[schemars(with = "Option<f64>")]
    pub given: Option<Nanos>,
}

impl ServiceEstimate {
    /// Estimates from all requests; `None` without any.
    pub(super) fn new(
        runs: &[RequestRun],
        occupancies: &[RunOccupancy],
        given: Option<Nanos>,
    ) -> Option<Self> {
        let mut times: Vec<u64> = occupancies.iter().flat_map(|run| run.times.iter().copied()).collect();
        let mut stack: Vec<u64> = runs.iter().flat_map(|run| &run.requests).map(stack_time).collect();
        let between: Vec<u64> =
            occupancies.iter().flat_map(|run| run.between_answers.iter().copied()).collect();
        Some(Self {
            busy_mean: mean(&times)?,
            busy_median: median(&mut times)? as f64,
            between_answers: mean(&between).filter(|_| between.len() >= WAITING_MIN),
            waiting: between.len(),
            stack: median(&mut stack)?,
            given,
        })
    }

    /// The mean in use.
    pub fn mean(&self) -> f64 {
        self.given.map_or(self.busy_mean, |given| given.0 as f64)
    }

    /// The least mean that fits what was seen: what is above the median may be interruptions.
    pub fn least(&self) -> f64 {
        if self.given.is_some() { self.mean() } else { self.busy_mean.min(self.busy_median) }
    }

    /// The largest mean that fits what was seen: a worker without a pause takes this time.
    pub fn most(&self) -> f64 {
        let mean = self.mean();
        if self.given.is_some() {
            mean
        } else {
            self.between_answers.map_or(mean, |between| between.max(mean))
        }
    }

    /// What measured times are multiplied by, so that their mean is the one in use.
    pub(super) fn scale(&self) -> f64 {
        if self.busy_mean > 0.0 { self.mean() / self.busy_mean } else { 1.0 }
    }

    /// The time in the network stack that the ideal adds: none if that given has it.
    pub(super) fn stack_in_ideal(&self) -> u64 {
        if self.given.is_some() { 0 } else { self.stack }
    }
}

/// The time in the network stack.
pub(super) fn stack_time(request: &ObservedRequest) -> u64 {
    request.at(RequestPoint::Ready) - request.at(RequestPoint::Stack)
}

fn mean(times: &[u64]) -> Option<f64> {
    let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
    (!times.is_empty()).then(|| sum as f64 / times.len() as f64)
}

/// The middle value, the lower one of two.
fn median(times: &mut [u64]) -> Option<u64> {
    let middle = times.len().checked_sub(1)? / 2;
    Some(*times.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::occupancy::occupancy;
    use crate::observation::testing::request;

    fn estimate(services: &[u64], given: Option<Nanos>) -> ServiceEstimate {
        let mut free = 0;
        let mut requests = Vec::new();
        for service in services {
            // Each is there before the one before it is done.
            requests.push(request(requests.len() as u64, free.max(requests.len() as u64), *service));
            free = free.max(requests.len() as u64 - 1) + service;
        }
        let occupancies = [occupancy(&requests)];
        ServiceEstimate::new(&[RequestRun::new(requests, 0)], &occupancies, given)
            .expect("there are requests")
    }

    #[test]
    fn interruptions_make_the_range_wide() {
        let mut services = vec![1000; 199];
        services[7] = 201_000;
        let found = estimate(&services, None);
        assert_eq!(
            (found.busy_median, found.busy_mean, found.stack),
            (1000.0, 1000.0 + 200_000.0 / 199.0, 0)
        );
        assert_eq!((found.least(), found.mean()), (1000.0, found.busy_mean));
        assert_eq!((found.waiting, found.between_answers.is_some()), (198, true));
        assert!((found.most() / found.mean() - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn what_is_given_is_used() {
        let found = estimate(&[1000, 3000], Some(Nanos(4000)));
        assert_eq!((found.least(), found.mean(), found.most(), found.scale()), (4000.0, 4000.0, 4000.0, 2.0));
        assert_eq!((found.between_answers, found.waiting), (None, 1), "one request says too little");
        assert_eq!(ServiceEstimate::new(&[], &[], None), None);
    }
}
