//! The three cases of Gandhi and Suresh, *Leveraging Queueing Theory and OS Profiling*, with live servers
//! of this machine: memcached with batches of requests, memcached's LRU list, apache2 with pinned
//! threads. Each knob is measured at low and high load, with Poisson and with recorded arrivals, and
//! compared with the knob that variance, the mean, or custom would choose.
//!
//! `cargo bench -p experiment --bench variability_cases [-- --server apache2 --seconds 4 --rounds 5]`;
//! requires root. `--batch-us` is the interval of batches, `--guard` the time for which requests do not
//! count after a switch, in seconds. A period waits, `--quiet-wait` seconds at most, until other
//! processes leave the machine idle, and is played again if they disturbed it.
//!
//! For each load, the stages of the unchanged server are ranked by variance and by mean, from integer
//! sums of X and X² (section "Request Tracing"). Each knob is compared with the unchanged server under
//! the same arrivals, by the mean and the 99th percentile of T6 − T1. Both CPUs are the server's; client,
//! wire and observer share the second one. Every period starts a server of its own; rounds have every
//! knob once, in random order. Changes are medians over rounds, with the least and the largest.

#[path = "support/mod.rs"]
mod support;

use model::OperationError;
use observe::{RequestStatistics, StageProfile};
use std::process::ExitCode;
use std::time::Duration;
use support::figures::{PeriodFigures, Saturation};
use support::fix::Fix;
use support::offered::{Offered, OfferedArrivals, RATE_MAX, RecordedGaps};
use support::period::{PeriodPlan, PeriodSeen};
use support::rounds::{BenchArguments, RoundFigure, order, short};
use support::server::{ServerKind, ServerPlan};
use support::site::{PeriodTimes, Site};

/// The recording whose gaps are replayed, in the folder of shared data.
const RECORDING: &str = "traces/trace0000.csv.gz";
/// Loads, as shares of the rate that saturates the server beside its client.
const LOADS: [(&str, f64); 2] = [("low", 0.2), ("high", 0.7)];
/// The arguments with which memcached orders its LRU list while it answers, without a thread that does it in between.
const INLINE_LRU: &[&str] = &["-o", "no_lru_maintainer,no_lru_crawler"];

/// Knob under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseKnob {
    Nothing,
    /// Requests are sent in batches at regular times.
    Batching,
    /// LRU work while requests are answered.
    InlineLru,
    /// A CPU for each thread.
    Pinning,
}

impl CaseKnob {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "as it is",
            Self::Batching => "batching",
            Self::InlineLru => "inline LRU",
            Self::Pinning => "pinning",
        }
    }
}

/// A server with the knobs that the paper tries on it.
struct CaseServer {
    name: &'static str,
    kind: ServerKind,
    knobs: &'static [CaseKnob],
    /// The knob that acts on a stage, as the paper chooses it; `None` where it has none.
    knob_of: fn(stage: &str) -> Option<CaseKnob>,
    /// The knob that one might try without a look at the stages.
    ad_hoc: CaseKnob,
    /// Findings of the paper.
    paper: &'static [&'static str],
}

const SERVERS: [CaseServer; 2] = [
    CaseServer {
        name: "memcached",
        kind: ServerKind::Memcached { udp: false, threads: 2, arguments: &[] },
        knobs: &[CaseKnob::Nothing, CaseKnob::Batching, CaseKnob::InlineLru, CaseKnob::Pinning],
        knob_of: |stage| match stage {
            "socket-to-parse" => Some(CaseKnob::Batching),
            "wakeup" => Some(CaseKnob::InlineLru),
            _ => None,
        },
        ad_hoc: CaseKnob::Pinning,
        paper: &[
            "high: socket-to-parse varies most; batching: mean -20.9 %, tail up to -40 %; ad hoc pinning: mean +11.5 %",
            "low: tcp-to-socket (wakeup) varies most; inline LRU: mean -35.4 % (-26 to -61 %); \
             by the mean batching: better at low rates, up to +32 % at high ones; ad hoc pinning: +51.1 %",
        ],
    },
    CaseServer {
        name: "apache2",
        kind: ServerKind::Apache,
        knobs: &[CaseKnob::Nothing, CaseKnob::Batching, CaseKnob::Pinning],
        knob_of: |stage| match stage {
            "socket-to-parse" | "wakeup" => Some(CaseKnob::Pinning),
            _ => None,
        },
        ad_hoc: CaseKnob::Batching,
        paper: &[
            "socket-to-parse varies most; pinning: mean -21.1 %, -50 % at high load; ad hoc batching: mean -2.7 %",
        ],
    },
];

