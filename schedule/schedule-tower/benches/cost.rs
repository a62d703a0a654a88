//! The cost of a request at the gate for tasks, beside a semaphore of tokio, which serves in the order of
//! arrival: alone, and with waiting futures. Futures are polled by hand, so that no runtime is measured.
//!
//! `cargo bench -p tailwright-schedule-tower --bench cost`

use futures_util::task::noop_waker;
use http::{Request, Response};
use http_body::Body;
use schedule::{AsyncGate, AsyncGateSettings, AsyncPermit, ConcurrencyLimit, EntryRefusal, RequestKey};
use schedule_tower::GateLayer;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::num::NonZeroU32;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

/// Measurements of each kind, in turn; the least counts, because others use the machine.
const MEASUREMENTS: usize = 7;
/// Requests of one measurement.
const REQUESTS: usize = 50_000;

fn main() {
    let gate = gate();
    let semaphore = Arc::new(Semaphore::new(1));
    let [ours, theirs] = fewest_ns([&|| alone(|key| gate.enter(RequestKey(key))), &|| {
        alone(|_| Arc::clone(&semaphore).acquire_owned())
    }]);
    line("without others", ours, theirs);
    for waiting in [10, 100, 1000, 10_000, 100_000] {
        let [ours, theirs] = fewest_ns([&|| ours_waiting(waiting), &|| theirs_waiting(waiting)]);
        line(&format!("{waiting} waiting"), ours, theirs);
    }
    let gated = GateLayer::new(gate.clone()).layer(Immediate);
    let [with_layer, bare] = fewest_ns([&|| calls(gated.clone()), &|| calls(Immediate)]);
    println!("the layer, from the call to the end of the body: {with_layer:.0} ns, without it {bare:.0} ns");
}

fn line(kind: &str, ours: f64, theirs: f64) {
    println!("{kind:>16}: gate {ours:>6.0} ns, semaphore {theirs:>6.0} ns, ratio {:.2}", ours / theirs);
}

/// Returns a gate with limit 1.
fn gate() -> AsyncGate {
    let limit = ConcurrencyLimit::Fixed(NonZeroU32::MIN);
    AsyncGate::new(AsyncGateSettings { limit, ..AsyncGateSettings::default() })
}

/// Returns the least of several measurements of each kind, in turn.
fn fewest_ns(kinds: [&dyn Fn() -> f64; 2]) -> [f64; 2] {
    let mut fewest = [f64::INFINITY; 2];
    for _ in 0..MEASUREMENTS {
        for (fewest, measure) in fewest.iter_mut().zip(kinds) {
            *fewest = fewest.min(measure());
        }
    }
    fewest
}

fn per_request(begin: Instant) -> f64 {
    begin.elapsed().as_nanos() as f64 / REQUESTS as f64
}

/// Returns the nanoseconds per request that enters and leaves at once.
fn alone<F: Future>(enter: impl Fn(u64) -> F) -> f64 {
    let waker = noop_waker();
    let context = &mut Context::from_waker(&waker);
    let begin = Instant::now();
    for key in 0..REQUESTS as u64 {
        assert!(pin!(enter(key)).poll(context).is_ready());
    }
    per_request(begin)
}

type Entry<P, E> = Pin<Box<dyn Future<Output = Result<P, E>>>>;

/// Returns the nanoseconds per request while this many wait: one leaves, the next takes its permit, and
/// another arrives.
fn handed_over<P, E>(waiting: usize, enter: impl Fn(u64) -> Entry<P, E>) -> f64 {
    let waker = noop_waker();
    let context = &mut Context::from_waker(&waker);
    let mut held = Vec::new();
    let mut line = VecDeque::new();
    for key in 0..=waiting as u64 {
        let mut entry = enter(key);
        match entry.as_mut().poll(context) {
            Poll::Ready(permit) => held.extend(permit.ok()),
            Poll::Pending => line.push_back(entry),
        }
    }
    let begin = Instant::now();
    for count in 0..REQUESTS {
        held.clear();
        let mut entry = line.pop_front().expect("it waits");
        let Poll::Ready(Ok(permit)) = entry.as_mut().poll(context) else { panic!("it is its turn") };
        held.push(permit);
        let mut entry = enter((waiting + count + 1) as u64);
        assert!(entry.as_mut().poll(context).is_pending());
        line.push_back(entry);
    }
    per_request(begin)
}

fn ours_waiting(waiting: usize) -> f64 {
    let gate = gate();
    handed_over::<AsyncPermit, EntryRefusal>(waiting, |key| Box::pin(gate.enter(RequestKey(key))))
}

fn theirs_waiting(waiting: usize) -> f64 {
    let semaphore = Arc::new(Semaphore::new(1));
    handed_over::<OwnedSemaphorePermit, _>(waiting, |_| Box::pin(Arc::clone(&semaphore).acquire_owned()))
}

/// A service that answers immediately.
#[derive(Debug, Clone, Copy)]
struct Immediate;

impl Service<Request<()>> for Immediate {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(String::from("done"))))
    }
}

/// Returns the nanoseconds per call of a service, with a tag in its headers, until its body has ended.
fn calls<S, R>(mut service: S) -> f64
where
    S: Service<Request<()>, Response = Response<R>>,
    R: Body,
{
    let waker = noop_waker();
    let context = &mut Context::from_waker(&waker);
    let begin = Instant::now();
    for _ in 0..REQUESTS {
        let mut request = Request::new(());
        let tag = http::HeaderValue::from_static("tailwright-start=1700000000123456789,user=7");
        request.headers_mut().insert("baggage", tag);
        let Poll::Ready(Ok(response)) = pin!(service.call(request)).poll(context) else {
            panic!("it is ready")
        };
        let mut body = pin!(response.into_body());
        while !matches!(body.as_mut().poll_frame(context), Poll::Ready(None)) {}
    }
    per_request(begin)
}
