//! Do bounds hold? Random mixes of the published traces are replayed, and what each workload sees is held
//! against what each model promised from the first halves.
//!
//! A mix has 2–32 different traces. Each workload draws an SLO from {10, 20, 50, 100} ms (thesis §4.3.3), which
//! sets its priority, and a percentile from {90, 99, 99.9}. The stages are slowed by a factor drawn among those
//! that leave the busiest stage of both halves below 80 %, so that mixes of all loads occur. The first
//! halves are replayed in random alignments ("fitted"), then the second halves ("unseen"). Judged is each
//! workload's percentile in each alignment ("each"; the worst case promises that none exceeds it, replay that at
//! most one in twenty does) and over all alignments together ("pooled"; what probabilistic models promise).
//! Replay, which takes longest, is asked about every fourth mix.
//!
//! `cargo bench -p placement --bench violations` takes some seconds; `-- --full` has 500 mixes on a link
//! and 500 on a server; `-- --mixes N` as many as asked; `-- --seed N`; `-- --worst` prints the mixes with the
//! largest excess of each model; `-- --again` judges excesses of the probabilistic bound by more alignments.
//! `-- link` and `-- server` do one of the two.

// The name that the shared support knows the crate by.
extern crate predict as predict;

mod support;

use model::{CircularTrace, Job, PerStage, Prediction, UndefinedLatency};
use predict::{
    Calibrated, CalibrationGoal, CalibrationTrace, CompanyMember, Probabilistic, PublishedSnc, Replayed,
    SncByStage, TrialCompany, WorstCase,
};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sim::{
    Alignment, Observer, Percentiles, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace,
};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use support::{Part, Predictor, Sketched, Through, asked, number_after, quantile, sorted};
use units::{Nanos, Percentile};

/// Possible slowdowns of the stages.
const FACTORS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
/// The busiest stage of a mix stays below.
const HIGHEST_LOAD: f64 = 0.8;
/// Alignments that a mix is judged by, of a family that no model knows.
const ALIGNMENTS: usize = 5;
/// And by which those are judged again that exceeded a bound.
const MANY: usize = 400;
const JUDGE: u64 = 0x6a_7564_6765;
const PERCENTILES: [f64; 3] = [90.0, 99.0, 99.9];
/// Mixes from which `calibrated` learns, and the seed of their family.
const LEARNT: usize = 40;
const LEARNT_SEED: u64 = 0x6c_6561_726e;
/// Number of SLOs in thesis §4.3.3; only their order matters here.
const SLOS: u32 = 4;

fn main() {
    let full = asked("--full");
    let mixes = number_after("--mixes").unwrap_or(if full { 500 } else { 12 });
    let seed = number_after("--seed").unwrap_or(1) as u64;
    let only = |word: &str, other: &str| asked(word) || !asked(other);
    let paths = [(Through::Link, only("link", "server")), (Through::Server, only("server", "link"))];
    for (through, _) in paths.into_iter().filter(|(_, wanted)| *wanted) {
        let Some(traces) = support::traces(through) else { return };
        println!("{through:?}, {mixes} mixes, seed {seed}");
        Experiment::new(&traces).run(mixes, seed);
    }
}

/// Sources are trace × factor: source = factor · traces + trace.
struct Experiment {
    traces: usize,
    halves: [Vec<CircularTrace<Job>>; 2],
    replay_traces: [Vec<ReplayTrace>; 2],
    models: Vec<Tally>,
}

/// A model and what became of its promises.
struct Tally {
    model: Box<dyn Predictor>,
    /// Asked about one mix in so many.
    every: usize,
    asked: usize,
    time: Duration,
    cases: Vec<Case>,
    undefined: usize,
}

/// A workload in a mix.
struct Case {
    mix: usize,
    member: usize,
    percentile: Percentile,
    bound: f64,
    /// Fitted, then unseen.
    seen: [Seen; 2],
}

/// Observed latency, seconds.
#[derive(Clone)]
struct Seen {
    pooled: f64,
    each: Vec<f64>,
}

/// The models, and how many mixes pass for each one that a model is asked about.
fn models(first: &[CircularTrace<Job>], traces: usize) -> Vec<(Box<dyn Predictor>, usize)> {
    vec![
        (Sketched::over(WorstCase::default(), first), 1),
        (Sketched::over(PublishedSnc::default(), first), 1),
        (Sketched::over(SncByStage::default(), first), 1),
        (Sketched::over(Probabilistic::default(), first), 1),
        (Sketched::over(Replayed::default(), first), 4),
        (Sketched::over(calibrated(first, traces), first), 4),
    ]
}