/// Measurements of a knob in a round.
struct KnobRound {
    figures: PeriodFigures,
    statistics: RequestStatistics,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), OperationError> {
    let arguments = BenchArguments::read();
    let counted = Duration::from_secs_f64(arguments.value("--seconds", 4.0));
    let guard = Duration::from_secs_f64(arguments.value("--guard", 0.7));
    let quiet_wait = Duration::from_secs_f64(arguments.value("--quiet-wait", 20.0));
    let state = experiment::default_state_folder()
        .ok_or_else(|| OperationError::machine("there is no folder for the journal"))?;
    let Some(mut site) = Site::open(&state, PeriodTimes { guard, counted, quiet_wait })? else {
        return Ok(());
    };
    site.stop_on_signals().map_err(OperationError::machine)?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average before: {}", load.trim());
    let recorded = testkit::shared(RECORDING).map(|path| RecordedGaps::read(&path)).transpose()?;
    for server in &SERVERS {
        let plan = ServerPlan { name: server.name, kind: server.kind, cpus: "0,1" };
        if arguments.asks_for("--server", server.name) && plan.is_installed() {
            ServerCase { site: &mut site, server, plan, arguments: &arguments }.compare(recorded.as_ref())?;
        }
    }
    Ok(())
}

/// A server while its knobs are compared.
struct ServerCase<'a> {
    site: &'a mut Site,
    server: &'a CaseServer,
    plan: ServerPlan,
    arguments: &'a BenchArguments,
}

