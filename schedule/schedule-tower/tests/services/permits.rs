//! Duration of a request's place: streaming bodies, panics, errors, calls to others, refusals.

use super::server::{
    Client, HttpVersion, assert_empties, collect, gate, request, run, serve, spawn, start_ns, until,
};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use schedule::{AsyncGate, AsyncGateSettings, ConcurrencyLimit};
use schedule_tower::GateLayer;
use std::future::{Future, Ready, ready};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

async fn keeps_its_place_until_the_body_ends(version: HttpVersion) {
    let gate = gate(1, None);
    let (address, script) = serve(GateLayer::new(gate.clone())).await;
    let client = Client::new(version, address).await;
    let mut streaming = client.send(request(0, "stream")).await.expect("the head of an answer");
    let first = streaming.body_mut().frame().await.expect("a frame").expect("no error");
    assert_eq!(first.into_data().expect("data"), "chunk");
    let mut next = spawn(&client, request(1, "answer"));
    until(&gate, 1, 1);
    script.go_on.add_permits(2);
    assert_eq!(collect(streaming).await.2, "chunk", "the second one");
    let answer = (&mut next.0).await.expect("it is not aborted").expect("an answer");
    assert_eq!(collect(answer).await.2, "done", "{version:?}");
    assert_empties(&gate);
    // The client disconnects in the middle.
    let mut streaming = client.send(request(2, "stream")).await.expect("the head of an answer");
    streaming.body_mut().frame().await.expect("a frame").expect("no error");
    until(&gate, 1, 0);
    drop(streaming);
    assert_empties(&gate);
}

#[test]
fn a_place_is_kept_until_the_body_has_ended() {
    run(async {
        keeps_its_place_until_the_body_ends(HttpVersion::One).await;
        keeps_its_place_until_the_body_ends(HttpVersion::Two).await;
    });
}

#[test]
fn a_handler_that_panics_gives_its_place_back() {
    run(async {
        let gate = gate(1, None);
        let (address, _) = serve(GateLayer::new(gate.clone())).await;
        for version in [HttpVersion::One, HttpVersion::Two] {
            let client = Client::new(version, address).await;
            assert!(client.send(request(0, "panic")).await.is_err(), "{version:?}");
            let client = Client::new(version, address).await;
            let answer = client.send(request(1, "answer")).await.expect("the place is free");
            assert_eq!(collect(answer).await.0, 200);
            assert_empties(&gate);
        }
    });
}

#[test]
fn others_are_served_while_a_handler_waits() {
    run(async {
        let gate = gate(1, None);
        let (address, script) = serve(GateLayer::new(gate.clone())).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let mut waits = spawn(&client, request(5, "wait"));
        testkit::wait_until(super::server::LONG, "a call", || gate.statistics().blocked == 1);
        let answer = client.send(request(9, "answer")).await.expect("it is admitted");
        assert_eq!(collect(answer).await.0, 200);
        // It returns with its age: behind an older one and before a younger one.
        let mut holds = spawn(&client, request(1, "hold"));
        until(&gate, 1, 0);
        let mut younger = spawn(&client, request(7, "answer"));
        until(&gate, 1, 1);
        script.go_on.add_permits(1);
        until(&gate, 1, 2);
        script.go_on.add_permits(1);
        for task in [&mut waits, &mut holds, &mut younger] {
            let response = (&mut task.0).await.expect("it is not aborted").expect("an answer");
            assert_eq!(collect(response).await.0, 200);
        }
        assert_eq!(*script.served.lock().unwrap(), [5, 9, 1, 7].map(start_ns));
        assert_empties(&gate);
    });
}

