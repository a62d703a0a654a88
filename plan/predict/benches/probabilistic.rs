//! The probabilistic model beside replays of the same traces at random shifts: how far its bounds are from the
//! percentile, how often they are exceeded on the half of the traces that they were made from and on the
//! other half, and what a decision costs. `MIXES=n` sets the number of random mixes for each path.

#[path = "../tests/support/mod.rs"]
mod support;

use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember};
use predict::{Probabilistic, ProbabilisticSketch};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use std::time::Instant;
use support::{Through, published};
use units::{Nanos, Percentile};

const SLOS_MS: [u32; 4] = [10, 20, 50, 100];
/// Decisions that are timed together: the system's count of processor time has steps of milliseconds.
const REPEATS: u32 = 50;
const ALIGNMENTS: usize = 4;
/// When a bound is exceeded on few alignments, it is judged on this many.
const JUDGES: usize = 100;
const PERCENTILES: [f64; 3] = [90.0, 99.0, 99.9];
const MARGINS: [f64; 3] = [1.0, 1.25, 1.5];

struct Mix {
    members: Vec<usize>,
    slos_ms: Vec<u32>,
}

impl Mix {
    fn random(random: &mut StdRng, of: usize) -> Self {
        let mut members: Vec<usize> = (0..of).collect();
        members.shuffle(random);
        members.truncate(random.random_range(2..=32));
        let slos_ms = members.iter().map(|_| SLOS_MS[random.random_range(0..4)]).collect();
        Self { members, slos_ms }
    }

    /// `None` where a stage is overloaded.
    fn system<'a>(&self, traces: &'a [ReplayTrace]) -> Option<ReplaySystem<'a>> {
        let stream = |(group, (m, slo)): (usize, (&usize, &u32))| ReplayStream {
            trace: &traces[*m],
            priority: PerStage::from_fn(|_| *slo),
            group,
        };
        ReplaySystem::new(self.members.iter().zip(&self.slos_ms).enumerate().map(stream).collect()).ok()
    }

    /// Every percentile of each member over the requests of all alignments.
    fn replayed(&self, traces: &[ReplayTrace], seed: u64) -> Option<Vec<[f64; 3]>> {
        let system = self.system(traces)?;
        let mut latencies = Latencies::new(self.members.len());
        let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
        for alignment in Alignment::random(seed, ALIGNMENTS) {
            replay.run(&alignment.shifts(&system), &mut latencies);
        }
        let at = |sorted: &Vec<Nanos>, percent: f64| {
            let rank = sim::nearest_rank(Percentile::new(percent).expect("a percentile"), sorted.len());
            sorted[rank - 1].as_secs()
        };
        Some(latencies.sorted().streams.iter().map(|s| PERCENTILES.map(|p| at(s, p))).collect())
    }

    /// The share of a member's requests, over many more alignments, that take longer than its bound.
    fn exceeded(&self, traces: &[ReplayTrace], seed: u64, member: usize, bound: f64) -> f64 {
        let Some(system) = self.system(traces) else { return f64::NAN };
        let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
        let mut all = 0;
        let mut late = 0;
        for alignment in Alignment::random(seed, JUDGES) {
            let mut latencies = Latencies::new(self.members.len());
            replay.run(&alignment.shifts(&system), &mut latencies);
            all += latencies.streams[member].len();
            late += latencies.streams[member].iter().filter(|l| l.as_secs() > bound).count();
        }
        late as f64 / all as f64
    }

    fn bounds(
        &self,
        model: &Probabilistic,
        sketches: &[ProbabilisticSketch],
        percent: f64,
    ) -> Vec<Option<f64>> {
        let percentile = Percentile::new(percent).expect("a percentile");
        let member = |(group, (m, slo)): (usize, (&usize, &u32))| ServerMember {
            sketch: &sketches[*m],
            priority: PerStage::from_fn(|_| *slo),
            group,
            percentile,
        };
        let members: Vec<ServerMember<'_, ProbabilisticSketch>> =
            self.members.iter().zip(&self.slos_ms).enumerate().map(member).collect();
        model.predict(&members).into_iter().map(|p| p.ok().map(|p| p.bound)).collect()
    }
}

/// A member of a mix at a percentile.
struct Outcome {
    size: usize,
    percentile: usize,
    /// Percentile of the replay ÷ bound.
    fitted: f64,
    unseen: f64,
}

fn quantile(values: impl Iterator<Item = f64>, q: f64) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    values[(last as f64 * q).round() as usize]
}

