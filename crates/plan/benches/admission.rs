//! Whom can we admit? Thesis §4.4.1, §4.4.2, §4.4.5 and §4.4.6 on the published traces.
//!
//! **Link.** 180 workloads arrive in random order at one client-server link. They are copies of the 41 traces
//! (copy c of trace c mod 41), each at a random moment of its trace, independent of each other. SLOs are
//! p99.9, drawn from {10, 20, 50, 100} ms among those of which the workload takes at most half when it is alone on the link, in both halves. The
//! link is slowed so that the 180 together ask for more than it has. Procedures decide on the first halves; the
//! admitted workloads' second halves are replayed, and each workload's p99.9 is held against its SLO, over the
//! whole half and over windows of three minutes (the last is as long as the half allows). OPT is §4.4.2's.
//!
//! **Storage.** 35 of the traces arrive at a server with the published SSD, SLOs drawn from 150–500 ms.
//!
//! **Speed.** One decision about the n-th workload, by model, independent and in dependent groups of 2–4.
//!
//! `cargo bench -p tailwright-plan --bench admission` takes some seconds, `-- --full` the whole; `-- link`,
//! `-- storage`, `-- speed` run a part; `-- --seed N`, `-- --orders N`, `-- --replays N` orders for replay, which takes longest.

mod support;

use model::{PerStage, Slo};
use predict::{
    Member, Model, Passage, Probabilistic, PublishedSnc, Replayed, Traffic, WorstCase, WorstCaseSketch,
};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Percentiles, Recording, Replay, Service, Stream, System};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Through, asked, number_after, quantile, sorted};
use tailwright_plan::admission::{
    Applicant, ByModel, Demand, Desk, Host, Levels, Procedure, QJump, Silo, SiloPlus, Trial, largest_prefix,
    priority_meister,
};
use units::{Nanos, Percentile, Seconds};

/// The workloads of thesis §4.4.1.
const COPIES: usize = 180;
/// SLOs of thesis §4.3.3, seconds.
const SLOS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];
/// A workload asks for no SLO of which it takes more than this part when alone.
const ALONE: f64 = 0.5;
/// A packet, bytes, and the link's rate before it is slowed, bytes per second.
const PACKET: f64 = 1500.0;
const LINK: f64 = 125e6;
/// The windows of thesis §4.3.3.
const WINDOW: Nanos = Nanos(180_000_000_000);

fn main() {
    let seed = number_after("--seed").unwrap_or(1) as u64;
    let all = !["link", "storage", "speed"].iter().any(|part| asked(part));
    let full = asked("--full");
    if all || asked("link") {
        link(seed, number_after("--orders").unwrap_or(if full { 100 } else { 2 }));
    }
    if all || asked("storage") {
        let orders = number_after("--orders").unwrap_or(if full { 16 } else { 2 });
        for percentile in [99.9, 90.0] {
            storage(seed, orders, percentile);
        }
    }
    if all || asked("speed") {
        speed(full);
    }
}

/// A workload that arrives.
struct Arrival {
    copy: usize,
    trace: usize,
    slo: Slo,
}

/// Traces and what judges look at.
struct World {
    first: Vec<Traffic>,
    recordings: Vec<Recording>,
    /// Bytes by trace that cross the link in the judged half.
    bytes: Vec<f64>,
}

impl World {
    fn new(through: Through, factor: f64) -> Option<Self> {
        let traces = support::traces(through)?;
        let half = |t: &Traffic, which: usize| {
            support::slower(&t.halves().expect("both halves have requests")[which], factor)
        };
        let second: Vec<Traffic> = traces.iter().map(|t| half(t, 1)).collect();
        let record = |t: &Traffic| Recording::new(t.jobs(), t.period()).expect("minutes, not years");
        let bytes = |t: &Traffic| {
            let [network_in, _, network_out] = t.utilisation().into_array();
            (network_in + network_out) * t.period().as_secs() * LINK / factor
        };
        Some(Self {
            first: traces.iter().map(|t| half(t, 0)).collect(),
            recordings: second.iter().map(record).collect(),
            bytes: second.iter().map(bytes).collect(),
        })
    }

