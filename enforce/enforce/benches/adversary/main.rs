//! Cost of hostile clients to a client of the highest priority, and their requests as seen by the server.
//!
//! `cargo bench -p enforce --bench adversary [-- ROUNDS] [-- NAME...]`: every script whose name contains a NAME,
//! or all. Each round measures the priority client alone, beside a plain flood of the same size, and beside the script;
//! the table has medians of the rounds' ratios. As root, server, proxy and priority client run under SCHED_FIFO.

#![allow(unreachable_pub, reason = "modules of one program")]
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../../tests/adversary/caller.rs"]
mod caller;
#[path = "../../tests/adversary/device.rs"]
mod device;
#[path = "../../tests/adversary/ground.rs"]
mod ground;
#[path = "../../tests/adversary/oracle.rs"]
mod oracle;
#[path = "../../tests/adversary/priority.rs"]
mod priority;
#[path = "../../tests/proxy/mod.rs"]
mod proxy;
#[path = "../../tests/adversary/scripts/mod.rs"]
mod scripts;
#[path = "../../tests/adversary/server.rs"]
mod server;
#[path = "../../tests/adversary/speech/mod.rs"]
mod speech;
#[path = "../../tests/adversary/trial.rs"]
mod trial;

use ground::GroundSetting;
use priority::{LatencySample, PriorityLane};
use std::time::Duration;
use trial::{HostileTrial, PairedRound};
use wire::Protocol;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

const HEAD: &str = "\
script                     client     mode    out |   alone   flood   beside |  flood    p99     max  per s |   most  lost  dup order wrong callback  others
                                                  |  p99 ms  p99 ms   p99 ms |  ratio  ratio   ratio  ratio |     at                              ms dev s/s";

fn row(trial: &HostileTrial<'_>, rounds: &[PairedRound]) {
    let ratios = |of: &dyn Fn(&PairedRound) -> f64| median(rounds.iter().map(of).collect());
    let ms = |of: &dyn Fn(&PairedRound) -> &LatencySample| {
        median(rounds.iter().map(|round| of(round).p99() / 1e6).collect())
    };
    let most = |of: &dyn Fn(&PairedRound) -> u64| rounds.iter().map(of).max().unwrap_or_default();
    let PriorityLane { protocol, pace, syncs, .. } = trial.lane;
    let client = format!("{protocol:?}{}", if syncs { " sync" } else { "" }).to_lowercase();
    println!(
        "{:<26} {client:<10} {:<7} {:>3} | {:>7.2} {:>7.2} {:>8.2} | {:>6.2} {:>6.2} {:>7.2} {:>6.2} | {:>6} {:>5} {:>4} {:>5} {:>5} {:>8.1} {:>7.2}",
        trial.script.name,
        if pace.is_some() { "paced" } else { "closed" },
        trial.setting.outstanding,
        ms(&|round| &round.alone),
        ms(&|round| &round.flood),
        ms(&|round| &round.beside),
        ratios(&|round| round.flood.p99() / round.alone.p99()),
        ratios(&|round| round.beside.p99() / round.alone.p99()),
        ratios(&|round| round.beside.max() / round.alone.max()),
        ratios(&|round| round.beside.per_s / round.alone.per_s),
        most(&|round| round.seen.most_at_once),
        most(&|round| round.seen.lost),
        most(&|round| round.seen.duplicated),
        most(&|round| round.seen.disordered),
        most(&|round| round.seen.wrong),
        rounds.iter().map(|round| round.seen.callback_ms).fold(0.0, f64::max),
        ratios(&|round| round.seen.best_effort_per_s),
    );
}

/// Returns variants of the priority client: unchanged, paced, and with a larger `outstanding`; beside
/// plain floods also with syncs.
fn variants<'a>(trial: HostileTrial<'a>) -> Vec<HostileTrial<'a>> {
    let fields = trial.setting.fields;
    let paced = PriorityLane { pace: Some(Duration::from_micros(2500)), ..trial.lane };
    let mut all = vec![
        trial,
        HostileTrial { lane: paced, ..trial },
        HostileTrial { setting: GroundSetting::LARGE.with(fields), ..trial },
    ];
    if trial.script.name.starts_with("flood") && trial.lane.protocol != Protocol::Memcached {
        all.push(HostileTrial { lane: PriorityLane { syncs: true, ..trial.lane }, ..trial });
    }
    all
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(3);
    let names: Vec<&String> = words.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    println!("{HEAD}");
    for script in scripts::ALL {
        if !names.is_empty() && !names.iter().any(|name| script.name.contains(name.as_str())) {
            continue;
        }
        for trial in variants(HostileTrial::new(script)) {
            let seen: Vec<PairedRound> = (0..rounds).map(|_| trial.round()).collect();
            row(&trial, &seen);
        }
    }
    println!("{rounds} rounds each; ratios are medians of the rounds', counts the worst of them");
}
