//! A client of the highest priority is served beside attacks on real servers. The measured table is
//! `cargo bench -p enforce --bench real_attacks`; this short version judges what does not depend on the machine.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(dead_code, reason = "the benchmark uses the rest")]

mod attacks;
mod processes;
#[path = "../proxy/mod.rs"]
mod proxy;
mod trial;
mod victim;

use attacks::RealAttack;
use std::time::Duration;
use trial::RealGround;

/// Arguments with which this program plays a role.
const ITSELF: &[&str] = &["--exact", "role", "--nocapture"];
/// Memory of a proxy: its limits for one address are 32 MiB of replies and as much of requests.
const MEMORY_MAX_MIB: f64 = 400.0;
const TIME: Duration = Duration::from_millis(1500);

/// Plays the role of a process that another test starts.
#[test]
fn role() {
    processes::play_role();
}

#[test]
fn the_priority_client_is_served_beside_every_attack() {
    for attack in RealAttack::ALL {
        let Some(ground) = RealGround::start(attack, false, ITSELF) else { continue };
        let round = ground.round(TIME, false);
        let beside = &round.proxied.beside;
        let asked = beside.asked();
        let served = beside.served;
        println!(
            "{}: served {served} of {asked}, p99 {:.2} ms alone, {:.2} beside ({:.2} in the proxy), {:.0} MiB",
            attack.name(),
            round.proxied.alone.p99(),
            beside.p99(),
            round.waiting_ms,
            round.memory_mib
        );
        assert!(asked > 20, "{}: requests were asked", attack.name());
        assert_eq!(served, asked, "{}: every request is served", attack.name());
        assert!(round.memory_mib < MEMORY_MAX_MIB, "{}: {} MiB", attack.name(), round.memory_mib);
    }
}
