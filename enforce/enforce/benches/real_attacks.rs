//! Cost of attacks on real servers to a client of the highest priority: memcached and nbdkit, each behind a proxy.
//!
//! `cargo bench -p enforce --bench real_attacks [-- ROUNDS] [-- NAME...] [-- --json] [--
//! --ordinary-server]`. Each round measures the client
//! alone and beside the attack, through the proxy and then on the server itself; the table has medians of the rounds.
//! The attackers have a low priority and a scheduler group of their own, because they share the CPUs. As root,
//! server, proxy and client run under SCHED_FIFO; with `--ordinary-server` the server does not.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../tests/real_attacks/attacks.rs"]
mod attacks;
#[path = "../tests/real_attacks/processes.rs"]
mod processes;
#[path = "../tests/proxy/mod.rs"]
mod proxy;
#[path = "../tests/real_attacks/trial.rs"]
mod trial;
#[path = "../tests/real_attacks/victim.rs"]
mod victim;

use attacks::RealAttack;
use serde_json::{Value, json};
use std::time::Duration;
use trial::{PairedSample, RealGround, RealRound};

const TIME: Duration = Duration::from_secs(2);

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn summary(attack: RealAttack, rounds: &[RealRound]) -> Value {
    let of = |value: &dyn Fn(&RealRound) -> f64| median(rounds.iter().map(value).collect());
    let direct = |value: fn(&PairedSample) -> f64| {
        let pairs: Vec<f64> = rounds.iter().filter_map(|round| round.direct.as_ref()).map(value).collect();
        (!pairs.is_empty()).then(|| median(pairs))
    };
    let asked: usize = rounds.iter().map(|round| round.proxied.beside.asked()).sum();
    let served: usize = rounds.iter().map(|round| round.proxied.beside.served).sum();
    let most = rounds.iter().map(|round| round.proxied.ratio()).fold(0.0, f64::max);
    json!({
        "attack": attack.name(),
        "rounds": rounds.len(),
        "realtime": rounds.iter().all(|round| round.proxied.beside.is_realtime),
        "alone_p99_ms": of(&|round| round.proxied.alone.p99()),
        "beside_p99_ms": of(&|round| round.proxied.beside.p99()),
        "ratio": of(&|round| round.proxied.ratio()),
        "ratio_max": most,
        "direct_alone_p99_ms": direct(|pair| pair.alone.p99()),
        "direct_beside_p99_ms": direct(|pair| pair.beside.p99()),
        "direct_ratio": direct(PairedSample::ratio),
        "waiting_p99_ms": of(&|round| round.waiting_ms),
        "at_server_p99_ms": of(&|round| round.served_ms),
        "served": served,
        "asked": asked,
        "proxy_memory_mib": of(&|round| round.memory_mib),
        "proxy_cpu": of(&|round| round.proxy_cpu),
        "server_cpu": of(&|round| round.server_cpu),
        "attack_cpu": of(&|round| round.attack_cpu),
    })
}

fn row(value: &Value) -> String {
    let number = |name: &str| value[name].as_f64().map_or("-".to_owned(), |number| format!("{number:.2}"));
    let cells = [
        "alone_p99_ms",
        "beside_p99_ms",
        "ratio",
        "ratio_max",
        "waiting_p99_ms",
        "at_server_p99_ms",
        "direct_alone_p99_ms",
        "direct_beside_p99_ms",
        "direct_ratio",
        "proxy_memory_mib",
        "proxy_cpu",
        "server_cpu",
        "attack_cpu",
    ];
    let [
        alone,
        beside,
        ratio,
        most,
        waiting,
        at_server,
        direct_alone,
        direct_beside,
        direct_ratio,
        memory,
        proxy,
        server,
        attack,
    ] = cells.map(number);
    let name = value["attack"].as_str().unwrap_or("");
    let served = format!("{}/{}", value["served"], value["asked"]);
    format!(
        "{name:<15} | {alone:>7} {beside:>7} {ratio:>6} {most:>6} | {waiting:>6} {at_server:>6} | {direct_alone:>7} {direct_beside:>7} \
         {direct_ratio:>6} | {served:>11} | {memory:>6} {proxy:>5} {server:>6} {attack:>6}"
    )
}

const HEAD: &str =
    "                | proxy: p99 ms      p99 ratio   | p99 ms of it  | server itself: p99 ms  |             | proxy  CPU s/s
attack          |   alone  beside median    max |  proxy server |   alone  beside  ratio |      served |    MiB proxy server attack";

fn main() {
    if processes::play_role() {
        return;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_json = words.iter().any(|word| word == "--json");
    let is_realtime = !words.iter().any(|word| word == "--ordinary-server");
    let words: Vec<String> = words.into_iter().filter(|word| !word.starts_with('-')).collect();
    let count: usize = words.iter().find_map(|word| word.parse().ok()).unwrap_or(5);
    let names: Vec<&String> = words.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    if !is_json {
        println!("{HEAD}");
    }
    let mut all = Vec::new();
    for attack in RealAttack::ALL {
        if !names.is_empty() && !names.iter().any(|name| attack.name().contains(name.as_str())) {
            continue;
        }
        // A server of its own for each round: attacks can end one.
        let round = |_| Some(RealGround::start(attack, is_realtime, &[])?.round(TIME, true));
        let rounds: Vec<RealRound> = (0..count).filter_map(round).collect();
        if rounds.is_empty() {
            continue;
        }
        let value = summary(attack, &rounds);
        if !is_json {
            println!("{}", row(&value));
        }
        all.push(value);
    }
    if is_json {
        println!("{}", Value::Array(all));
    } else {
        let is_realtime = all.iter().all(|value| value["realtime"] == true);
        let priority =
            if is_realtime { "under SCHED_FIFO" } else { "without real-time priority (not permitted)" };
        println!("medians of {count} rounds of {} s; proxy and client {priority}", TIME.as_secs());
    }
}
