//! The latencies that the arrivals alone would have caused, beside those that were measured.
//!
//! Arrivals are the measured ones (T1). A request waits in a queue, is served without interruption, and spends the usual
//! time in the network stack, which keeps no worker busy. Three servers, each of which has one cause of waiting more
//! than the one before:
//! - one queue for all workers, and every request served for the mean time (*Tales of the Tail*, section 3.2);
//! - one queue, and every request served for as long as its worker was busy with it;
//! - the same with a queue for each worker, which has the requests that it answered (its Fig. 8c).

use crate::observation::clients::{ClientBehaviour, client_behaviour};
use crate::observation::moments::TrafficMoments;
use crate::observation::occupancy::{RunOccupancy, occupancy};
use crate::observation::sample::RequestRun;
use crate::observation::service::ServiceEstimate;
use arrivals::TimedRequest;
use observe::{ObservedRequest, RequestPoint};
use sim::ideal::{IdealStation, LatencyDistribution, ServiceOrder};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use units::{Nanos, Percentile};

/// What is known better than it can be seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdealAssumptions {
    /// The mean time that a request takes a worker, with the network stack, from a run at saturation.
    pub service: Option<Nanos>,
    /// How many requests are served at a time, if that is not the number of threads that answer.
    pub workers: Option<NonZeroUsize>,
}

/// A server without anything but queueing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdealServer {
    /// One queue, and the same service time for all.
    ConstantService,
    /// One queue, and the measured service times.
    OneQueue,
    /// A queue for each worker, with the requests that it answered, and the measured service times.
    QueuePerWorker,
}

impl IdealServer {
    /// From the one with the fewest causes of waiting on.
    pub const ALL: [Self; 3] = [Self::ConstantService, Self::OneQueue, Self::QueuePerWorker];

    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConstantService => "one queue, constant service",
            Self::OneQueue => "one queue, measured service",
            Self::QueuePerWorker => "queue per worker",
        }
    }
}

/// Measured latencies (T6 − T1) beside ideal ones of the same requests.
#[derive(Debug, Clone, PartialEq)]
pub struct IdealComparison {
    /// The measured latencies, T6 − T1.
    pub measured: LatencyDistribution,
    /// What the servers of [`IdealServer::ALL`] would make of the same arrivals.
    pub ideal: [LatencyDistribution; 3],
    /// The first of them with the least and the largest mean service that the estimate allows.
    pub ideal_range: [LatencyDistribution; 2],
    /// What service times rest on.
    pub service: ServiceEstimate,
    /// Requests served at a time.
    pub workers: NonZeroUsize,
    /// The number of threads that answered.
    pub threads: usize,
    /// The share of the time in which workers are busy with what arrives; 1 and above is too much for them, and the
    /// latencies grow for as long as that lasts.
    pub utilisation: f64,
    /// Whether clients wait for answers.
    pub clients: ClientBehaviour,
    /// Mean and variance of gaps between arrivals and of service times, for formulas.
    pub moments: TrafficMoments,
    /// How many requests there were, of which only whole windows may be in the distributions.
    pub requests_seen: u64,
}

impl IdealComparison {
    /// Compares requests that were all kept, in any order; `None` without any.
    pub fn of_requests(requests: &[ObservedRequest], assumed: IdealAssumptions) -> Option<Self> {
        let run = RequestRun::new(requests.to_vec(), 0);
        compare(&[run], requests.len() as u64, assumed)
    }

    /// How many times the ideal of a server, by its place in [`IdealServer::ALL`], the measured percentile is.
    pub fn factor(&self, server: usize, percentile: Percentile) -> f64 {
        let ideal = self.ideal[server].percentile(percentile).0;
        self.measured.percentile(percentile).0 as f64 / ideal.max(1) as f64
    }
}

/// Plays the requests of a sample, of `requests_seen`; `None` without any that count.
pub(super) fn compare(
    runs: &[RequestRun],
    requests_seen: u64,
    assumed: IdealAssumptions,
) -> Option<IdealComparison> {
    let occupancies: Vec<RunOccupancy> = runs.iter().map(|run| occupancy(&run.requests)).collect();
    let service = ServiceEstimate::new(runs, &occupancies, assumed.service)?;
    let threads: BTreeSet<u32> =
        runs.iter().flat_map(|run| &run.requests).map(|request| request.writer).collect();
    let workers = assumed.workers.or(NonZeroUsize::new(threads.len()))?;
    let scale = service.scale();
    let play = IdealPlay { runs, workers, stack: service.stack_in_ideal() };
    let constant = |mean: f64| play.one_queue(&mut |_, _| nanoseconds(mean));
    let measured = |run: usize, place: usize| nanoseconds(occupancies[run].times[place] as f64 * scale);
    let moments = TrafficMoments::new(runs, &occupancies, scale);
    Some(IdealComparison {
        measured: play.measured()?,
        ideal: [
            constant(service.mean())?,
            play.one_queue(&mut { measured })?,
            play.queue_per_worker(&measured)?,
        ],
        ideal_range: [constant(service.least())?, constant(service.most())?],
        utilisation: moments.arrival_rate * service.mean() / workers.get() as f64,
        clients: client_behaviour(runs),
        threads: threads.len(),
        requests_seen,
        service,
        workers,
        moments,
    })
}