/// Processor time of this thread where the system tells it, which is fairer than the clock on a busy machine;
/// else the time since `start`. Seconds.
fn processor_seconds(start: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = told.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    ns.map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns * 1e-9)
}

/// Seconds that `work` takes the processor, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let before = processor_seconds(start);
    let result = work();
    (processor_seconds(start) - before, result)
}

fn traces(traffic: &[CircularTrace<Job>]) -> Vec<ReplayTrace> {
    traffic.iter().map(|t| ReplayTrace::new(t.clone()).expect("a trace")).collect()
}

fn mixes(through: Through, real: &[CircularTrace<Job>], count: usize) {
    let halves: Vec<[CircularTrace<Job>; 2]> =
        real.iter().map(|t| t.halves().expect("ten minutes")).collect();
    let [fitted, unseen]: [Vec<CircularTrace<Job>>; 2] =
        [0, 1].map(|h| halves.iter().map(|pair| pair[h].clone()).collect());
    let judges = [traces(&fitted), traces(&unseen)];
    println!("\n{through:?}: {count} random mixes of 2 to 32 workloads, {ALIGNMENTS} alignments each");
    let models = MARGINS.map(Probabilistic::with_safety);
    let sketches = models.each_ref().map(|m| fitted.iter().map(|t| m.sketch(t)).collect::<Vec<_>>());
    let mut random = StdRng::seed_from_u64(7);
    let mut outcomes = MARGINS.map(|_| Vec::new());
    let mut none = 0;
    let mut seconds = 0.0;
    let mut bounds_made = 0;
    for index in 0..count {
        let mix = Mix::random(&mut random, real.len());
        let [Some(seen), Some(other)] = judges.each_ref().map(|j| mix.replayed(j, index as u64)) else {
            continue;
        };
        for (which, outcomes) in outcomes.iter_mut().enumerate() {
            // Margins are judged on a third of the mixes: they cost as much each.
            if which > 0 && index % 3 != 0 {
                continue;
            }
            for (percentile, percent) in PERCENTILES.into_iter().enumerate() {
                let (taken, bounds) = timed(|| mix.bounds(&models[which], &sketches[which], percent));
                seconds += taken;
                bounds_made += bounds.len();
                for (i, bound) in bounds.into_iter().enumerate() {
                    let Some(bound) = bound else {
                        none += 1;
                        continue;
                    };
                    let [fitted, unseen] = [&seen, &other].map(|judge| judge[i][percentile] / bound);
                    if which == 0 && fitted > 1.0 {
                        let share = mix.exceeded(&judges[0], index as u64, i, bound);
                        println!(
                            "  p{percent} of {}: {fitted:.2} of its bound on {ALIGNMENTS} alignments; on {JUDGES} \
                             exceeded by {:.4} % of requests",
                            mix.members[i],
                            share * 100.0
                        );
                    }
                    outcomes.push(Outcome { size: mix.members.len(), percentile, fitted, unseen });
                }
            }
        }
    }
    println!("no bound: {none}; {:.2} ms for each bound", seconds / bounds_made as f64 * 1e3);
    ratios(&outcomes[0]);
    margins(&outcomes);
}

fn ratios(outcomes: &[Outcome]) {
    println!("bound/replay on the fitted half        n    10 %  median    90 %   exceeded");
    for (low, high) in [(2, 8), (9, 16), (17, 32), (2, 32)] {
        for (index, percent) in PERCENTILES.iter().enumerate() {
            let those =
                || outcomes.iter().filter(move |o| o.percentile == index && (low..=high).contains(&o.size));
            let at = |q| quantile(those().map(|o| 1.0 / o.fitted), q);
            let exceeded = those().filter(|o| o.fitted > 1.0).count();
            println!(
                "  {low:2} to {high:2} workloads, p{percent:<5} {:10} {:7.2} {:7.2} {:7.2} {exceeded:10}",
                those().count(),
                at(0.1),
                at(0.5),
                at(0.9)
            );
        }
    }
}

fn margins(outcomes: &[Vec<Outcome>]) {
    println!(
        "margin on work      n  exceeded: fitted  unseen   unseen replay/bound at 90 %, 99 %, worst; median bound/replay"
    );
    for (margin, outcomes) in MARGINS.iter().zip(outcomes) {
        for (index, percent) in PERCENTILES.iter().enumerate() {
            let those = || outcomes.iter().filter(move |o| o.percentile == index);
            let count = those().count();
            let over = |of: fn(&Outcome) -> f64| {
                100.0 * those().filter(|o| of(o) > 1.0).count() as f64 / count as f64
            };
            let at = |q| quantile(those().map(|o| o.unseen), q);
            println!(
                "  {margin:4.2} p{percent:<5} {count:8} {:14.2} % {:5.2} %   {:9.2} {:9.2} {:9.2} {:12.2}",
                over(|o| o.fitted),
                over(|o| o.unseen),
                at(0.9),
                at(0.99),
                at(1.0),
                quantile(those().map(|o| 1.0 / o.fitted), 0.5)
            );
        }
    }
}

