//! Fig. 5, 6, 8 and 10: a server on one CPU beside a background process, with the paper's fixes.

use crate::Repetition;
use crate::support::figures::{PeriodFigures, Saturation, plain};
use crate::support::fix::Fix;
use crate::support::offered::{Offered, RATE_MAX};
use crate::support::period::PeriodPlan;
use crate::support::rounds::{RoundFigure, order, short};
use crate::support::server::{ServerKind, ServerPlan};
use crate::support::site::Site;
use model::OperationError;

/// The utilisation of Fig. 5 to 9, and that of Fig. 10.
const HIGH: f64 = 0.8;
const LOW: f64 = 0.1;

/// A row of the table.
struct FixArm {
    name: &'static str,
    fixes: &'static [Fix],
    utilisation: f64,
}

const ARMS: [FixArm; 8] = [
    FixArm { name: "standard", fixes: &[], utilisation: HIGH },
    FixArm { name: "nice -20", fixes: &[Fix::Nice], utilisation: HIGH },
    FixArm { name: "priority, not FIFO", fixes: &[Fix::DemoteBackground], utilisation: HIGH },
    FixArm { name: "core of its own", fixes: &[Fix::MoveBackground], utilisation: HIGH },
    FixArm { name: "1 real-time", fixes: &[Fix::RealTime], utilisation: HIGH },
    FixArm { name: "2 + interrupt core", fixes: &[Fix::RealTime, Fix::InterruptCore], utilisation: HIGH },
    FixArm { name: "2 at 10 %", fixes: &[Fix::RealTime, Fix::InterruptCore], utilisation: LOW },
    FixArm {
        name: "3 + no idle states",
        fixes: &[Fix::RealTime, Fix::InterruptCore, Fix::AwakeCpus],
        utilisation: LOW,
    },
];

impl FixArm {
    fn has_interrupt_core(&self) -> bool {
        self.fixes.contains(&Fix::InterruptCore)
    }
}

/// Plays all arms with a server and prints them.
pub(crate) fn compare(
    site: &mut Site,
    server: &ServerPlan,
    repetition: Repetition,
) -> Result<(), OperationError> {
    let alone = Saturation::measure(site, &plain(server))?;
    let apart = PeriodPlan { fixes: vec![Fix::InterruptCore], ..plain(server) };
    let apart = Saturation::measure(site, &apart)?;
    println!("\n{}: amortised service", server.name);
    for (what, found) in [("receive work on its CPU", alone), ("receive work on the other CPU", apart)] {
        println!(
            "  {what}: {} us ({:.0} requests/s at saturation, its CPU {:.0} % busy)",
            short(found.service().0 as f64 / 1e3),
            found.rate,
            found.busy * 100.0
        );
    }
    let capacity = 1e9 / alone.service().0 as f64;
    if HIGH * capacity > RATE_MAX {
        println!(
            "  80 %: not observable here, the generator does not keep up with {:.0} requests/s; {RATE_MAX:.0} instead",
            HIGH * capacity
        );
    }
    let mut found: Vec<Vec<PeriodFigures>> = ARMS.iter().map(|_| Vec::new()).collect();
    for (number, arm) in order(ARMS.len(), repetition.rounds, repetition.seed).into_iter().enumerate() {
        if site.is_stopped() {
            break;
        }
        let FixArm { fixes, utilisation, .. } = &ARMS[arm];
        let offered = Offered::poisson((utilisation * capacity).min(RATE_MAX));
        let plan = PeriodPlan {
            fixes: fixes.to_vec(),
            background: true,
            ..PeriodPlan::new(server.clone(), offered)
        };
        let service = if ARMS[arm].has_interrupt_core() { apart.service() } else { alone.service() };
        // All arms of a round with one rate get the same arrivals.
        let seed = repetition.seed + (number / ARMS.len()) as u64;
        let seen = site.play_undisturbed(ARMS[arm].name, &plan, seed)?;
        found[arm].extend(seen.and_then(|seen| PeriodFigures::of(&seen, Some(service), 1)));
    }
    print_table(server, &found);
    Ok(())
}