    fn system<'a>(&'a self, admitted: &[&Arrival]) -> Option<System<'a>> {
        let rank = |slo: Slo| admitted.iter().filter(|a| a.slo.latency < slo.latency).count();
        let stream = |a: &&Arrival| Stream {
            recording: &self.recordings[a.trace],
            priority: PerStage::from_fn(|_| u32::try_from(rank(a.slo)).expect("few workloads")),
            group: a.copy,
        };
        System::new(admitted.iter().map(stream).collect()).ok()
    }

    /// Who meets its SLO over the whole half, and in all windows; nobody under overload.
    fn judge(&self, admitted: &[&Arrival], seed: u64) -> [Vec<bool>; 2] {
        let Some(system) = self.system(admitted) else {
            return [vec![false; admitted.len()], vec![false; admitted.len()]];
        };
        let half = system.horizon();
        let shifts = Alignment::Random { seed, index: 0 }.shifts(&system);
        let whole = met(&system, &shifts, admitted);
        let mut in_windows = whole.clone();
        let mut open = Nanos::ZERO;
        while open < half {
            let length = WINDOW.min(half - open);
            let later = |(shift, stream): (&Nanos, &Stream<'_>)| {
                let period = stream.recording.period().0;
                Nanos((shift.0 + period - open.0 % period) % period)
            };
            let shifts: Vec<Nanos> = shifts.iter().zip(system.streams()).map(later).collect();
            let window = met(&system.clone().with_horizon(length), &shifts, admitted);
            in_windows.iter_mut().zip(window).for_each(|(all, met)| *all &= met);
            open = open + length;
        }
        [whole, in_windows]
    }
}

/// Who meets its SLO in one alignment.
fn met(system: &System<'_>, shifts: &[Nanos], admitted: &[&Arrival]) -> Vec<bool> {
    let mut replay = Replay::new(system, Service::Preemptive);
    let mut tails = Percentiles::default();
    tails.reset(&replay.counts(shifts), &admitted.iter().map(|a| a.slo.percentile).collect::<Vec<_>>());
    replay.run(shifts, &mut tails);
    let seen = tails.take().into_iter().zip(admitted);
    // A window without requests is no violation.
    seen.map(|(seen, a)| seen.is_none_or(|seen| seen.as_secs() <= a.slo.latency.0)).collect()
}

/// Whoever decides.
trait Office {
    fn name(&self) -> String;
    /// Who of the arrivals is admitted.
    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool>;
    /// Decides on so many orders at most.
    fn orders(&self) -> usize {
        usize::MAX
    }
}

fn through_desk<P: Procedure>(
    procedure: P,
    sketch: impl Fn(&Arrival) -> Arc<P::Sketch>,
    arrivals: &[Arrival],
) -> Vec<bool> {
    let mut desk = Desk::new(procedure, Host::LINK);
    let applicant =
        |a: &Arrival| Applicant { name: format!("w{}", a.copy), slo: a.slo, group: None, sketch: sketch(a) };
    arrivals.iter().map(|a| desk.admit(vec![applicant(a)]).is_some()).collect()
}

struct OfModel<M: Model> {
    model: M,
    label: &'static str,
    sketches: Vec<Arc<M::Sketch>>,
    orders: usize,
}

impl<M: Model> OfModel<M> {
    fn new(model: M, label: &'static str, traces: &[Traffic], orders: usize) -> Self {
        let sketches = traces.iter().map(|t| Arc::new(model.sketch(t))).collect();
        Self { model, label, sketches, orders }
    }
}

impl<M: Model> Office for OfModel<M> {
    fn name(&self) -> String {
        self.label.to_owned()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        through_desk(ByModel::by_slo(&self.model), |a| Arc::clone(&self.sketches[a.trace]), arrivals)
    }