/// A time as whole nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn nanoseconds(time: f64) -> u64 {
    time.round() as u64
}

/// Plays runs through queues.
struct IdealPlay<'a> {
    runs: &'a [RequestRun],
    workers: NonZeroUsize,
    /// Time in the network stack of every request.
    stack: u64,
}

impl IdealPlay<'_> {
    fn measured(&self) -> Option<LatencyDistribution> {
        let counted =
            self.runs.iter().flat_map(|run| run.requests.iter().filter(|request| run.counts(request)));
        LatencyDistribution::new(counted.map(|request| Nanos(request.latency_from_stack())).collect())
    }

    /// All requests through one queue; `service` is asked for the number of a run and the place of a request in it.
    fn one_queue(&self, service: &mut dyn FnMut(usize, usize) -> u64) -> Option<LatencyDistribution> {
        let station = IdealStation { workers: self.workers, order: ServiceOrder::Fifo };
        let mut latencies = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            let requests: Vec<(&ObservedRequest, u64)> = run
                .requests
                .iter()
                .enumerate()
                .map(|(place, request)| (request, service(number, place)))
                .collect();
            self.play(station, run, &requests, &mut latencies);
        }
        LatencyDistribution::new(latencies)
    }

    /// The requests of each worker through a queue of its own.
    fn queue_per_worker(&self, service: &dyn Fn(usize, usize) -> u64) -> Option<LatencyDistribution> {
        let station = IdealStation { workers: NonZeroUsize::MIN, order: ServiceOrder::Fifo };
        let mut latencies = Vec::new();
        for (number, run) in self.runs.iter().enumerate() {
            let mut workers: BTreeMap<u32, Vec<(&ObservedRequest, u64)>> = BTreeMap::new();
            for (place, request) in run.requests.iter().enumerate() {
                workers.entry(request.writer).or_default().push((request, service(number, place)));
            }
            workers.values().for_each(|requests| self.play(station, run, requests, &mut latencies));
        }
        LatencyDistribution::new(latencies)
    }

    /// Adds the latencies of those that count.
    fn play(
        &self,
        station: IdealStation,
        run: &RequestRun,
        requests: &[(&ObservedRequest, u64)],
        latencies: &mut Vec<Nanos>,
    ) {
        let Some((first, _)) = requests.first() else { return };
        let origin = first.at(RequestPoint::Stack);
        let timed = requests.iter().map(|(request, service)| TimedRequest {
            arrival: Nanos(request.at(RequestPoint::Stack) - origin),
            service: Nanos(*service),
        });
        let counts = |place: usize| run.counts(requests[place].0);
        station
            .starts(timed, 0, |place, request, start| {
                if counts(place) {
                    latencies.push(start - request.arrival + request.service + Nanos(self.stack));
                }
            })
            .expect("runs are in the order of arrival");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::sample::RequestSample;
    use crate::observation::testing::{queueing_server, stream};

    const STACK: u64 = 3000;

    fn comparison(
        requests: &[ObservedRequest],
        kept_max: usize,
        assumed: IdealAssumptions,
    ) -> IdealComparison {
        let mut sample = RequestSample::new(kept_max);
        // As they are observed: in the order of their answers.
        let mut requests = requests.to_vec();
        requests.sort_by_key(|request| request.at(RequestPoint::Transmitted));
        requests.iter().for_each(|request| sample.add(request));
        let seen = sample.seen();
        compare(&sample.into_runs(), seen, assumed).expect("there are requests")
    }

    fn all(requests: &[ObservedRequest]) -> IdealComparison {
        comparison(requests, usize::MAX, IdealAssumptions::default())
    }

    #[test]
    fn a_server_that_only_queues_is_its_own_ideal() {
        for (workers, rate) in [(1, "poisson(700/s)"), (2, "poisson(1500/s)"), (4, "poisson(3600/s)")] {
            let requests = queueing_server(&stream(rate, "exp(1ms)", 20_000), 1, workers, STACK, |_| 0);
            let found = all(&requests);
            assert_eq!(found.ideal[1], found.measured, "{workers} workers");
            assert_eq!((found.workers.get(), found.service.stack), (workers, STACK));
            assert!(found.ideal[0].mean() < found.measured.mean(), "service that does not vary waits less");
            assert_eq!(found.factor(1, Percentile::new(99.9).expect("a percentile")), 1.0);
        }
        let constant = queueing_server(&stream("poisson(1500/s)", "1ms", 20_000), 1, 2, STACK, |_| 0);
        let found = all(&constant);
        assert_eq!((&found.ideal[0], &found.ideal[1]), (&found.measured, &found.measured));
        assert!(
            found.ideal_range.iter().all(|ideal| *ideal == found.measured),
            "no doubt without interruptions"
        );
    }

    #[test]
    fn a_server_with_a_queue_for_each_worker_is_its_own_ideal_too() {
        let requests =
            queueing_server(&stream("poisson(2400/s)", "exp(1ms)", 20_000), 3, 1, STACK, |place| place % 3);
        let found = all(&requests);
        assert_eq!((&found.ideal[2], found.threads), (&found.measured, 3));
        let p99 = Percentile::new(99.0).expect("a percentile");
        assert!(found.factor(1, p99) > 1.1, "one queue would wait less: {}", found.factor(1, p99));
    }

    #[test]
    fn constant_service_waits_as_in_m_d_1() {
        let stream = stream("poisson(700/s)", "1ms", 400_000);
        let requests = queueing_server(&stream, 1, 1, 0, |_| 0);
        let found = all(&requests);
        for t in [0.0, 0.5, 1.0, 2.0, 4.0] {
            let latency = Nanos::from_secs((1.0 + t) * 1e-3).expect("a time");
            let expected = 1.0 - testkit::waits_in_m_d_1(0.7, t);
            let ideal = found.ideal[0].above(latency);
            assert!((ideal - expected).abs() < 0.01, "t = {t}: {ideal} against {expected}");
        }
        assert!((found.utilisation - 0.7).abs() < 0.01, "{}", found.utilisation);
    }

    #[test]
    fn what_is_not_queueing_is_the_gap() {
        // Every tenth request is answered 5 ms late, for no reason that the worker would know.
        let mut requests = queueing_server(&stream("poisson(100/s)", "1ms", 5000), 1, 1, 0, |_| 0);
        for request in requests.iter_mut().step_by(10) {
            for point in &mut request.points[3..] {
                *point += 5_000_000;
            }
        }
        let found = all(&requests);
        let [p50, p99] = [50.0, 99.0].map(|percent| Percentile::new(percent).expect("a percentile"));
        assert!(found.factor(1, p50) < 1.1 && found.factor(1, p99) > 2.0, "{}", found.factor(1, p99));
    }

    #[test]
    fn overload_is_a_transient_and_no_error() {
        let requests = queueing_server(&stream("poisson(1500/s)", "1ms", 3000), 1, 1, 0, |_| 0);
        let found = all(&requests);
        assert!((1.4..1.6).contains(&found.utilisation), "{}", found.utilisation);
        assert_eq!(found.ideal[1], found.measured);
    }

    #[test]
    fn windows_say_what_all_requests_say() {
        // 100 seconds at 50 %; a worker is idle in every tenth of a second, so that a window forgets how it began.
        let requests = queueing_server(&stream("poisson(1000/s)", "500us", 100_000), 1, 1, 0, |_| 0);
        let found = comparison(&requests, 20_000, IdealAssumptions::default());
        let whole = all(&requests);
        assert!((5_000..20_000).contains(&found.measured.count()), "{}", found.measured.count());
        assert_eq!((found.requests_seen, whole.measured.count()), (100_000, 100_000));
        assert_eq!(found.ideal[1], found.measured, "the same requests, with the same latencies");
        assert!(
            whole.measured.distance(&found.measured) < 0.02,
            "{}",
            whole.measured.distance(&found.measured)
        );
    }

    #[test]
    fn what_is_known_better_is_used() {
        let requests = queueing_server(&stream("poisson(500/s)", "exp(1ms)", 20_000), 1, 1, STACK, |_| 0);
        let service = Some(Nanos(1_500_000));
        let found =
            comparison(&requests, usize::MAX, IdealAssumptions { service, workers: NonZeroUsize::new(2) });
        assert_eq!((found.workers.get(), found.threads), (2, 1));
        assert!((found.utilisation - 0.375).abs() < 0.02, "{}", found.utilisation);
        assert_eq!(found.ideal[0].values()[0], Nanos(1_500_000), "the network stack is in what was given");
        assert!((found.moments.service_mean - 1.5e6).abs() < 1.0, "{}", found.moments.service_mean);
    }

    #[test]
    fn nothing_has_no_ideal() {
        assert_eq!(compare(&[], 0, IdealAssumptions::default()), None);
    }
}
