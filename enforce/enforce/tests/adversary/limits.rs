//! A limit holds for the device time served at the server, whatever the requests claim.

use crate::alone_on_the_machine;
use crate::caller::Caller;
use crate::ground::{Ground, GroundSetting, SILVER, SILVER_LIMIT};
use crate::scripts::requests::compound;
use std::time::{Duration, Instant};
use wire::Protocol;

const TIME: Duration = Duration::from_secs(2);
const TAG: u8 = b's';

/// Requests of a connection that wait or are at the server.
const DEPTH: u32 = 16;
const CONNECTIONS: u32 = 2;

/// Maximum number of requests, waiting or outstanding, that may cost more than they claim.
const WHATEVER_WAITS: u32 = DEPTH * CONNECTIONS + 1;
/// The same, for outstanding requests only.
const WHATEVER_IS_OUTSTANDING: u32 = GroundSetting::SMALL.outstanding + 1;

/// Silver sends as fast as it can, with limits that make it wait. The sizes of up to `surprises` requests
/// at a time are unknown before they are dispatched.
fn check(protocol: Protocol, surprises: u32, ask: impl Fn(&mut Caller) + Sync) {
    let _alone = alone_on_the_machine();
    let ground = Ground::new(GroundSetting::SMALL.with("over = \"queue\""));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut caller = Caller::connect(&ground.fronts, protocol, SILVER, TAG).expect("a handshake");
                caller.stream.set_read_timeout(Some(TIME)).expect("a timeout");
                (0..DEPTH).for_each(|_| ask(&mut caller));
                caller.send().expect("the proxy reads");
                while begun.elapsed() < TIME && caller.reply().is_ok() {
                    ask(&mut caller);
                    caller.send().expect("the proxy reads");
                }
            });
        }
    });
    let (rate, burst) = SILVER_LIMIT;
    let (needed, longest, answered) = {
        let counts = ground.server.counts();
        (counts.needed_burst(TAG, rate), counts.longest(TAG), counts.tag(TAG).answered)
    };
    let unknown = longest * f64::from(surprises);
    assert!(answered > 0 && needed > 0.0, "{answered} answered in {needed} s of a device");
    // Service ends after the dispatch, which adds up to half.
    assert!(
        needed <= 1.5 * (burst + unknown),
        "a burst of {burst} s was allowed, {needed} s needed; requests of {longest} s"
    );
}

#[test]
fn plain_reads() {
    check(Protocol::Nbd, WHATEVER_IS_OUTSTANDING, |caller| caller.read(4096));
    check(Protocol::Nfs, WHATEVER_IS_OUTSTANDING, |caller| caller.read(64 << 10));
}

/// Requests without data are charged as the smallest read, which takes the device of these tests as long.
#[test]
fn control_requests() {
    for protocol in [Protocol::Nbd, Protocol::Nfs] {
        check(protocol, WHATEVER_IS_OUTSTANDING, Caller::sync);
    }
}

/// Control requests and data share the limit.
#[test]
fn control_requests_among_reads() {
    for protocol in [Protocol::Nbd, Protocol::Nfs] {
        check(protocol, WHATEVER_IS_OUTSTANDING, |caller| match caller.place % 2 {
            0 => caller.sync(),
            _ => caller.read(4096),
        });
    }
}

#[test]
fn large_values() {
    check(Protocol::Memcached, WHATEVER_WAITS, |caller| caller.read(1 << 20));
}

#[test]
fn large_values_on_a_meta_command() {
    check(Protocol::Memcached, WHATEVER_WAITS, |caller| {
        caller.place += 1;
        let key = format!("s{}.{}", caller.place, 1 << 20);
        wire::memcached::client::meta_get(&mut caller.out, key.as_bytes(), &["v"]);
    });
}

/// Each key is an access of the device.
#[test]
fn values_of_many_keys() {
    check(Protocol::Memcached, WHATEVER_WAITS, |caller| {
        caller.place += 1;
        let keys: Vec<Vec<u8>> = (0..10).map(|key| format!("s{key}.100000").into_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        wire::memcached::client::get(&mut caller.out, &keys);
    });
}

#[test]
fn read_plus() {
    check(Protocol::Nfs, WHATEVER_IS_OUTSTANDING, |caller| compound(caller, &[], 68, 64 << 10));
}

#[test]
fn reads_behind_an_unknown_operation() {
    check(Protocol::Nfs, WHATEVER_IS_OUTSTANDING, |caller| compound(caller, &[72, 0], 25, 64 << 10));
}

/// Waiting requests are not dispatched on a claim that others have shown to be too low: the limit is used
/// up.
#[test]
fn values_that_wait_while_the_first_are_measured() {
    check(Protocol::Memcached, WHATEVER_IS_OUTSTANDING, |caller| caller.read(1 << 20));
}

/// Small values teach the proxy that values are small; then large ones follow, repeatedly.
#[test]
fn values_that_are_small_and_then_large() {
    check(Protocol::Memcached, WHATEVER_WAITS, |caller| {
        let is_large = caller.place % 64 > 48;
        caller.read(if is_large { 1 << 20 } else { 1 });
    });
}
