//! The final report.

use crate::world::World;
use enforce::storage::ProxySnapshot;
use model::OperationError;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn of(counter: &AtomicU64) -> u64 {
    counter.load(SeqCst)
}

pub fn progress(world: &World, elapsed: Duration, memory: &[u64]) {
    let tally = &world.tally;
    eprintln!(
        "soak: {:>5} s: {} requests, {} MB compared, {} lost, {} corrupt, {} cut; the proxy holds {} KiB",
        elapsed.as_secs(),
        of(&tally.requests),
        of(&tally.compared) / 1_000_000,
        of(&tally.lost),
        of(&tally.corrupt),
        of(&tally.cut),
        memory.last().copied().unwrap_or_default(),
    );
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Prints the report, and returns the exit code.
pub fn print(
    world: &World,
    memory: &[u64],
    left: Result<ProxySnapshot, OperationError>,
    time: Duration,
) -> u8 {
    let tally = &world.tally;
    let row = |name: &str, value: u64| println!("{name:<46} {value:>14}");
    println!("soak of {} s", time.as_secs());
    row("requests answered", of(&tally.requests));
    row("bytes written and acknowledged", of(&tally.written));
    row("bytes compared", of(&tally.compared));
    row("blocks lost", of(&tally.lost));
    row("blocks corrupted", of(&tally.corrupt));
    row("requests refused by a server", of(&tally.refused));
    row("connections", of(&tally.connections));
    row("connections killed", of(&tally.killed));
    row("connections ended with answers awaited", of(&tally.half_closed));
    row("connections cut off without reason", of(&tally.cut));
    row("hostile connections", of(&tally.hostile));
    row("servers restarted", of(&tally.servers));
    row("proxies restarted", of(&tally.proxies));
    row("policies changed", of(&tally.policies));
    row("longest time without an answer, ms", of(&tally.gap));
    let quarter = memory.len() / 4;
    let quarters: Vec<u64> =
        (0..4).map(|part| median(&memory[part * quarter..(part + 1) * quarter])).collect();
    println!("resident memory of the proxy, KiB, medians of the quarters: {quarters:?}");
    println!("resident memory of the proxy, KiB, most: {}", memory.iter().max().copied().unwrap_or_default());
    let clean = left.as_ref().is_ok_and(|left| {
        (left.connections, left.waiting, left.outstanding, left.buffered_bytes) == (0, 0, 0, 0)
    });
    match left {
        Ok(left) => println!(
            "left over in the proxy: {} connections, {} waiting, {} outstanding, {} bytes held (cut {}, released {})",
            left.connections, left.waiting, left.outstanding, left.buffered_bytes, left.cut, left.released
        ),
        Err(error) => println!("the proxy does not say what is left over: {error}"),
    }
    let faults = world.faults.lock().expect("nobody panics with it");
    faults.iter().for_each(|error| println!("error: {error}"));
    let right = [&tally.lost, &tally.corrupt, &tally.cut].iter().all(|counter| of(counter) == 0);
    let passed = right && clean && faults.is_empty() && of(&tally.compared) > 0;
    println!("{}", if passed { "passed" } else { "FAILED" });
    u8::from(!passed)
}
