//! Plays simulated worlds of the proxy by hand, for any length of time.
//!
//! `cargo bench -p enforce --bench simulation -- --seed N` plays one world and prints its events; `--
//! --seeds 1000 --from S` plays many, `-- --for 10m` as many as fit into the time (also `s` and `h`).
//! `--loops 1` gives the proxy loops that move bytes. Ends with exit code 1 if a promise was broken.

#[path = "../tests/simulation/simulated/mod.rs"]
mod simulated;

use simulated::faults::{FAULT_KINDS, FaultKind};
use simulated::run::{WorldReport, play, play_looped};
use simulated::tamper::ProxyMistake;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Totals of many worlds.
#[derive(Debug, Default)]
struct WorldTotals {
    worlds: u64,
    rounds: u64,
    answered: u64,
    simulated_ns: u128,
    faults: [u64; FAULT_KINDS],
    most_held: [u64; 2],
    failed: Vec<(u64, String)>,
}

impl WorldTotals {
    fn add(&mut self, report: &WorldReport) {
        self.worlds += 1;
        self.rounds += report.rounds;
        self.answered += report.answered;
        self.simulated_ns += u128::from(report.simulated_ns);
        for (sum, count) in self.faults.iter_mut().zip(report.faults) {
            *sum += count;
        }
        self.most_held = [0, 1].map(|place| self.most_held[place].max(report.most_held[place]));
        if let Some(violation) = report.violations.first() {
            println!("seed {}: {violation}", report.seed);
            self.failed.push((report.seed, violation.clone()));
        }
    }

    fn print(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        println!(
            "{} worlds in {seconds:.1} s: {:.1} h simulated, {} steps ({:.0} per second), {} answers",
            self.worlds,
            self.simulated_ns as f64 / 3.6e12,
            self.rounds,
            self.rounds as f64 / seconds,
            self.answered
        );
        println!(
            "held of one connection at most: {} B of requests, {} B of replies",
            self.most_held[0], self.most_held[1]
        );
        for kind in FaultKind::ALL {
            println!("{:>12} {kind:?}", self.faults[kind as usize]);
        }
        println!("{} worlds failed", self.failed.len());
        for (seed, violation) in &self.failed {
            println!("  --seed {seed}: {violation}");
        }
    }
}

/// Plays the world of a seed, with a mistake if there is one, and keeps a log if asked to.
type PlayWorld = fn(u64, Option<ProxyMistake>, bool) -> WorldReport;

/// Worlds selected by the arguments.
#[derive(Debug)]
struct WorldChoice {
    one: Option<u64>,
    from: u64,
    count: u64,
    duration: Option<Duration>,
    has_loops: bool,
}

impl WorldChoice {
    /// Returns the function that plays a world.
    fn play(&self) -> PlayWorld {
        if self.has_loops { play_looped } else { play }
    }

    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut choice = Self { one: None, from: 0, count: 1000, duration: None, has_loops: false };
        let mut arguments = arguments.filter(|word| word != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name}: a value is missing"))?;
            let number = value.parse::<u64>().map_err(|error| format!("{name} {value}: {error}"));
            match name.as_str() {
                "--seed" => choice.one = Some(number?),
                "--loops" => choice.has_loops = number? > 0,
                "--from" => choice.from = number?,
                "--seeds" => choice.count = number?,
                "--for" => (choice.duration, choice.count) = (Some(duration(&value)?), u64::MAX),
                _ => return Err(format!("{name}: --seed N, --seeds N, --from N, --loops 1 or --for TIME")),
            }
        }
        Ok(choice)
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = text.split_at(text.len().saturating_sub(1));
    let scale = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(format!("--for {text}: such as 30s, 10m or 2h")),
    };
    digits
        .parse()
        .map(|count: u64| Duration::from_secs(count * scale))
        .map_err(|error| format!("--for {text}: {error}"))
}

fn main() -> ExitCode {
    let choice = match WorldChoice::read(std::env::args().skip(1)) {
        Ok(choice) => choice,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = choice.one {
        return play_one(seed, choice.play());
    }
    // Panics of worlds appear in their reports.
    std::panic::set_hook(Box::new(|_| ()));
    let begun = Instant::now();
    let next = AtomicU64::new(choice.from);
    let totals = Mutex::new(WorldTotals::default());
    let end = choice.from.saturating_add(choice.count);
    let play = choice.play();
    let play_some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end || choice.duration.is_some_and(|most| begun.elapsed() > most) {
                return;
            }
            let report = play(seed, None, false);
            totals.lock().expect("nobody panics with the totals").add(&report);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(play_some);
        }
    });
    let totals = totals.into_inner().expect("nobody panics with the totals");
    totals.print(begun.elapsed());
    ExitCode::from(u8::from(!totals.failed.is_empty()))
}

fn play_one(seed: u64, play: PlayWorld) -> ExitCode {
    let report = play(seed, None, true);
    for line in &report.log {
        println!("{line}");
    }
    println!(
        "{} rounds, {} answers, {:.3} s",
        report.rounds,
        report.answered,
        report.simulated_ns as f64 / 1e9
    );
    for violation in &report.violations {
        println!("{violation}");
    }
    ExitCode::from(u8::from(!report.violations.is_empty()))
}
