//! The reference figures under every reading of what the published text leaves open.

use super::support::Real;
use super::{members, percentile, worst_ms};
use predict::{EpsilonSplit, SncByStage, StageSketch};
use units::Nanos;

pub(super) fn print(real: &[Real]) {
    println!(
        "Reference figures, ms: n = 8 at p90, p99, p99.9; n = 2; four copies of C3 with 0, 2, 3, 4 dependent"
    );
    print_row("reference", &[19.7, 22.7, 25.7, 15.3, 18.05, 38.46, 60.15, 71.88]);
    for (windows, from_first) in [("windows from origin", false), ("from first request", true)] {
        for client_link in [true, false] {
            for split in [EpsilonSplit::Equal, EpsilonSplit::Published] {
                let model = SncByStage { split, client_link, ..SncByStage::default() };
                let silence = |r: &Real| if from_first { Nanos::ZERO } else { r.silence };
                let row = row(&model, real, silence);
                let links = if client_link { "2 links" } else { "1 link" };
                print_row(&format!("{windows}, {links}, {split:?}"), &row);
            }
        }
    }
    spread(real);
}

fn row(model: &SncByStage, real: &[Real], silence: impl Fn(&Real) -> Nanos) -> Vec<f64> {
    let sketches: Vec<StageSketch> =
        real.iter().take(8).map(|r| model.sketch_after(&r.traffic, silence(r))).collect();
    let worst = |count: usize, p| worst_ms(model, &members(sketches[..count].iter(), 0, percentile(p)));
    let copies =
        |dependent| worst_ms(model, &members([&sketches[2]; 4].into_iter(), dependent, percentile(99.9)));
    let eight = [90.0, 99.0, 99.9].map(|p| worst(8, p));
    eight.into_iter().chain([worst(2, 99.9)]).chain([0, 2, 3, 4].map(copies)).collect()
}

fn print_row(name: &str, row: &[f64]) {
    println!(
        "{name:<40}{:>7.1}{:>7.1}{:>7.1}{:>8.1}{:>9.2}{:>7.2}{:>7.2}{:>8.2}",
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    );
}

/// How much the cut of the one-second windows decides.
fn spread(real: &[Real]) {
    let model = SncByStage { client_link: true, ..SncByStage::default() };
    let at = |ms: u64| row(&model, real, |_| Nanos(ms * 1_000_000));
    let all: Vec<Vec<f64>> = (0..1000).step_by(50).map(at).collect();
    let range = |k: usize| {
        let values = all.iter().map(|row| row[k]);
        values.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)))
    };
    let ((a, b), (c, d)) = (range(2), range(4));
    println!("windows shifted by 0 … 950 ms: n = 8 {a:.1} … {b:.1}, four copies of C3 {c:.1} … {d:.1}\n");
}