impl ServerCase<'_> {
    fn compare(&mut self, recorded: Option<&RecordedGaps>) -> Result<(), OperationError> {
        let plain = self.period(CaseKnob::Nothing, OfferedArrivals::Poisson(1.0));
        let saturation = Saturation::measure(self.site, &plain)?;
        println!(
            "\n{}: {:.0} requests/s at saturation, on two CPUs with its client",
            self.server.name, saturation.rate
        );
        for (load, share) in LOADS {
            let rate = (share * saturation.rate).min(RATE_MAX);
            let poisson = ("Poisson", Some(OfferedArrivals::Poisson(rate)));
            let recording = ("recorded", recorded.map(|gaps| OfferedArrivals::Recorded(gaps.clone(), rate)));
            for (name, arrivals) in [poisson, recording] {
                let Some(arrivals) = arrivals else { continue };
                if self.site.is_stopped() {
                    return Ok(());
                }
                println!("{load} load, {rate:.0} requests/s, {name} arrivals");
                let found = self.play(&arrivals)?;
                self.print(&found);
            }
        }
        self.server.paper.iter().for_each(|line| println!("the paper: {line}"));
        Ok(())
    }

    fn period(&self, knob: CaseKnob, arrivals: OfferedArrivals) -> PeriodPlan {
        let mut offered = Offered { connections: 8, ..Offered::of(arrivals) };
        let mut server = self.plan.clone();
        let mut fixes = Vec::new();
        match knob {
            CaseKnob::Nothing => {}
            CaseKnob::Batching => {
                let interval = self.arguments.value("--batch-us", 500);
                offered.batch_interval = Some(Duration::from_micros(interval));
            }
            CaseKnob::InlineLru => {
                server.kind = ServerKind::Memcached { udp: false, threads: 2, arguments: INLINE_LRU };
            }
            CaseKnob::Pinning => fixes.push(Fix::PinThreads),
        }
        PeriodPlan { fixes, receive_mask: "3".to_owned(), ..PeriodPlan::new(server, offered) }
    }

    /// Rounds by knob, in the order of the server's knobs.
    fn play(&mut self, arrivals: &OfferedArrivals) -> Result<Vec<Vec<KnobRound>>, OperationError> {
        let knobs = self.server.knobs;
        let rounds = self.arguments.value("--rounds", 5);
        let seed = self.arguments.value("--seed", 1);
        let mut found: Vec<Vec<KnobRound>> = knobs.iter().map(|_| Vec::new()).collect();
        for (number, arm) in order(knobs.len(), rounds, seed).into_iter().enumerate() {
            if self.site.is_stopped() {
                break;
            }
            let plan = self.period(knobs[arm], arrivals.clone());
            // All knobs of a round get the same arrivals.
            let round_seed = seed + (number / knobs.len()) as u64;
            let seen = self.site.play_undisturbed(knobs[arm].name(), &plan, round_seed)?;
            found[arm].extend(seen.as_ref().and_then(knob_round));
        }
        Ok(found)
    }

    fn print(&self, found: &[Vec<KnobRound>]) {
        let mut sums = RequestStatistics::default();
        found[0].iter().for_each(|round| sums.merge(&round.statistics));
        let stages = sums.stages();
        let by_variance = largest(&stages, |stage| stage.share_of_variance);
        let by_mean = largest(&stages, |stage| stage.share_of_mean);
        let scv = |of: &dyn Fn(&KnobRound) -> f64| {
            RoundFigure::of(found[0].iter().map(of)).map_or("-".to_owned(), RoundFigure::text)
        };
        println!(
            "  C2 of gaps {}, of service {}; {} requests",
            scv(&|round| round.figures.moments.gaps_scv),
            scv(&|round| round.figures.moments.service_scv()),
            sums.count()
        );
        for stage in &stages {
            let second = stage.variance + stage.times.mean.powi(2);
            println!(
                "    {:<16} E[X] {:>9} us  E[X2] {:>11} us2  {:>5.1} % of mean  {:>5.1} % of variance",
                stage.name,
                short(stage.times.mean / 1e3),
                short(second / 1e6),
                stage.share_of_mean * 100.0,
                stage.share_of_variance * 100.0
            );
        }
        let chosen = [
            ("variance", (self.server.knob_of)(by_variance)),
            ("mean", (self.server.knob_of)(by_mean)),
            ("ad hoc", Some(self.server.ad_hoc)),
        ];
        println!("  most variance: {by_variance}; largest mean: {by_mean}");
        for (knob, rounds) in self.server.knobs.iter().zip(found) {
            let by: Vec<&str> =
                chosen.iter().filter(|(_, chosen)| *chosen == Some(*knob)).map(|(by, _)| *by).collect();
            println!(
                "  {:<12} mean {:>24} us  p99 {:>24} us  change of mean {:>28} %  of p99 {:>28} %  {}",
                knob.name(),
                over(rounds, |round| round.figures.mean_us),
                over(rounds, |round| round.figures.measured_us[1]),
                change(&found[0], rounds, |round| round.figures.mean_us),
                change(&found[0], rounds, |round| round.figures.measured_us[1]),
                if by.is_empty() { String::new() } else { format!("chosen by {}", by.join(", ")) }
            );
        }
    }
}

fn knob_round(seen: &PeriodSeen) -> Option<KnobRound> {
    let mut statistics = RequestStatistics::default();
    seen.requests.iter().for_each(|request| statistics.add(request));
    Some(KnobRound { figures: PeriodFigures::of(seen, None, 2)?, statistics })
}

/// Returns the name of the stage with the largest value, without the wait before the network stack.
fn largest(stages: &[StageProfile], of: impl Fn(&StageProfile) -> f64) -> &'static str {
    let counted = stages.iter().skip(1);
    counted.max_by(|a, b| of(a).total_cmp(&of(b))).map_or("-", |stage| stage.name)
}

fn over(rounds: &[KnobRound], of: impl Fn(&KnobRound) -> f64) -> String {
    RoundFigure::of(rounds.iter().map(of)).map_or("-".to_owned(), RoundFigure::text)
}

/// Describes the relative change of a figure by a knob over the rounds, in percent.
fn change(without: &[KnobRound], with: &[KnobRound], of: impl Fn(&KnobRound) -> f64) -> String {
    let changes = without.iter().zip(with).map(|(without, with)| (of(with) / of(without) - 1.0) * 100.0);
    RoundFigure::of(changes).map_or("-".to_owned(), RoundFigure::text)
}