/// Learns the calibrated model from mixes of the first halves that are not used for judging.
fn calibrated(first: &[CircularTrace<Job>], traces: usize) -> Calibrated {
    let member = |part: &Part| CompanyMember {
        trace: part.source,
        priority: PerStage::from_fn(|_| part.level),
        group: part.group,
        percentile: part.percentile,
    };
    let mut companies = Vec::new();
    for round in 0..number_after("--trials").unwrap_or(LEARNT) {
        let members: Vec<_> = draw(&[first], traces, LEARNT_SEED, round).iter().map(member).collect();
        for window in 0..2 {
            companies.push(TrialCompany { round: 2 * round + window, window, members: members.clone() });
        }
    }
    let sources = first.iter().enumerate();
    let sources = sources.map(|(source, traffic)| CalibrationTrace { traffic, block: source % traces });
    Calibrated::learn(goal(), &sources.collect::<Vec<_>>(), &companies, &|| true)
}

/// Returns the goal of `calibrated`.
fn goal() -> CalibrationGoal {
    let percent = number_after("--coverage").unwrap_or(95);
    CalibrationGoal { coverage: percent as f64 / 100.0, ..CalibrationGoal::default() }
}

/// A random mix of the traces in these halves, on stages that leave the busiest one of each half below the highest load.
fn draw(halves: &[&[CircularTrace<Job>]], traces: usize, seed: u64, number: usize) -> Vec<Part> {
    let mut random = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003) + number as u64);
    let mut chosen: Vec<usize> = (0..traces).collect();
    chosen.shuffle(&mut random);
    chosen.truncate(random.random_range(2..=32));
    let load = |factor: usize| {
        let of = |half: &&[CircularTrace<Job>]| {
            support::busiest(&chosen.iter().map(|t| &half[factor * traces + t]))
        };
        halves.iter().map(of).fold(0.0, f64::max)
    };
    let stable: Vec<usize> = (0..FACTORS.len()).filter(|&f| f == 0 || load(f) < HIGHEST_LOAD).collect();
    let factor = stable[random.random_range(0..stable.len())];
    let mut part = |trace: usize| Part {
        source: factor * traces + trace,
        level: random.random_range(0..SLOS),
        group: trace,
        percentile: Percentile::new(PERCENTILES[random.random_range(0..3)]).expect("a percentile"),
    };
    chosen.iter().map(|&trace| part(trace)).collect()
}

impl Experiment {
    fn new(traces: &[CircularTrace<Job>]) -> Self {
        let half = |which: usize| -> Vec<CircularTrace<Job>> {
            let part = |t: &CircularTrace<Job>| t.halves().expect("both halves have requests")[which].clone();
            let slow = |factor| traces.iter().map(move |t| support::slower(&part(t), factor));
            FACTORS.into_iter().flat_map(slow).collect()
        };
        let halves = [half(0), half(1)];
        let record = |t: &CircularTrace<Job>| ReplayTrace::new(t.clone()).expect("minutes, not years");
        let replay_traces = [0, 1].map(|h| halves[h].iter().map(record).collect());
        let tally = |(model, every)| Tally {
            model,
            every,
            time: Duration::ZERO,
            asked: 0,
            cases: Vec::new(),
            undefined: 0,
        };
        let start = Instant::now();
        let models = models(&halves[0], traces.len()).into_iter().map(tally).collect();
        println!(
            "{} sources sketched by all models in {:.1} s",
            halves[0].len(),
            start.elapsed().as_secs_f64()
        );
        Self { traces: traces.len(), halves, replay_traces, models }
    }

    fn run(&mut self, mixes: usize, seed: u64) {
        let report_after = mixes.div_ceil(4);
        for number in 0..mixes {
            let mix = self.draw(seed, number);
            let seen = [0, 1].map(|half| self.replay(half, &mix, ALIGNMENTS));
            self.ask(number, &mix, &seen);
            if (number + 1) % report_after == 0 || number + 1 == mixes {
                self.report(number + 1);
            }
        }
        if asked("--worst") {
            self.print_worst(seed);
        }
        if asked("--again") {
            self.judge_again(seed);
        }
    }

