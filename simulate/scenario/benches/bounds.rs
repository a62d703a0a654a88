//! Tightness of the bounds of a server, by stage and number of channels: the bound ÷ the longest latency
//! that a search found for a request of a workload within its limits. In rows with `v1`, workloads spend
//! the enforcers' allowance beyond the limits, which breaks bounds. The first number is that of starts
//! instead of 40, the second that of steps from each instead of 1500. `promises` searches plans by method
//! and model instead, preemptive servers included; `ONLY` chooses methods and models by a part of their names.

#[path = "../tests/bounds/adversary.rs"]
mod adversary;
#[path = "../tests/bounds/aligned.rs"]
mod aligned;
#[path = "../tests/bounds/brute.rs"]
mod brute;
#[path = "../tests/bounds/interrupting.rs"]
mod interrupting;
#[path = "../tests/bounds/planned.rs"]
mod planned;
#[path = "../tests/bounds/played.rs"]
mod played;
#[path = "../tests/bounds/predicted.rs"]
mod predicted;

use adversary::{Attack, AttackedPath, SearchSpace};
use aligned::{Promise, TraceSpace, search_traces};
use planned::{METHODS, PlanSpace, PlannedAttack, search_plans};
use played::{Approach, BoundAttack as _, PlayedTraffic, Spending};
use predicted::{PredictedAttack, search_predictions};

/// The numbers of channels of the devices whose plans are attacked.
const CHANNELS: [u32; 5] = [1, 2, 4, 16, 64];
/// The alignments by which the closest attack on a share of requests is judged.
const JUDGED: u64 = 2000;

fn main() {
    let arguments = || std::env::args().skip(1);
    let mut numbers = arguments().filter_map(|argument| argument.parse::<u64>().ok());
    let starts = numbers.next().unwrap_or(40);
    let steps = numbers.next().unwrap_or(1500);
    if arguments().any(|argument| argument == "promises") {
        search_promises(starts, usize::try_from(steps).expect("few steps"));
        return;
    }
    println!("stage                        channels  bound ÷ worst   worst ÷ bound   worst s   bound s");
    for (name, route, shares_levels, spares_overtakers, keeps_tokens) in [
        ("device", AttackedPath::Device, true, true, true),
        ("link", AttackedPath::Link, true, true, true),
        ("link, small b", AttackedPath::Link, true, true, false),
        ("path", AttackedPath::Path, true, true, true),
        ("path, overtaken", AttackedPath::Path, false, false, true),
    ] {
        let all: &[u32] = if route == AttackedPath::Link { &[1] } else { &[1, 2, 4, 8, 16] };
        for channels in all {
            let space = SearchSpace {
                route,
                channels: *channels,
                levels: 7,
                shares_levels,
                spares_overtakers,
                keeps_tokens,
            };
            let (found, attack) = space.search(starts, usize::try_from(steps).expect("few steps"));
            report(name, *channels, found);
            show_broken(found, &attack);
        }
    }
    report("link, held twice", 1, Attack::held_up(2, 0.0021).play());
    let steps = usize::try_from(steps).expect("few steps");
    for (spent, spending) in [("", Spending::Limits), (", v1", Spending::Allowances)] {
        for channels in [1, 2, 4, 8, 16] {
            let space = PlanSpace { spending, ..PlanSpace::of_channels(channels) };
            let (found, attack) = search_plans(space, starts, steps);
            report(&format!("plan{spent}"), channels, found);
            report_apart(attack.traffic());
            show_broken(found, &attack);
        }
        for channels in [1, 2, 4, 8, 16] {
            let (found, attack) = search_predictions(channels, spending, starts, steps);
            report(&format!("worst-case{spent}"), channels, found);
            report_apart(attack.traffic());
            show_broken(found, &attack);
        }
        for channels in [2, 4, 8, 16] {
            let overtaken = PlannedAttack::overtaken(channels, spending);
            report(&format!("overtaken{spent}"), channels, overtaken.play());
            let blocked = PredictedAttack::blocked(channels, spending);
            report(&format!("blocked{spent}"), channels, blocked.play());
        }
    }
}

