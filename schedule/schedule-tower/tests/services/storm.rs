//! Many requests of all kinds at once, some of them dropped by their clients at any time: no permit is
//! lost.

use super::server::{AbortOnDrop, Client, HttpVersion, assert_empties, collect, gate, request, serve};
use schedule::GateStatistics;
use schedule_tower::GateLayer;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Number of concurrent clients; every other one speaks HTTP/2.
const CLIENTS: u64 = 8;

/// Returns a pseudo-random number for each position of a run.
fn scattered(client: u64, count: u64) -> u64 {
    (client * 1_000_003 + count).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

/// Sends requests one after the other, abandoning some at any time, at least 60 and until this time.
async fn one_client(address: SocketAddr, number: u64, end: Instant) {
    let version = if number.is_multiple_of(2) { HttpVersion::One } else { HttpVersion::Two };
    let mut client = Client::new(version, address).await;
    let mut count = 0;
    while count < 60 || Instant::now() < end {
        let chance = scattered(number, count);
        count += 1;
        let act = ["answer", "answer", "hold", "stream", "panic", "wait"][(chance % 6) as usize];
        let sent = client.send(request(chance % 900, act));
        let patience = Duration::from_micros(chance / 6 % 8000);
        let answered = tokio::time::timeout(patience, async { Some(collect(sent.await.ok()?).await) }).await;
        if answered.is_ok_and(|answer| answer.is_none()) {
            // A panic ends the connection.
            client = Client::new(version, address).await;
        }
    }
}

/// Runs clients that cancel, handlers that panic, answers that stream, and waits that are too long, until
/// this time. Afterwards the gate is empty.
pub(crate) async fn storm(end: Instant) -> GateStatistics {
    let gate = gate(2, Some(6));
    let layer = GateLayer::new(gate.clone()).wait_at_most(Duration::from_millis(3));
    let (address, script) = serve(layer).await;
    let ticking = AbortOnDrop(tokio::spawn(async move {
        loop {
            script.go_on.add_permits(1);
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    }));
    let clients = (0..CLIENTS).map(|number| tokio::spawn(one_client(address, number, end)));
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("no client fails");
    }
    drop(ticking);
    assert_empties(&gate);
    gate.statistics()
}

#[test]
fn no_permit_is_lost_in_a_storm() {
    let now = super::server::run(storm(Instant::now()));
    assert!(now.given_up > 0 && now.given_up < now.entered, "{now:?}");
}