    fn orders(&self) -> usize {
        self.orders
    }
}

/// PriorityMeister: limiters before every stage, priorities by its search.
struct OfMeister {
    sketches: Vec<Arc<WorstCaseSketch>>,
}

const RESHAPED: WorstCase = WorstCase { passage: Passage::Reshaped };

impl Office for OfMeister {
    fn name(&self) -> String {
        "PM, searched".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        let procedure = ByModel::searched(&RESHAPED, &priority_meister);
        through_desk(procedure, |a| Arc::clone(&self.sketches[a.trace]), arrivals)
    }
}

/// The worst case in three forms.
fn worst_cases(traces: &[Traffic]) -> Vec<Box<dyn Office>> {
    let sketches = traces.iter().map(|t| Arc::new(RESHAPED.sketch(t))).collect();
    vec![
        Box::new(OfMeister { sketches }),
        Box::new(OfModel::new(RESHAPED, "PM, by SLO", traces, usize::MAX)),
        Box::new(OfModel::new(WorstCase::default(), "worst-case", traces, usize::MAX)),
    ]
}

struct OfDemand<P> {
    procedure: P,
    label: String,
    demands: Vec<Arc<Demand>>,
}

impl<P: Procedure<Sketch = Demand> + Clone> Office for OfDemand<P> {
    fn name(&self) -> String {
        self.label.clone()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        through_desk(self.procedure.clone(), |a| Arc::clone(&self.demands[a.trace]), arrivals)
    }
}

struct OfSilo {
    silo: Silo,
    /// By trace, then SLO.
    trials: Vec<Vec<Arc<Trial>>>,
}

impl Office for OfSilo {
    fn name(&self) -> String {
        "silo".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        let index = |slo: Slo| SLOS.iter().position(|&s| s == slo.latency.0).expect("drawn from these");
        through_desk(self.silo, |a| Arc::clone(&self.trials[a.trace][index(a.slo)]), arrivals)
    }
}

struct Everybody;

impl Office for Everybody {
    fn name(&self) -> String {
        "no admission control".into()
    }

    fn decide(&self, arrivals: &[Arrival]) -> Vec<bool> {
        vec![true; arrivals.len()]
    }
}

/// What became of an order.
struct Run {
    order: usize,
    admitted: usize,
    bytes: f64,
    met: [usize; 2],
    time: Duration,
}

struct Row {
    name: String,
    runs: Vec<Run>,
}

impl Row {
    fn print(&self) {
        let of = |value: &dyn Fn(&Run) -> f64| sorted(self.runs.iter().map(value));
        let three = |values: Vec<f64>| [0.25, 0.5, 0.75].map(|part| quantile(&values, part));
        let [low, median, high] = three(of(&|r| r.admitted as f64));
        let [_, bytes, _] = three(of(&|r| r.bytes / 1e6));
        let total: usize = self.runs.iter().map(|r| r.admitted).sum();
        let share = |which: usize| {
            100.0 * self.runs.iter().map(|r| r.met[which]).sum::<usize>() as f64 / total.max(1) as f64
        };
        let clean = self.runs.iter().filter(|r| r.met[0] == r.admitted).count();
        let time = of(&|r| r.time.as_secs_f64() * 1e3);
        println!(
            "{:22} {:>6} {:>7.0} {:>7.0} {:>7.0} {:>9.0} | {:>8.3}% {:>8.3}% {:>9} | {:>9.3} ms {:>9.3} ms",
            self.name,
            self.runs.len(),
            low,
            median,
            high,
            bytes,
            share(0),
            share(1),
            format!("{clean}/{}", self.runs.len()),
            quantile(&time, 0.5),
            quantile(&time, 1.0)
        );
    }
}

