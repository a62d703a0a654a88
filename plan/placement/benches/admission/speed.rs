//! Time of one decision.

use crate::SLOS;
use crate::procedures::replayed;
use crate::support::{self, Through};
use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember};
use predict::{Probabilistic, PublishedSnc, WorstCase};
use std::time::{Duration, Instant};
use units::Percentile;

/// Thesis §4.4.5 and more.
pub(crate) fn speed(full: bool) {
    // 1000 copies ask for about 60 % of the link.
    let Some(traces) = support::traces(Through::Link) else { return };
    let load = support::busiest(&traces.iter()) * 1000.0 / traces.len() as f64;
    let traces: Vec<CircularTrace<Job>> = traces.iter().map(|t| support::slower(t, 0.6 / load)).collect();
    let counts: &[usize] = if full { &[1, 3, 10, 30, 62, 100, 300, 1000] } else { &[1, 10, 62, 100] };
    println!(
        "\nOne decision about n workloads, ms: do all fit? (link; independent | in dependent groups of 2–4)"
    );
    print!("{:16}", "model");
    counts.iter().for_each(|n| print!(" {n:>19}"));
    println!();
    timed(&WorstCase::default(), &traces, counts, 1000);
    timed(&PublishedSnc::default(), &traces, counts, 1000);
    timed(&Probabilistic::default(), &traces, counts, 1000);
    timed(&replayed(), &traces, counts, if full { 300 } else { 62 });
}

pub(crate) fn timed<M: LatencyModel>(
    model: &M,
    traces: &[CircularTrace<Job>],
    counts: &[usize],
    most: usize,
) {
    let sketches: Vec<M::Sketch> = traces.iter().map(|t| model.sketch(t)).collect();
    print!("{:16}", model.name());
    for &n in counts.iter().filter(|n| **n <= most) {
        let times = [false, true].map(|dependent| -> String {
            let member = |i: usize| ServerMember {
                sketch: &sketches[i % sketches.len()],
                priority: PerStage::from_fn(|_| u32::try_from(i % SLOS.len()).expect("four")),
                // Groups of 2, 3, 4, 2, 3, 4, …
                group: if dependent { i / 9 * 3 + [0, 0, 1, 1, 1, 2, 2, 2, 2][i % 9] } else { i },
                percentile: Percentile::new(99.9).expect("a percentile"),
            };
            let members: Vec<ServerMember<'_, M::Sketch>> = (0..n).map(member).collect();
            let limits: Vec<f64> = (0..n).map(|i| SLOS[i % SLOS.len()]).collect();
            let yes = model.all_within(&members, &limits);
            let time = fastest(|| model.all_within(&members, &limits));
            format!("{time:>9.3}{}", if yes { '+' } else { '-' })
        });
        print!(" {} {}", times[0], times[1]);
    }
    println!();
}

/// The shortest of some runs, at most a second altogether; ms.
pub(crate) fn fastest(mut run: impl FnMut() -> bool) -> f64 {
    let begin = Instant::now();
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        if begin.elapsed() > Duration::from_secs(1) {
            break;
        }
    }
    best
}