    /// The mix of this number.
    fn draw(&self, seed: u64, number: usize) -> Vec<Part> {
        draw(&[&self.halves[0], &self.halves[1]], self.traces, seed, number)
    }

    /// Returns the latencies of all workloads in a number of random alignments of a half.
    fn replay(&self, half: usize, mix: &[Part], alignments: usize) -> Vec<Seen> {
        let stream = |part: &Part| ReplayStream {
            trace: &self.replay_traces[half][part.source],
            priority: PerStage::from_fn(|_| part.level),
            group: part.group,
        };
        let system = ReplaySystem::new(mix.iter().map(stream).collect()).expect("below 80 % load");
        let percentiles: Vec<Percentile> = mix.iter().map(|part| part.percentile).collect();
        let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
        let shifts: Vec<_> = Alignment::random(JUDGE, alignments).map(|a| a.shifts(&system)).collect();
        let counts: Vec<Vec<usize>> = shifts.iter().map(|shifts| replay.counts(shifts)).collect();
        let total: Vec<usize> = (0..mix.len()).map(|i| counts.iter().map(|c| c[i]).sum()).collect();
        let mut both = Both::default();
        both.pooled.reset(&total, &percentiles);
        let mut each = vec![Vec::new(); mix.len()];
        for (shifts, counts) in shifts.iter().zip(&counts) {
            both.one.reset(counts, &percentiles);
            replay.run(shifts, &mut both);
            let values = both.one.take().into_iter().map(|v| v.map_or(f64::NAN, Nanos::as_secs));
            each.iter_mut().zip(values).for_each(|(each, value)| each.push(value));
        }
        let pooled = both.pooled.take().into_iter().map(|v| v.map_or(f64::NAN, Nanos::as_secs));
        pooled.zip(each).map(|(pooled, each)| Seen { pooled, each }).collect()
    }

    fn ask(&mut self, number: usize, mix: &[Part], seen: &[Vec<Seen>; 2]) {
        for tally in self.models.iter_mut().filter(|tally| number.is_multiple_of(tally.every)) {
            tally.asked += 1;
            let start = Instant::now();
            let answers = tally.model.predict(mix);
            tally.time += start.elapsed();
            for (member, answer) in answers.into_iter().enumerate() {
                let seen = [0, 1].map(|half: usize| seen[half][member].clone());
                tally.take(number, member, mix[member].percentile, answer, seen);
            }
        }
    }

    fn report(&self, mixes: usize) {
        println!(
            "\nafter {mixes} mixes, {ALIGNMENTS} alignments of each half\n{:16} {:>6} {:>7} {:>9} | {:>23} | {:>23} | {:>22} | {:>8} {:>8} {:>8}",
            "",
            "",
            "",
            "",
            "fitted: exceeded",
            "unseen: exceeded",
            "bound / fitted replay",
            "factor",
            "margin",
            "time"
        );
        println!(
            "{:16} {:>6} {:>7} {:>9} | {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7} | {:>6} {:>6} {:>8} | {:>8} {:>8} {:>8}",
            "model",
            "",
            "cases",
            "undefined",
            "pooled",
            "each",
            "worst",
            "pooled",
            "each",
            "worst",
            "p10",
            "median",
            "p90",
            "for 99.9",
            "for all",
            "per mix"
        );
        for tally in &self.models {
            tally.print(None);
        }
        for percentile in PERCENTILES {
            for tally in &self.models {
                tally.print(Percentile::new(percentile));
            }
        }
    }

    /// Judges workloads that exceeded a pooled promise on the fitted half again, by many more alignments:
    /// five are a small sample.
    fn judge_again(&self, seed: u64) {
        for tally in self.models.iter().filter(|tally| tally.model.name() == "probabilistic") {
            for case in tally.cases.iter().filter(|case| case.seen[0].pooled > case.bound) {
                let seen = &self.replay(0, &self.draw(seed, case.mix), MANY)[case.member];
                println!(
                    "{}: mix {}, member {} at {}: bound {:.6} s, {:.6} s in {ALIGNMENTS} alignments, {:.6} s in {MANY}: {:.3}",
                    tally.model.name(),
                    case.mix,
                    case.member,
                    case.percentile,
                    case.bound,
                    case.seen[0].pooled,
                    seen.pooled,
                    seen.pooled / case.bound
                );
            }
        }
    }

