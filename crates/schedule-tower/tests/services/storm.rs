//! Many requests of all kinds at once, of which clients drop some at any time: no permit is lost.

use super::server::{AbortOnDrop, Client, HttpVersion, assert_empties, collect, gate, request, run, serve};
use schedule::{AsyncGate, ConcurrencyLimit};
use tailwright_schedule_tower::GateLayer;
use std::num::NonZeroU32;
use std::time::Duration;

/// Requests of one client.
const REQUESTS: u64 = 60;

/// A number that looks like chance, for each place of a run.
fn scattered(client: u64, count: u64) -> u64 {
    (client * 1_000_003 + count).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
}

async fn one_client(version: HttpVersion, address: std::net::SocketAddr, number: u64) {
    let mut client = Client::new(version, address).await;
    for count in 0..REQUESTS {
        let chance = scattered(number, count);
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

#[test]
fn no_permit_is_lost_in_a_storm() {
    run(async {
        let gate = gate(2, Some(6));
        let layer = GateLayer::new(gate.clone()).wait_at_most(Duration::from_millis(3));
        let (address, script) = serve(layer).await;
        let ticking = AbortOnDrop(tokio::spawn(async move {
            loop {
                script.go_on.add_permits(1);
                tokio::time::sleep(Duration::from_micros(300)).await;
            }
        }));
        let clients = (0..8).map(|number| {
            let version = if number % 2 == 0 { HttpVersion::One } else { HttpVersion::Two };
            tokio::spawn(one_client(version, address, number))
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("no client fails");
        }
        drop(ticking);
        assert_empties(&gate);
        assert_ends_well(&gate);
    });
}

/// As many places are there as at the beginning.
fn assert_ends_well(gate: &AsyncGate) {
    let now = gate.statistics();
    assert!(now.given_up > 0 && now.given_up < now.entered, "{now:?}");
    assert_eq!(now.limit, NonZeroU32::new(2));
    gate.set_limit(ConcurrencyLimit::Unlimited);
}