/// Work multiplied so that many workloads fit.
fn thinned(traffic: &CircularTrace<Job>, factor: f64) -> CircularTrace<Job> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let scale = |work: &Nanos| Nanos((work.0 as f64 * factor).ceil() as u64);
    let jobs = traffic.items().iter().map(|job| Job { work: job.work.map(scale), ..*job }).collect();
    CircularTrace::from_first_arrival(jobs, traffic.period()).expect("the same arrivals")
}

/// The name of a level.
fn level(index: usize) -> u32 {
    u32::try_from(index).expect("few levels")
}

/// How members are laid out for a decision.
struct Layout {
    name: &'static str,
    size: usize,
    priority: fn(usize) -> u32,
    group: fn(usize) -> usize,
}

const LAYOUTS: [Layout; 9] = [
    Layout { name: "4 priorities", size: 1, priority: |i| level(i % 4), group: |i| i },
    Layout { name: "4 priorities", size: 8, priority: |i| level(i % 4), group: |i| i },
    Layout { name: "4 priorities", size: 62, priority: |i| level(i % 4), group: |i| i },
    Layout { name: "4 priorities", size: 250, priority: |i| level(i % 4), group: |i| i },
    Layout { name: "4 priorities", size: 1000, priority: |i| level(i % 4), group: |i| i },
    Layout { name: "own priorities", size: 62, priority: level, group: |i| i },
    Layout { name: "a group of 2", size: 8, priority: |i| level(i % 4), group: |i| i.max(1) },
    Layout { name: "a group of 4", size: 8, priority: |i| level(i % 4), group: |i| i.max(3) },
    Layout { name: "pairs", size: 62, priority: |i| level(i % 4), group: |i| i / 2 },
];

fn decisions(real: &[CircularTrace<Job>]) {
    println!("\none decision about all members of a queue, p99.9    n   loose budgets         tight budgets");
    let model = Probabilistic::default();
    for layout in LAYOUTS {
        let factor = (20.0 / layout.size as f64).min(1.0);
        let used = real.len().min(layout.size);
        let sketches: Vec<ProbabilisticSketch> =
            real[..used].iter().map(|t| model.sketch(&thinned(t, factor))).collect();
        let member = |i: usize| ServerMember {
            sketch: &sketches[i % used],
            priority: PerStage::from_fn(|_| (layout.priority)(i)),
            group: (layout.group)(i),
            percentile: Percentile::new(99.9).expect("a percentile"),
        };
        let members: Vec<ServerMember<'_, ProbabilisticSketch>> = (0..layout.size).map(member).collect();
        let answer = |scale: f64| {
            let budget = |i: usize| f64::from(SLOS_MS[((layout.priority)(i) % 4) as usize]) * 1e-3 * scale;
            let budgets: Vec<f64> = (0..layout.size).map(budget).collect();
            let decide = || model.accepts(&members, &budgets);
            let (seconds, answer) = timed(|| (1..REPEATS).fold(decide(), |_, _| decide()));
            let seconds = seconds / f64::from(REPEATS);
            format!("{:8.2} ms, {}", seconds * 1e3, if answer.is_ok() { "yes" } else { "no " })
        };
        println!("  {:<46} {:5}   {}      {}", layout.name, layout.size, answer(30.0), answer(3.0));
    }
}

fn main() {
    let count: usize = std::env::var("MIXES").ok().and_then(|v| v.parse().ok()).unwrap_or(24);
    for through in [Through::Link, Through::Server] {
        let Some(real) = published(through) else { return };
        let real: Vec<CircularTrace<Job>> = real.into_iter().map(|r| r.traffic).collect();
        if through == Through::Link {
            let model = Probabilistic::default();
            let (seconds, sketches) = timed(|| real.iter().map(|t| model.sketch(t)).collect::<Vec<_>>());
            let seconds = seconds / sketches.len() as f64;
            let bytes: usize = sketches.iter().map(ProbabilisticSketch::bytes).sum();
            println!("a sketch: {:.0} ms, {} kB on average", seconds * 1e3, bytes / 1000 / sketches.len());
            decisions(&real);
        }
        if count > 0 {
            mixes(through, &real, count);
        }
    }
}