fn print_rows(rows: &[Row]) {
    println!(
        "{:22} {:>6} {:>7} {:>7} {:>7} {:>9} | {:>9} {:>9} {:>9} | {:>12} {:>12}",
        "procedure",
        "orders",
        "p25",
        "median",
        "p75",
        "MB",
        "met, half",
        "3 minutes",
        "clean",
        "per decision",
        "worst order"
    );
    rows.iter().filter(|row| !row.runs.is_empty()).for_each(Row::print);
}

/// Runs offices over orders, printing as it goes.
fn compare(
    world: &World,
    offices: &[Box<dyn Office>],
    orders: usize,
    seed: u64,
    optima: usize,
    draw: impl Fn(u64) -> Vec<Arrival>,
) {
    let mut rows: Vec<Row> = offices.iter().map(|o| Row { name: o.name(), runs: Vec::new() }).collect();
    rows.push(Row { name: "OPT (on unseen)".into(), runs: Vec::new() });
    let every = orders.div_ceil(4);
    for order in 0..orders {
        let order_seed = seed.wrapping_mul(1_000_003) + order as u64;
        let arrivals = draw(order_seed);
        for (office, row) in offices.iter().zip(&mut rows).filter(|(office, _)| order < office.orders()) {
            let start = Instant::now();
            let admitted = office.decide(&arrivals);
            let time = start.elapsed() / u32::try_from(arrivals.len()).expect("few arrivals");
            row.runs.push(run(world, &arrivals, &admitted, order, order_seed, time));
        }
        if order < optima {
            let run = optimum(world, &arrivals, order, order_seed);
            rows.last_mut().expect("pushed above").runs.push(run);
        }
        if (order + 1) % every == 0 || order + 1 == orders {
            println!("\nafter {} orders", order + 1);
            print_rows(&rows);
        }
    }
    against_optimum(&rows);
}

fn run(
    world: &World,
    arrivals: &[Arrival],
    admitted: &[bool],
    order: usize,
    seed: u64,
    time: Duration,
) -> Run {
    let inside: Vec<&Arrival> =
        arrivals.iter().zip(admitted).filter(|(_, inside)| **inside).map(|(a, _)| a).collect();
    let count = |met: &Vec<bool>| met.iter().filter(|met| **met).count();
    let met = if inside.is_empty() { [0, 0] } else { world.judge(&inside, seed).each_ref().map(count) };
    let bytes = inside.iter().map(|a| world.bytes[a.trace]).sum();
    Run { order, admitted: inside.len(), bytes, met, time }
}

/// Thesis §4.4.2; judged in the very alignment in which it is found.
fn optimum(world: &World, arrivals: &[Arrival], order: usize, seed: u64) -> Run {
    let holds = |n: usize| {
        let inside: Vec<&Arrival> = arrivals[..n].iter().collect();
        let Some(system) = world.system(&inside) else { return false };
        let shifts = Alignment::Random { seed, index: 0 }.shifts(&system);
        met(&system, &shifts, &inside).iter().all(|met| *met)
    };
    let start = Instant::now();
    let best = largest_prefix(arrivals.len(), 6, holds);
    let time = start.elapsed() / u32::try_from(best.judged.max(1)).expect("few");
    let admitted: Vec<bool> = (0..arrivals.len()).map(|i| i < best.length).collect();
    run(world, arrivals, &admitted, order, seed, time)
}

/// Medians of admitted ÷ optimum over the orders that have one.
fn against_optimum(rows: &[Row]) {
    let Some(best) = rows.last().filter(|row| !row.runs.is_empty()) else { return };
    println!("\nadmitted and bytes ÷ OPT, medians over its orders");
    for row in rows {
        let pairs =
            || row.runs.iter().filter_map(|r| Some((r, best.runs.iter().find(|b| b.order == r.order)?)));
        let ratio = sorted(pairs().map(|(r, b)| r.admitted as f64 / b.admitted as f64));
        let bytes = sorted(pairs().map(|(r, b)| r.bytes / b.bytes));
        println!("{:22} {:>6.2} {:>6.2}", row.name, quantile(&ratio, 0.5), quantile(&bytes, 0.5));
    }
}

