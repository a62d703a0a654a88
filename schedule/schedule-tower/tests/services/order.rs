//! The oldest first for all kinds of requests, and after cancellations.

use super::server::{
    Client, HttpVersion, assert_empties, collect, gate, request, run, serve, slo, spawn, start_ns, until,
};
use gat::TagOrder;
use http::Request;
use http_body_util::Empty;
use schedule_tower::GateLayer;
use std::time::Duration;

async fn serves_the_oldest_first(version: HttpVersion) {
    let gate = gate(1, None);
    let (address, script) = serve(GateLayer::new(gate.clone())).await;
    let client = Client::new(version, address).await;
    let mut sent = vec![spawn(&client, request(0, "hold"))];
    until(&gate, 1, 0);
    for (count, start) in [50, 10, 40, 30, 20].into_iter().enumerate() {
        sent.push(spawn(&client, request(start, "answer")));
        until(&gate, 1, count + 1);
    }
    script.go_on.add_permits(1);
    for mut task in sent {
        let response = (&mut task.0).await.expect("it is not aborted").expect("an answer");
        assert_eq!(collect(response).await.0, 200);
    }
    assert_eq!(*script.served.lock().unwrap(), [0, 10, 20, 30, 40, 50].map(start_ns), "{version:?}");
    assert_empties(&gate);
}

#[test]
fn with_one_place_the_oldest_is_next() {
    run(async {
        serves_the_oldest_first(HttpVersion::One).await;
        serves_the_oldest_first(HttpVersion::Two).await;
    });
}

async fn forgets_the_cancelled(version: HttpVersion) {
    let gate = gate(1, None);
    let (address, script) = serve(GateLayer::new(gate.clone())).await;
    let client = Client::new(version, address).await;
    let holder = spawn(&client, request(0, "hold"));
    until(&gate, 1, 0);
    let mut waiting: Vec<_> =
        [10, 20, 30, 40].into_iter().map(|start| spawn(&client, request(start, "hold"))).collect();
    until(&gate, 1, 4);
    drop((waiting.remove(0), waiting.remove(1)));
    until(&gate, 1, 2);
    assert_eq!(gate.statistics().given_up, 2, "{version:?}");
    // The one in service is dropped as well: the oldest of the rest takes its place.
    drop(holder);
    until(&gate, 1, 1);
    testkit::wait_until(super::server::LONG, "the next one", || script.served.lock().unwrap().len() == 2);
    assert_eq!(script.served.lock().unwrap()[1], start_ns(20), "{version:?}");
    drop(waiting);
    assert_empties(&gate);
}

#[test]
fn closed_sockets_and_streams_give_places_back() {
    run(async {
        forgets_the_cancelled(HttpVersion::One).await;
        forgets_the_cancelled(HttpVersion::Two).await;
    });
}

#[test]
fn the_earliest_deadline_first() {
    run(async {
        let gate = gate(1, None);
        let order = TagOrder::Deadline { default_slo: slo(Duration::from_millis(100)) };
        let (address, script) = serve(GateLayer::new(gate.clone()).ordered_by(order)).await;
        let client = Client::new(HttpVersion::Two, address).await;
        let mut sent = vec![spawn(&client, request(0, "hold"))];
        until(&gate, 1, 0);
        // Start and deadline in milliseconds; without one, the deadline is 100 ms after the start.
        for (count, (start, deadline)) in
            [(1, Some(400)), (2, None), (3, Some(50)), (4, None)].into_iter().enumerate()
        {
            let mut baggage = format!("tailwright-start={}", start_ns(start));
            baggage.extend(deadline.map(|ms| format!(",tailwright-deadline={}", start_ns(ms))));
            let urgent = Request::get("http://service/").header("baggage", baggage);
            sent.push(spawn(&client, urgent.body(Empty::new()).expect("a request")));
            until(&gate, 1, count + 1);
        }
        script.go_on.add_permits(1);
        for mut task in sent {
            (&mut task.0).await.expect("it is not aborted").expect("an answer");
        }
        assert_eq!(*script.served.lock().unwrap(), [0, 3, 2, 4, 1].map(start_ns));
        assert_empties(&gate);
    });
}