    /// Whose requests they are that exceed a promise on the unseen half.
    fn print_traces(&self, tally: &Tally, seed: u64) {
        let mut exceeded = vec![(0, 0.0f64); self.traces];
        for case in tally.cases.iter().filter(|case| case.seen[1].pooled > case.bound) {
            let trace = self.draw(seed, case.mix)[case.member].source % self.traces;
            exceeded[trace].0 += 1;
            exceeded[trace].1 = exceeded[trace].1.max(case.seen[1].pooled / case.bound);
        }
        let mut order: Vec<usize> = (0..self.traces).filter(|&t| exceeded[t].0 > 0).collect();
        order.sort_by_key(|&t| std::cmp::Reverse(exceeded[t].0));
        println!(
            "\n{}: exceeded on the unseen half, by trace (position in the set): times, most",
            tally.model.name()
        );
        for trace in order.into_iter().take(8) {
            println!("    {trace:>3}: {:>4} {:>8.3}", exceeded[trace].0, exceeded[trace].1);
        }
    }

    fn print_worst(&self, seed: u64) {
        for tally in &self.models {
            self.print_traces(tally, seed);
            for half in [0, 1] {
                let excess = |c: &Case| c.seen[half].pooled / c.bound;
                let Some(worst) = tally.cases.iter().max_by(|a, b| excess(a).total_cmp(&excess(b))) else {
                    continue;
                };
                println!(
                    "\n{}: largest excess on half {half}: {:.3}, member {} at {}: bound {:.6} s, seen {:.6} s in seed {seed}, mix {}:\n{:?}",
                    tally.model.name(),
                    excess(worst),
                    worst.member,
                    worst.percentile,
                    worst.bound,
                    worst.seen[half].pooled,
                    worst.mix,
                    self.draw(seed, worst.mix)
                );
            }
        }
    }
}

impl Tally {
    fn take(
        &mut self,
        mix: usize,
        member: usize,
        percentile: Percentile,
        answer: Result<Prediction, UndefinedLatency>,
        seen: [Seen; 2],
    ) {
        match answer {
            Ok(prediction) => {
                assert!(prediction.bound >= 0.0, "a bound is a number");
                self.cases.push(Case { mix, member, percentile, bound: prediction.bound, seen });
            }
            Err(_) => self.undefined += 1,
        }
    }

    /// Of one percentile, or of all.
    fn print(&self, percentile: Option<Percentile>) {
        let cases: Vec<&Case> =
            self.cases.iter().filter(|c| percentile.is_none_or(|p| p == c.percentile)).collect();
        let pooled = |half: usize| sorted(cases.iter().map(|c| c.seen[half].pooled / c.bound));
        let each = |half: usize| {
            sorted(cases.iter().flat_map(|c| c.seen[half].each.iter().map(|seen| seen / c.bound)))
        };
        let share = |excess: &[f64]| {
            let above = excess.len() - excess.partition_point(|&e| e <= 1.0);
            format!("{:.2}%", 100.0 * above as f64 / excess.len().max(1) as f64)
        };
        let worst = |excess: &[f64]| format!("{:.3}", excess.last().copied().unwrap_or(f64::NAN));
        let halves = [0, 1].map(|half: usize| {
            let pooled = pooled(half);
            let each = each(half);
            format!("{:>7} {:>7} {:>7}", share(&pooled), share(&each), worst(&each))
        });
        let ratio = sorted(cases.iter().map(|c| c.bound / c.seen[0].pooled));
        let unseen = each(1);
        let ratios = [0.1, 0.5, 0.9].map(|part| quantile(&ratio, part));
        println!(
            "{:16} {:>6} {:>7} {:>9} | {} | {} | {:>6.2} {:>6.2} {:>8.2} | {:>8.3} {:>8} {:>6.1} ms",
            self.model.name(),
            percentile.map_or("all".into(), |p| format!("p{}", p.percent())),
            cases.len(),
            if percentile.is_none() { self.undefined.to_string() } else { String::new() },
            halves[0],
            halves[1],
            ratios[0],
            ratios[1],
            ratios[2],
            quantile(&unseen, 0.999),
            worst(&unseen),
            self.time.as_secs_f64() * 1e3 / self.asked.max(1) as f64
        );
    }
}

/// Percentiles of one alignment and of all.
#[derive(Default)]
struct Both {
    one: Percentiles,
    pooled: Percentiles,
}

impl Observer for Both {
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        let _ = self.one.latency(stream, latency);
        self.pooled.latency(stream, latency)
    }
}
