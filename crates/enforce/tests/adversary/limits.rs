//! A limit holds for the device time that is served at the server, whatever the requests say that they are.

use crate::alone_on_the_machine;
use crate::caller::Caller;
use crate::ground::{Ground, GroundSetting, SILVER, SILVER_LIMIT};
use crate::scripts::requests::compound;
use std::time::{Duration, Instant};
use tailwright_enforce::deployment::FrontProtocol;

const TIME: Duration = Duration::from_secs(2);
const TAG: u8 = b's';

/// Silver asks as fast as it can on two connections, with limits that make it wait. What is at the device when the limit is
/// used up was let go before anybody knew how much it would be: as many as may be outstanding, and one.
fn check(protocol: FrontProtocol, ask: impl Fn(&mut Caller) + Sync) {
    let _alone = alone_on_the_machine();
    let ground = Ground::new(GroundSetting::SMALL.with("over = \"queue\""));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut caller = Caller::connect(&ground.fronts, protocol, SILVER, TAG).expect("a handshake");
                caller.stream.set_read_timeout(Some(TIME)).expect("a timeout");
                (0..16).for_each(|_| ask(&mut caller));
                caller.send().expect("the proxy reads");
                while begun.elapsed() < TIME && caller.reply().is_ok() {
                    ask(&mut caller);
                    caller.send().expect("the proxy reads");
                }
            });
        }
    });
    let counts = ground.server.counts();
    let (rate, burst) = SILVER_LIMIT;
    let (needed, longest) = (counts.needed_burst(TAG, rate), counts.longest(TAG));
    let unknown = longest * f64::from(ground.setting.outstanding + 1);
    assert!(counts.tag(TAG).answered > 0, "something is served");
    // Where service ends is not where it was let go: twice.
    assert!(
        needed <= 2.0 * (burst + unknown),
        "a burst of {burst} s was allowed, {needed} s needed; requests of {longest} s"
    );
}

#[test]
fn plain_reads() {
    check(FrontProtocol::Nbd, |caller| caller.read(4096));
    check(FrontProtocol::Nfs, |caller| caller.read(64 << 10));
}

#[test]
fn large_values() {
    check(FrontProtocol::Memcached, |caller| caller.read(1 << 20));
}

#[test]
fn large_values_on_a_meta_command() {
    check(FrontProtocol::Memcached, |caller| {
        caller.place += 1;
        let key = format!("s{}.{}", caller.place, 1 << 20);
        wire::memcached::client::meta_get(&mut caller.out, key.as_bytes(), &["v"]);
    });
}

/// Each key is an access of the device.
#[test]
fn values_of_many_keys() {
    check(FrontProtocol::Memcached, |caller| {
        caller.place += 1;
        let keys: Vec<Vec<u8>> = (0..10).map(|key| format!("s{key}.100000").into_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        wire::memcached::client::get(&mut caller.out, &keys);
    });
}

#[test]
fn read_plus() {
    check(FrontProtocol::Nfs, |caller| compound(caller, &[], 68, 64 << 10));
}

#[test]
fn reads_behind_an_unknown_operation() {
    check(FrontProtocol::Nfs, |caller| compound(caller, &[72, 0], 25, 64 << 10));
}