#[test]
fn who_waits_too_long_is_told_so() {
    run(async {
        let gate = gate(1, None);
        let layer = GateLayer::new(gate.clone()).wait_at_most(Duration::from_millis(5));
        let (address, script) = serve(layer).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let _holds = spawn(&client, request(0, "hold"));
        until(&gate, 1, 0);
        let refused = client.send(request(1, "answer")).await.expect("an answer");
        let (status, headers, body) = collect(refused).await;
        assert_eq!((status, headers["retry-after"].as_bytes(), &body[..]), (503, &b"1"[..], &b""[..]));
        let mut call = request(2, "answer");
        call.headers_mut().insert("content-type", "application/grpc+proto".parse().unwrap());
        let (status, headers, _) = collect(client.send(call).await.expect("an answer")).await;
        assert_eq!((status, &headers["grpc-status"]), (200, &"14".parse().unwrap()));
        assert_eq!((gate.statistics().given_up, script.served.lock().unwrap().len()), (2, 1));
        script.go_on.add_permits(1);
        assert_empties(&gate);
    });
}

#[test]
fn of_too_many_that_wait_the_youngest_is_refused() {
    run(async {
        let gate = gate(1, Some(2));
        let (address, script) = serve(GateLayer::new(gate.clone())).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let _holds = spawn(&client, request(0, "hold"));
        until(&gate, 1, 0);
        let mut youngest = spawn(&client, request(30, "answer"));
        until(&gate, 1, 1);
        let _others = [20, 10].map(|start| spawn(&client, request(start, "answer")));
        let refused = (&mut youngest.0).await.expect("it is not aborted").expect("an answer");
        assert_eq!(refused.status(), 503);
        until(&gate, 1, 2);
        script.go_on.add_permits(1);
        assert_empties(&gate);
        assert_eq!(*script.served.lock().unwrap(), [0, 10, 20].map(start_ns));
    });
}

/// A service that fails, by the error of its readiness or of its answer.
#[derive(Debug, Clone, Copy)]
struct Failing {
    is_ready: bool,
}

impl Service<Request<Empty<Bytes>>> for Failing {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Full<Bytes>>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(if self.is_ready { Ok(()) } else { Err("never ready") })
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        ready(Err("failed"))
    }
}

#[test]
fn errors_of_the_service_give_the_place_back() {
    run(async {
        let gate = gate(1, None);
        for (is_ready, expected) in [(true, "failed"), (false, "never ready"), (true, "failed")] {
            let mut service = GateLayer::new(gate.clone()).layer(Failing { is_ready });
            let answer = service.call(request(0, "answer")).await;
            assert_eq!(answer.map(|_| ()), Err(expected));
            assert_empties(&gate);
        }
    });
}

/// A service that becomes ready on request, with an answer without a body, as to an upgrade.
#[derive(Debug, Clone)]
struct Late(Arc<AtomicBool>);

impl Service<Request<Empty<Bytes>>> for Late {
    type Response = Response<Empty<Bytes>>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Empty<Bytes>>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        if self.0.load(Ordering::Relaxed) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

#[test]
fn readiness_is_waited_for_inside_and_an_empty_body_needs_no_place() {
    let gate = gate(1, None);
    let is_ready = Arc::new(AtomicBool::new(false));
    let mut service = GateLayer::new(gate.clone()).layer(Late(Arc::clone(&is_ready)));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(service.poll_ready(context).is_ready(), "whatever the inner service says");
    let mut answer = pin!(service.call(request(0, "answer")));
    assert!(answer.as_mut().poll(context).is_pending());
    assert_eq!(gate.statistics().serving, 1);
    is_ready.store(true, Ordering::Relaxed);
    let Poll::Ready(Ok(response)) = answer.as_mut().poll(context) else { panic!("it is ready") };
    assert_eq!((gate.statistics().serving, gate.statistics().left), (0, 1));
    drop(response);
}

#[test]
fn an_endless_stream_keeps_nobody_waiting_for_ever() {
    run(async {
        let gate = AsyncGate::new(AsyncGateSettings {
            limit: ConcurrencyLimit::Fixed(NonZeroU32::MIN),
            patience: Some(Duration::from_millis(5)),
            ..AsyncGateSettings::default()
        });
        let (address, _) = serve(GateLayer::new(gate.clone())).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let streaming = client.send(request(0, "stream")).await.expect("the head of an answer");
        let answer = client.send(request(1, "answer")).await.expect("an answer");
        assert_eq!(collect(answer).await.0, 200);
        assert_eq!(gate.statistics().overdue, 1);
        drop(streaming);
        assert_empties(&gate);
    });
}