fn print_table(server: &ServerPlan, found: &[Vec<PeriodFigures>]) {
    println!(
        "{:<20} {:>22} {:>24} {:>26} {:>20} {:>22} {:>8} {:>6} {:>6} {:>6}",
        "", "p50 us", "p99 us", "p99.9 us", "p99/ideal", "p99.9/ideal", "order", "load", "busy", "C2gap"
    );
    for (arm, periods) in ARMS.iter().zip(found) {
        let text = |of: &dyn Fn(&PeriodFigures) -> f64| {
            RoundFigure::of(periods.iter().map(of)).map_or("-".to_owned(), RoundFigure::text)
        };
        let median = |of: &dyn Fn(&PeriodFigures) -> f64| {
            RoundFigure::of(periods.iter().map(of)).map_or(f64::NAN, |figure| figure.median)
        };
        println!(
            "{:<20} {:>22} {:>24} {:>26} {:>20} {:>22} {:>7.2}% {:>5.0}% {:>5.0}% {:>6.2}",
            arm.name,
            text(&|figures| figures.measured_us[0]),
            text(&|figures| figures.measured_us[1]),
            text(&|figures| figures.measured_us[2]),
            text(&|figures| figures.factor(1)),
            text(&|figures| figures.factor(2)),
            median(&|figures| figures.overtaken * 100.0),
            median(&|figures| figures.utilisation * 100.0),
            median(&|figures| figures.busy * 100.0),
            median(&|figures| figures.moments.gaps_scv),
        );
    }
    let all = || found.iter().flatten();
    let figure = |of: &dyn Fn(&PeriodFigures) -> f64| {
        RoundFigure::of(all().map(of)).map_or("-".to_owned(), RoundFigure::text)
    };
    println!(
        "ideal of the first row: p50 {} us, p99 {} us, p99.9 {} us; {} requests in a period; background process {} % of the CPU; \
         generator late by (p99) {} us; others used {} % of a CPU",
        ideal(&found[0], 0),
        ideal(&found[0], 1),
        ideal(&found[0], 2),
        figure(&|figures| figures.requests as f64),
        figure(&|figures| figures.background * 100.0),
        figure(&|figures| figures.lag_p99_us),
        figure(&|figures| figures.others * 100.0),
    );
    print_paper(server);
}

fn ideal(periods: &[PeriodFigures], place: usize) -> String {
    RoundFigure::of(periods.iter().map(|figures| figures.ideal_us[place]))
        .map_or("-".to_owned(), RoundFigure::text)
}

/// Prints the paper's numbers for the same rows, from its text; its curves are not printed as numbers.
fn print_paper(server: &ServerPlan) {
    println!("the paper, at 80 %:");
    println!("  standard: p99 10 to 1000 times the ideal (Fig. 5; null RPC p50 29 us, ideal 21 us)");
    println!(
        "  nice -20: a slight improvement; 1 real-time: nearly no effect of other processes is left; \
              core of its own: slightly better than real-time (Fig. 5)"
    );
    match server.kind {
        ServerKind::NullRpc(_) => {
            println!("  FIFO against priority without FIFO: a shorter tail and a larger median (Fig. 6)");
        }
        _ => println!("  FIFO against priority without FIFO: no effect, one thread (section 4.2)"),
    }
    println!("  1 real-time: p99 2 to 3 times the ideal; 2 + interrupt core: within a few us of it (Fig. 8)");
    println!("  at 10 %: some requests wait 200 us for a CPU to wake up; 3 + no idle states: none (Fig. 10)");
    println!("  frequency scaling (Fig. 10): not observable here, {}", frequency());
}

fn frequency() -> &'static str {
    match std::path::Path::new("/sys/devices/system/cpu/cpu0/cpufreq").exists() {
        true => "this benchmark does not change the governor",
        false => "the kernel has no frequencies to choose from (cpufreq)",
    }
}
