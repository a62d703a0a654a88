//! Plays simulated clusters by hand.
//!
//! `cargo bench -p controller --bench simulation -- --seed N` plays one world and prints its happenings; `-- --seeds 1000
//! --from S` plays many. Ends with exit code 1 if a promise was broken or a decision lost.

#[path = "../tests/simulation/simulated/mod.rs"]
mod simulated;

use simulated::world::{Fault, WorldReport, play};
use std::process::ExitCode;
use std::time::Instant;

/// The number after an option of the command line.
fn number(option: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    arguments.nth(1)?.parse().ok()
}

fn main() -> ExitCode {
    if let Some(seed) = number("--seed") {
        let report = play(seed, None, true);
        report.log.iter().for_each(|line| println!("{line}"));
        println!("{}", report.violation.as_deref().unwrap_or("every promise was kept"));
        return ExitCode::from(u8::from(report.violation.is_some()));
    }
    let from = number("--from").unwrap_or(0);
    let seeds = number("--seeds").unwrap_or(100);
    let start = Instant::now();
    let reports: Vec<WorldReport> = (from..from + seeds).map(|seed| play(seed, None, false)).collect();
    let total = |of: fn(&WorldReport) -> u64| reports.iter().map(of).sum::<u64>();
    println!(
        "{seeds} worlds in {:.1} s: {:.2} h simulated, {} happenings, {} events, {} checks of promises",
        start.elapsed().as_secs_f64(),
        total(|report| report.simulated_ns) as f64 / 3.6e12,
        total(|report| report.happenings),
        total(|report| report.events),
        total(|report| report.checks),
    );
    println!(
        "{} admitted, {} refused ({} for want of an order), {} promised; enforced {:.1} s after the last fault at most",
        total(|report| report.admitted),
        total(|report| report.refused),
        total(|report| report.without_order),
        total(|report| report.promised),
        reports.iter().map(|report| report.converged_ns).max().unwrap_or(0) as f64 / 1e9,
    );
    println!(
        "{} promises made larger, {} in part given back, {} kept as they were; {} renewals taken back",
        total(|report| report.renewed),
        total(|report| report.given_back),
        total(|report| report.kept),
        total(|report| report.renewals_withdrawn),
    );
    for fault in Fault::ALL {
        let count: u64 = reports.iter().filter_map(|report| report.faults.get(&fault)).sum();
        println!("{count:>12} {fault:?}");
    }
    let failed: Vec<_> = reports.iter().filter(|report| report.violation.is_some()).collect();
    for report in &failed {
        println!("  --seed {}: {}", report.seed, report.violation.as_deref().unwrap_or_default());
    }
    println!("{} worlds failed", failed.len());
    ExitCode::from(u8::from(!failed.is_empty()))
}
