//! The judges of the soak (`benches/soak`) can fail: servers that occasionally lose a write or change a
//! byte are detected through the proxy, and honest ones are not accused.

#![allow(unreachable_pub, dead_code, reason = "modules of a program")]

#[path = "../benches/soak/client.rs"]
mod client;
#[path = "../benches/soak/codec.rs"]
mod codec;
#[path = "../benches/soak/configurations.rs"]
mod configurations;
#[path = "../benches/soak/hostile.rs"]
mod hostile;
#[path = "../benches/soak/ledger.rs"]
mod ledger;
mod mini;
#[path = "../benches/soak/world.rs"]
mod world;

use client::{Client, Plan};
use codec::Protocol;
use enforce::storage::{Proxy, ProxyHandle};
use mini::Mini;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use world::{Fronts, World};

/// Disturbances beside the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// Hostile clients, and frequent policy changes.
    HarmAndChange,
}

const PROTOCOLS: [Protocol; 3] = [Protocol::Nbd, Protocol::Memcached, Protocol::Nfs];

/// Runs clients of every protocol until this many answers or an error. Returns the numbers of lost and
/// corrupted blocks.
fn run(wrong_read: u64, dropped_write: u64, trouble: Trouble) -> (u64, u64) {
    let nbd = Mini::nbd();
    let memcached = Mini::memcached();
    let nfs = Mini::nfs();
    for mini in [&nbd, &memcached, &nfs] {
        mini.store.wrong_read.store(wrong_read, SeqCst);
        mini.store.dropped_write.store(dropped_write, SeqCst);
    }
    let servers =
        Fronts { nbd: nbd.address, memcached: memcached.address, nfs: nfs.address, mount: nfs.address };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let anywhere = Fronts { nbd: any, memcached: any, nfs: any, mount: any };
    let hosts = configurations::hosts(anywhere, servers, "", &mut StdRng::seed_from_u64(1));
    let proxy = Proxy::bind(configurations::options(&hosts)).unwrap();
    let at = proxy.addresses();
    let fronts = Fronts { nbd: at[0], memcached: at[1], nfs: at[2], mount: at[3] };
    let remote = proxy.handle();
    let serving = std::thread::spawn(move || proxy.run().unwrap());
    let world = World { proxies: vec![fronts], servers, ..World::default() };
    std::thread::scope(|scope| {
        if trouble == Trouble::HarmAndChange {
            (0..3).for_each(|seed| {
                drop(scope.spawn({
                    let world = &world;
                    move || hostile::run(world, &PROTOCOLS, seed)
                }));
            });
            scope.spawn(|| changes(&world, &remote, anywhere));
        }
        for (owner, protocol) in (1..).zip(PROTOCOLS) {
            let from = Ipv4Addr::LOCALHOST;
            let plan =
                Plan { owner, protocol, from, base: 0, depth: 8, per_second: 1000.0, seed: owner.into() };
            let world = &world;
            scope.spawn(move || Client::new(plan, world).run());
        }
        let _stop = StopAtEnd(&world.stop);
        let tally = &world.tally;
        testkit::wait_until(Duration::from_secs(300), "2500 requests or a loss", || {
            let harmed = tally.lost.load(SeqCst) + tally.corrupt.load(SeqCst) + tally.cut.load(SeqCst);
            harmed > 0 || tally.requests.load(SeqCst) >= 2500
        });
    });
    remote.stop();
    serving.join().unwrap();
    let faults = world.faults.into_inner().unwrap();
    assert_eq!(world.tally.cut.into_inner(), 0, "{faults:?}");
    (world.tally.lost.into_inner(), world.tally.corrupt.into_inner())
}

/// Stops all threads of a world on drop, also by a panic.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Changes policy and hosts as fast as the proxy accepts them.
fn changes(world: &World, remote: &ProxyHandle, anywhere: Fronts) {
    let mut random = StdRng::seed_from_u64(2);
    while !world.stopped() {
        let fields = configurations::fields(&mut random);
        let hosts = configurations::hosts(anywhere, world.servers, &fields, &mut random);
        let deployment = configurations::options(&hosts).deployment;
        remote.configure(Some(configurations::policy(&mut random)), Some(deployment)).unwrap();
        world::count(&world.tally.policies, 1);
    }
}

#[test]
fn harm_and_changes_of_policy_cost_nobody_else_anything() {
    assert_eq!(run(0, 0, Trouble::HarmAndChange), (0, 0));
}

#[test]
fn honest_servers_are_not_accused() {
    assert_eq!(run(0, 0, Trouble::None), (0, 0));
}

#[test]
fn a_write_that_is_lost_is_found() {
    let (lost, _) = run(0, 50, Trouble::None);
    assert!(lost > 0);
}

#[test]
fn a_byte_that_changes_is_found() {
    let (_, corrupt) = run(50, 0, Trouble::None);
    assert!(corrupt > 0);
}