/// Returns true if the variable `ONLY` is unset or a part of this name.
fn is_chosen(name: &str) -> bool {
    std::env::var("ONLY").map_or(true, |only| name.contains(&only))
}

/// Prints the tightness of what plans promise, by method or model and by number of channels.
fn search_promises(starts: u64, steps: usize) {
    println!("promise                      channels  bound ÷ worst   worst ÷ bound   worst s   bound s");
    for method in METHODS.into_iter().filter(|method| is_chosen(&method.name())) {
        for channels in CHANNELS {
            let space = PlanSpace { method: Some(method), ..PlanSpace::of_channels(channels) };
            let (found, attack) = search_plans(space, starts, steps);
            report(&method.name(), channels, found);
            show_broken(found, &attack);
        }
        let space = PlanSpace { method: Some(method), interrupts: true, ..PlanSpace::of_channels(1) };
        let (found, attack) = search_plans(space, starts, steps);
        report(&format!("{}, preemptive", method.name()), 1, found);
        show_broken(found, &attack);
    }
    for channels in CHANNELS.into_iter().filter(|_| is_chosen("worst-case")) {
        let (found, attack) = search_predictions(channels, Spending::Limits, starts, steps);
        report("worst-case", channels, found);
        show_broken(found, &attack);
    }
    if is_chosen("worst-case") {
        let space = TraceSpace { promise: Promise::AllRequests, channels: 1, interrupts: true };
        let (found, attack) = search_traces(space, starts, steps);
        report("worst-case, preemptive", 1, found);
        show_broken(found, &attack);
    }
    let servers = CHANNELS.map(|channels| (channels, false)).into_iter().chain([(1, true)]);
    for (channels, interrupts) in servers.filter(|_| is_chosen("probabilistic")) {
        let space = TraceSpace { promise: Promise::ShareOfRequests, channels, interrupts };
        // Each step plays many alignments.
        let (_, attack) = search_traces(space, starts.div_ceil(4), steps / 4);
        let judged = attack.late_share(JUDGED, 2);
        let name = if interrupts { "probabilistic, preemptive" } else { "probabilistic" };
        report(name, channels, judged.approach);
        let least = judged.least_over_allowed;
        println!("  share of late requests ÷ allowed, less 3.3 standard errors: {least:.3}");
        show_broken(judged.approach, &attack);
    }
}

/// Prints the tightness for the same attack in both simulators, the project's and the independent one.
fn report_apart((traffic, bounds): (PlayedTraffic, Vec<f64>)) {
    let packet = traffic.packet();
    let both = traffic.apart().latencies_by_both();
    let [ours, apart] = both.map(|latencies| {
        let longest = latencies.iter().map(|of_workload| of_workload.iter().copied().fold(0.0, f64::max));
        longest.zip(&bounds).map(|(longest, bound)| longest / bound).fold(0.0, f64::max)
    });
    println!(
        "{:<26}{apart:>30.3}  (the project's simulator: {ours:.3}; a packet takes {packet:.1e} s)",
        "apart"
    );
}

/// Shows an attack that broke a bound, where `SHOW` is set.
fn show_broken(found: Approach, attack: &impl std::fmt::Debug) {
    if found.is_broken() && std::env::var_os("SHOW").is_some() {
        println!("{attack:#?}");
    }
}

fn report(name: &str, channels: u32, found: Approach) {
    let broken = if found.is_broken() { "  broken" } else { "" };
    println!(
        "{name:<28} {channels:>8}  {:>13.3}  {:>14.3}  {:>8.5}  {:>8.5}{broken}",
        1.0 / found.ratio,
        found.ratio,
        found.latency,
        found.bound
    );
}
