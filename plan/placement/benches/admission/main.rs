//! Whom can we admit? Thesis §4.4.1, §4.4.2, §4.4.5 and §4.4.6 on the published traces.
//!
//! **Link.** 180 workloads arrive in random order at one client-server link. They are copies of the 41 traces
//! (copy c of trace c mod 41), each at a random moment of its trace, independent of each other. SLOs are
//! p99.9, drawn from {10, 20, 50, 100} ms among those of which the workload takes at most half when it is alone on the link, in both halves. The
//! link is slowed so that the 180 together ask for more than it has. Procedures decide on the first halves; the
//! admitted workloads' second halves are replayed, and each workload's p99.9 is held against its SLO, over the
//! whole half and over windows of three minutes (the last is as long as the half allows). OPT is §4.4.2's.
//!
//! **Storage.** 35 of the traces arrive at a server like the published one, slowed to a load that comes close to
//! the thesis's 60 %, SLOs drawn from 150–500 ms.
//!
//! **Speed.** One decision about the n-th workload, by model, independent and in dependent groups of 2–4.
//!
//! `cargo bench -p placement --bench admission` takes some seconds, `-- --full` the whole; `-- link`,
//! `-- storage`, `-- speed` run a part; `-- --seed N`, `-- --orders N`, `-- --replays N` orders for replay, which takes longest.

// The name that the shared support knows the crate by.
extern crate predict as predict;

mod outcome;
mod procedures;
mod speed;
#[path = "../support/mod.rs"]
mod support;
mod world;

use outcome::compare;
use procedures::{link_offices, models, worst_cases};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use speed::speed;
use support::{Through, asked, number_after};
use units::Nanos;
use world::{Arrival, World, feasible, slo};

/// The workloads of thesis §4.4.1.
const COPIES: usize = 180;
/// SLOs of thesis §4.3.3, seconds.
const SLOS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// A workload asks for no SLO of which it takes more than this part when alone.
const ALONE: f64 = 0.5;
/// A packet, bytes, and the link's rate before it is slowed, bytes per second.
const PACKET: f64 = 1500.0;
const LINK: f64 = 125e6;
/// Slowdown of the server against the published one: its load is then below 60 %, as in the thesis.
const STORAGE_SLOWER: f64 = 1.4;
/// The windows of thesis §4.3.3.
const WINDOW: Nanos = Nanos(180_000_000_000);

fn main() {
    let seed = number_after("--seed").unwrap_or(1) as u64;
    let all = !["link", "storage", "speed"].iter().any(|part| asked(part));
    let full = asked("--full");
    if all || asked("link") {
        link(seed, number_after("--orders").unwrap_or(if full { 100 } else { 2 }));
    }
    if all || asked("storage") {
        let orders = number_after("--orders").unwrap_or(if full { 16 } else { 2 });
        for percentile in [99.9, 90.0] {
            storage(seed, orders, percentile);
        }
    }
    if all || asked("speed") {
        speed(full);
    }
}

/// Returns the slowdown of the experiment's link against 125 MB/s.
fn link_factor() -> f64 {
    number_after("--slower").map_or(4.0, |factor| factor as f64)
}

fn link(seed: u64, orders: usize) {
    let factor = link_factor();
    let Some(world) = World::new(Through::Link, factor) else { return };
    let load = support::busiest(&world.first.iter()) * COPIES as f64 / world.first.len() as f64;
    println!(
        "Link of {:.2} MB/s, {COPIES} workloads (copies of {} traces) that ask for {load:.2} of it, {orders} orders, seed {seed}",
        LINK / factor / 1e6,
        world.first.len()
    );
    let allowed = feasible(&world);
    let choices: usize = allowed.iter().map(Vec::len).sum();
    println!(
        "{choices} of {} pairs of trace and SLO are at most half used when alone",
        allowed.len() * SLOS.len()
    );
    let draw = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut copies: Vec<usize> = (0..COPIES).filter(|c| !allowed[c % allowed.len()].is_empty()).collect();
        copies.shuffle(&mut random);
        let mut arrival = |copy: usize| {
            let trace = copy % allowed.len();
            let slos = &allowed[trace];
            Arrival { copy, trace, slo: slo(99.9, slos[random.random_range(0..slos.len())]) }
        };
        copies.into_iter().map(&mut arrival).collect()
    };
    compare(&world, &link_offices(&world, factor), orders, seed, 10, draw);
}

/// Thesis §4.4.6.
fn storage(seed: u64, orders: usize, percent: f64) {
    let factor = number_after("--slower").map_or(STORAGE_SLOWER, |factor| factor as f64);
    let Some(world) = World::new(Through::Server, factor) else { return };
    const WORKLOADS: usize = 35;
    let load = support::busiest(&world.first.iter()) * WORKLOADS as f64 / world.first.len() as f64;
    println!(
        "\nServer with storage, {factor} times slower, {WORKLOADS} workloads that ask for about {load:.2} of it, p{percent} within 150–500 ms, {orders} orders, seed {seed}"
    );
    let draw = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut traces: Vec<usize> = (0..world.first.len()).collect();
        traces.shuffle(&mut random);
        let mut arrival =
            |trace| Arrival { copy: trace, trace, slo: slo(percent, random.random_range(0.15..0.5)) };
        traces.into_iter().take(WORKLOADS).map(&mut arrival).collect()
    };
    let mut procedures = worst_cases(&world.first);
    procedures.extend(models(&world, number_after("--replays").unwrap_or(orders)));
    compare(&world, &procedures, orders, seed, orders, draw);
}