/// How much slower the link of the experiment is than 125 MB/s.
fn link_factor() -> f64 {
    number_after("--slower").map_or(4.0, |factor| factor as f64)
}

fn link(seed: u64, orders: usize) {
    let factor = link_factor();
    let Some(world) = World::new(Through::Link, factor) else { return };
    let load = support::busiest(&world.first.iter()) * COPIES as f64 / world.first.len() as f64;
    println!(
        "Link of {:.2} MB/s, {COPIES} workloads (copies of {} traces) that ask for {load:.2} of it, {orders} orders, seed {seed}",
        LINK / factor / 1e6,
        world.first.len()
    );
    let allowed = feasible(&world);
    let choices: usize = allowed.iter().map(Vec::len).sum();
    println!(
        "{choices} of {} pairs of trace and SLO are at most half used when alone",
        allowed.len() * SLOS.len()
    );
    let draw = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut copies: Vec<usize> = (0..COPIES).filter(|c| !allowed[c % allowed.len()].is_empty()).collect();
        copies.shuffle(&mut random);
        let mut arrival = |copy: usize| {
            let trace = copy % allowed.len();
            let slos = &allowed[trace];
            Arrival { copy, trace, slo: slo(99.9, slos[random.random_range(0..slos.len())]) }
        };
        copies.into_iter().map(&mut arrival).collect()
    };
    compare(&world, &link_offices(&world, factor), orders, seed, 10, draw);
}

fn slo(percent: f64, latency: f64) -> Slo {
    Slo::new(Percentile::new(percent).expect("a percentile"), Seconds(latency)).expect("positive")
}

/// By trace: the SLOs of which it takes at most a part alone, in both halves.
fn feasible(world: &World) -> Vec<Vec<f64>> {
    let first: Vec<Recording> = world
        .first
        .iter()
        .map(|t| Recording::new(t.jobs(), t.period()).expect("minutes, not years"))
        .collect();
    let alone = |recording: &Recording| {
        let priority = PerStage::from_fn(|_| 0);
        let system = System::new(vec![Stream { recording, priority, group: 0 }]).ok()?;
        let percentile = [Percentile::new(99.9).expect("a percentile")];
        sim::percentiles(&system, Service::Preemptive, &[Alignment::Recorded], &percentile)[0].0[0]
    };
    let kept = |trace: usize| {
        let halves = [&first[trace], &world.recordings[trace]].map(alone);
        let limit = |slo: f64| slo * ALONE;
        let keeps =
            |slo: &f64| halves.iter().all(|seen| seen.is_some_and(|seen| seen.as_secs() <= limit(*slo)));
        SLOS.into_iter().filter(keeps).collect()
    };
    (0..first.len()).map(kept).collect()
}

/// Fewer alignments than the default, so that orders take minutes: 90 % of alignments with 95 % confidence.
fn replayed() -> Replayed {
    Replayed::new(29, 0.9, 0.95, 7).expect("29 alignments are enough")
}

