//! Cost of a tag for a request at a service, relative to a clock read in the same run.
//!
//! `cargo bench -p tailwright-gat --bench cost`

use gat::{InnerTier, RequestTag, TagCodec};
use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Calls per measurement, and number of measurements; the median counts.
const CALLS: u32 = 200_000;
const ROUNDS: usize = 9;

fn main() {
    let codec = TagCodec::baggage();
    let tag = RequestTag::starting_at(1_700_000_000_000_000_000);
    let alone = codec.write([], tag).value;
    let others: Vec<String> = (0..8).map(|number| format!("member-{number}=some%20value-{number}")).collect();
    let among = codec.write([others.join(",").as_bytes()], tag).value;
    let mut tier = InnerTier::default();
    let now_ns = tag.start_ns + 1_000_000;

    let clock = median_ns(|| {
        black_box(SystemTime::now().duration_since(UNIX_EPOCH).is_ok());
    });
    println!("ns per call; ratio to a reading of the clock ({clock:.1} ns); medians of {ROUNDS} rounds");
    for (what, header) in [("tag alone", &alone), ("tag and eight members of others", &among)] {
        let read = median_ns(|| {
            black_box(tier.receive(codec.read([black_box(&header[..])]), now_ns));
        });
        let write = median_ns(|| {
            black_box(codec.write([black_box(&header[..])], tag));
        });
        println!(
            "{what:34} read and judge {read:6.1} ×{:<6.2} write {write:7.1} ×{:.2}",
            read / clock,
            write / clock
        );
    }
    println!("{} requests accepted", tier.counts().accepted);
}

fn median_ns(mut call: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            (0..CALLS).for_each(|_| call());
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