fn link_offices(world: &World, factor: f64) -> Vec<Box<dyn Office>> {
    let demands: Vec<Arc<Demand>> = world.first.iter().map(|t| Arc::new(Demand::of(t))).collect();
    let packet = PACKET / (LINK / factor);
    let silo = Silo { burst: packet, buffer: f64::INFINITY };
    let trial = |t: &Traffic, latency: f64| Arc::new(Trial::choose(t, slo(99.9, latency), packet));
    let trials =
        world.first.iter().map(|t| SLOS.iter().map(|&latency| trial(t, latency)).collect()).collect();
    let qjump = |label: &str, levels: Levels| -> Box<dyn Office> {
        Box::new(OfDemand {
            procedure: QJump { packet, levels },
            label: label.into(),
            demands: demands.clone(),
        })
    };
    let powers = |ratio: f64, count: i32| Levels::Fixed((1..=count).rev().map(|k| ratio.powi(-k)).collect());
    let silo_plus = SiloPlus { burst: packet, buffer: f64::INFINITY };
    let mut offices: Vec<Box<dyn Office>> = vec![
        Box::new(OfSilo { silo, trials }),
        Box::new(OfDemand { procedure: silo_plus, label: "silo++".into(), demands: demands.clone() }),
        qjump("qjump", Levels::Equation),
        qjump("qjump++ (8 of x2)", powers(2.0, 8)),
        qjump("qjump++ (24 of x1.3)", powers(1.3, 24)),
    ];
    offices.extend(worst_cases(&world.first));
    offices.extend(models(world, number_after("--replays").unwrap_or(3)));
    offices
}

/// The models that know percentiles, and nobody.
fn models(world: &World, replays: usize) -> Vec<Box<dyn Office>> {
    vec![
        Box::new(OfModel::new(PublishedSnc::default(), "published-snc", &world.first, usize::MAX)),
        Box::new(OfModel::new(Probabilistic::default(), "probabilistic", &world.first, usize::MAX)),
        Box::new(OfModel::new(replayed(), "replayed", &world.first, replays)),
        Box::new(Everybody),
    ]
}

/// Thesis §4.4.6.
fn storage(seed: u64, orders: usize, percent: f64) {
    let factor = number_after("--slower").map_or(1.0, |factor| factor as f64);
    let Some(world) = World::new(Through::Server, factor) else { return };
    const WORKLOADS: usize = 35;
    let load = support::busiest(&world.first.iter()) * WORKLOADS as f64 / world.first.len() as f64;
    println!(
        "\nServer with storage, {WORKLOADS} workloads that ask for about {load:.2} of it, p{percent} within 150–500 ms, {orders} orders, seed {seed}"
    );
    let draw = |seed: u64| {
        let mut random = StdRng::seed_from_u64(seed);
        let mut traces: Vec<usize> = (0..world.first.len()).collect();
        traces.shuffle(&mut random);
        let mut arrival =
            |trace| Arrival { copy: trace, trace, slo: slo(percent, random.random_range(0.15..0.5)) };
        traces.into_iter().take(WORKLOADS).map(&mut arrival).collect()
    };
    let mut offices = worst_cases(&world.first);
    offices.extend(models(&world, usize::MAX));
    compare(&world, &offices, orders, seed, orders, draw);
}

/// Thesis §4.4.5 and more.
fn speed(full: bool) {
    // 1000 copies ask for about 60 % of the link.
    let Some(traces) = support::traces(Through::Link) else { return };
    let load = support::busiest(&traces.iter()) * 1000.0 / traces.len() as f64;
    let traces: Vec<Traffic> = traces.iter().map(|t| support::slower(t, 0.6 / load)).collect();
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

fn timed<M: Model>(model: &M, traces: &[Traffic], counts: &[usize], most: usize) {
    let sketches: Vec<M::Sketch> = traces.iter().map(|t| model.sketch(t)).collect();
    print!("{:16}", model.name());
    for &n in counts.iter().filter(|n| **n <= most) {
        let times = [false, true].map(|dependent| -> String {
            let member = |i: usize| Member {
                sketch: &sketches[i % sketches.len()],
                priority: PerStage::from_fn(|_| u32::try_from(i % SLOS.len()).expect("four")),
                // Groups of 2, 3, 4, 2, 3, 4, …
                group: if dependent { i / 9 * 3 + [0, 0, 1, 1, 1, 2, 2, 2, 2][i % 9] } else { i },
                percentile: Percentile::new(99.9).expect("a percentile"),
            };
            let members: Vec<Member<'_, M::Sketch>> = (0..n).map(member).collect();
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
fn fastest(mut run: impl FnMut() -> bool) -> f64 {
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
