//! Where the probabilistic bound loses against the percentile that it bounds: one step of its derivation after the
//! other, on Poisson streams, where the percentile is known in closed form, and on random mixes of real traces.
//!
//! All streams have one priority. The steps, each exact but for sampling and each at or above the one before:
//!
//! 1. `replay`: the percentile over all requests and shifts.
//! 2. `one queue`: the same when each job needs its largest work at one stage and nothing at the others. It leaves out
//!    the allowances for jobs that straddle, so that it may be below the replay.
//! 3. `split`: the request's own stream at a share c of the queue, and the sum of the others' work beyond the rest of it,
//!    as independent quantities; the best c counts.
//! 4. `union`: for the others the least sum over cells of time scales, with the exact tail of each, of the work in its
//!    longest window or of the most work beyond the rates in its windows.
//! 5. `bound`: what the model says for the one queue; tails by convolution and Chernoff's bound, on lattices.
//! 6. `stages`: what it says for all stages, with allowances.
//!
//! Beside them `queues`: what another proof than the union would give from step 2 on. Each of the others has a share of the
//! queue of its own, and their backlogs at these shares, which are independent, are added by their exact laws: no burst
//! counts twice, and no stream uses what another leaves. The best of several divisions counts.
//!
//! `MIXES=n` sets the number of random mixes, `SIZE=n` the streams in each.

#[path = "../tests/support/mod.rs"]
mod support;

use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember, Stage};
use predict::{Probabilistic, ProbabilisticSketch};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use support::{Through, published};
use units::{Nanos, Percentile};

const PERCENT: f64 = 99.9;
/// Streams in a mix unless the caller says otherwise.
const SIZE: usize = 12;
/// Random shifts of which requests are replayed.
const ALIGNMENTS: usize = 40;
/// Random instants at which the work of the other streams is looked at.
const INSTANTS: usize = 20_000;
const SHARES: [f64; 9] = [0.95, 0.85, 0.7, 0.5, 0.3, 0.15, 0.06, 0.02, 0.005];
/// Windows of the union in seconds: those of the model.
const PER_OCTAVE: i32 = 4;
/// Windows that are looked at within a cell.
const WITHIN_CELL: usize = 4;
const WIDTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Exponents of the rate by which separate queues divide what is spare.
const EXPONENTS: [f64; 3] = [0.0, 0.5, 1.0];
/// Values of own work that count alike.
const OWN_ATOMS: usize = 64;

/// The work that has arrived by any time in a stream that repeats.
struct CumulativeWork {
    times: Vec<f64>,
    /// The work before each arrival, and at the end that of the whole period.
    before: Vec<f64>,
    period: f64,
}

impl CumulativeWork {
    fn new(traffic: &CircularTrace<Job>) -> Self {
        let mut times = Vec::new();
        let mut before = Vec::new();
        let mut sum = 0.0;
        for job in traffic.items() {
            times.push(job.arrival.as_secs());
            before.push(sum);
            sum += largest(job).as_secs();
        }
        before.push(sum);
        Self { times, before, period: traffic.period().as_secs() }
    }

    fn at(&self, time: f64) -> f64 {
        let rounds = (time / self.period).floor();
        let within = time - rounds * self.period;
        let position = self.times.partition_point(|arrival| *arrival < within);
        rounds * self.before[self.times.len()] + self.before[position]
    }

    fn rate(&self) -> f64 {
        self.before[self.times.len()] / self.period
    }

    /// What each request finds of its own stream and brings, when that is served at this rate; sorted.
    fn own(&self, share: f64) -> Option<Vec<f64>> {
        let mut found = self.after_arrivals(share)?;
        found.sort_by(f64::total_cmp);
        Some(found)
    }

    /// The backlog at random instants when it is served at this rate, above its own.
    fn backlogs(&self, share: f64, random: &mut StdRng) -> Option<Vec<f64>> {
        let after = self.after_arrivals(share)?;
        let at_random = |_| {
            let now = self.period * random.random::<f64>();
            let next = self.times.partition_point(|arrival| *arrival < now);
            let (index, since) = match next.checked_sub(1) {
                Some(last) => (last, now - self.times[last]),
                None => (after.len() - 1, now + self.period - self.times[after.len() - 1]),
            };
            (after[index] - share * since).max(0.0)
        };
        Some((0..INSTANTS).map(at_random).collect())
    }

    /// The backlog right after each arrival when it is served at this rate, which is above its own.
    fn after_arrivals(&self, share: f64) -> Option<Vec<f64>> {
        if self.rate() >= share {
            return None;
        }
        let mut backlog = 0.0f64;
        let mut last = 0.0;
        let mut found = Vec::new();
        for round in 0..2 {
            for (index, time) in self.times.iter().enumerate() {
                let now = f64::from(round) * self.period + time;
                backlog =
                    (backlog - share * (now - last)).max(0.0) + self.before[index + 1] - self.before[index];
                last = now;
                if round == 1 {
                    found.push(backlog);
                }
            }
        }
        Some(found)
    }
}

fn largest(job: &Job) -> Nanos {
    Stage::ALL.into_iter().map(|stage| job.work[stage]).max().unwrap_or_default()
}

/// Each job with its largest work at the storage and none elsewhere.
fn one_queue(traffic: &CircularTrace<Job>) -> CircularTrace<Job> {
    let of = |job: &Job, stage| if stage == Stage::Storage { largest(job) } else { Nanos::ZERO };
    let jobs = traffic.items().iter().map(|job| Job { work: PerStage::from_fn(|s| of(job, s)), ..*job });
    CircularTrace::from_first_arrival(jobs.collect(), traffic.period()).expect("the same arrivals")
}

/// The percentile of the first stream over all requests of all alignments, seconds.
fn replayed(traffic: &[CircularTrace<Job>], seed: u64) -> Option<f64> {
    let traces: Vec<ReplayTrace> =
        traffic.iter().map(|t| ReplayTrace::new(t.clone()).expect("a trace")).collect();
    let stream = |(group, trace)| ReplayStream { trace, priority: PerStage::from_fn(|_| 0), group };
    let system = ReplaySystem::new(traces.iter().enumerate().map(stream).collect()).ok()?;
    let mut latencies = Latencies::new(traffic.len());
    let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
    for alignment in Alignment::random(seed, ALIGNMENTS) {
        replay.run(&alignment.shifts(&system), &mut latencies);
    }
    let sorted = &latencies.sorted().streams[0];
    let rank = sim::nearest_rank(Percentile::new(PERCENT).expect("a percentile"), sorted.len());
    Some(sorted[rank - 1].as_secs())
}

fn bound(traffic: &[CircularTrace<Job>]) -> Option<f64> {
    let model = Probabilistic::default();
    let sketches: Vec<ProbabilisticSketch> = traffic.iter().map(|t| model.sketch(t)).collect();
    let percentile = Percentile::new(PERCENT).expect("a percentile");
    let member =
        |(group, sketch)| ServerMember { sketch, priority: PerStage::from_fn(|_| 0), group, percentile };
    let members: Vec<ServerMember<'_, ProbabilisticSketch>> =
        sketches.iter().enumerate().map(member).collect();
    model.predict(&members)[0].ok().map(|prediction| prediction.bound)
}

/// The work of the others in windows that end at random instants, by window and instant.
struct OtherWork {
    windows: Vec<f64>,
    work: Vec<Vec<f64>>,
    rate: f64,
}

impl OtherWork {
    fn sample(others: &[CumulativeWork], per_octave: i32, random: &mut StdRng) -> Self {
        let points = -17 * per_octave..=7 * per_octave;
        let windows: Vec<f64> =
            points.map(|point| (f64::from(point) / f64::from(per_octave)).exp2()).collect();
        let mut work = vec![Vec::with_capacity(INSTANTS); windows.len()];
        for _ in 0..INSTANTS {
            let now: Vec<f64> = others.iter().map(|o| o.period * (1.0 + random.random::<f64>())).collect();
            let all: Vec<f64> = others.iter().zip(&now).map(|(o, now)| o.at(*now)).collect();
            for (window, work) in windows.iter().zip(&mut work) {
                let one = |((o, now), all): ((&CumulativeWork, &f64), &f64)| all - o.at(now - window);
                work.push(others.iter().zip(&now).zip(&all).map(one).sum());
            }
        }
        Self { windows, work, rate: others.iter().map(CumulativeWork::rate).sum() }
    }

    /// At each instant the most that the work of a window exceeds the spare rate by; sorted.
    fn most_beyond(&self, spare: f64) -> Vec<f64> {
        let mut most = vec![0.0f64; INSTANTS];
        for (window, work) in self.windows.iter().zip(&self.work) {
            for (most, work) in most.iter_mut().zip(work) {
                *most = most.max(work - spare * window);
            }
        }
        most.sort_by(f64::total_cmp);
        most
    }
}

/// By cell from each window of the union to the next, and by instant: the sum over streams of the most work beyond the
/// stream's rate; sorted.
fn beyond_rates(others: &[CumulativeWork], windows: &[f64], random: &mut StdRng) -> Vec<Vec<f64>> {
    let mut cells = vec![vec![0.0f64; INSTANTS]; windows.len() - 1];
    for other in others {
        for instant in 0..INSTANTS {
            let now = other.period * (1.0 + random.random::<f64>());
            let all = other.at(now);
            for (cell, ends) in cells.iter_mut().zip(windows.windows(2)) {
                let mut most = all - other.at(now - ends[0]);
                let step = (ends[1] - ends[0]) / WITHIN_CELL as f64;
                for part in 0..WITHIN_CELL {
                    // The work of the longer end of a part, and the service of its shorter one.
                    let longer = ends[0] + (part + 1) as f64 * step;
                    most = most.max(all - other.at(now - longer) - other.rate() * part as f64 * step);
                }
                cell[instant] += most;
            }
        }
    }
    cells.iter_mut().for_each(|cell| cell.sort_by(f64::total_cmp));
    cells
}

/// The share of sorted values above a value.
fn share_above(sorted: &[f64], value: f64) -> f64 {
    (sorted.len() - sorted.partition_point(|v| *v <= value)) as f64 / sorted.len() as f64
}

/// The least latency at which the mean over own work of the others' exceedance of the room is what may be late.
fn latency(own: &[f64], exceedance: &dyn Fn(f64) -> f64) -> f64 {
    let late = |latency: f64| {
        let atoms = (0..OWN_ATOMS).map(|atom| {
            // Half of the values are the upper tenth, where the percentile is decided.
            let (from, to) = if atom < OWN_ATOMS / 2 { (0.0, 0.99) } else { (0.99, 1.0) };
            let step = (to - from) / (OWN_ATOMS / 2) as f64;
            let q = from + step * ((atom % (OWN_ATOMS / 2)) as f64 + 0.5);
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a position below the length"
            )]
            let own = own[((own.len() as f64 * q) as usize).min(own.len() - 1)];
            step * if latency < own { 1.0 } else { exceedance(latency - own) }
        });
        atoms.sum::<f64>()
    };
    let mut low = 1e-7;
    let mut high = 1e3;
    for _ in 0..40 {
        let middle = f64::sqrt(low * high);
        if late(middle) > 1.0 - PERCENT / 100.0 { low = middle } else { high = middle }
    }
    high
}

/// The least sum over cells of time scales, with the exact tails of their windows and of what is beyond the rates in cells;
/// as the model's, but for its tails.
fn union(windows: &[f64], sorted: &[Vec<f64>], cells: &[Vec<f64>], spare: f64, room: f64) -> f64 {
    let end = windows.len();
    let tail = |to: usize, y: f64| share_above(&sorted[to - 1], y);
    let mut cost = vec![0.0; end + 1];
    for from in (1..end).rev() {
        let y = spare * windows[from - 1] + room;
        let costs = WIDTHS.map(|width| {
            let to = (from + width).min(end);
            tail(to, y) + cost[to]
        });
        let beyond_rates = share_above(&cells[from - 1], y) + cost[from + 1];
        cost[from] = costs.into_iter().fold(beyond_rates.min(1.0), f64::min);
    }
    (1..=end).map(|to| tail(to, room) + cost[to]).fold(1.0, f64::min)
}

/// The sum of the others' backlogs, each at its rate and a part of what is spare, in proportion to its rate to the power
/// `exponent`; sorted.
fn separate_backlogs(
    others: &[CumulativeWork],
    (spare, exponent): (f64, f64),
    random: &mut StdRng,
) -> Option<Vec<f64>> {
    let free = spare - others.iter().map(CumulativeWork::rate).sum::<f64>();
    let weights: f64 = others.iter().map(|other| other.rate().powf(exponent)).sum();
    let mut sum = vec![0.0; INSTANTS];
    for other in others {
        let share = other.rate() + free * other.rate().powf(exponent) / weights;
        for (sum, backlog) in sum.iter_mut().zip(other.backlogs(share, random)?) {
            *sum += backlog;
        }
    }
    sum.sort_by(f64::total_cmp);
    Some(sum)
}

/// The latencies after each step, and with separate queues, seconds.
fn steps(traffic: &[CircularTrace<Job>], seed: u64) -> Option<[f64; 7]> {
    let single: Vec<CircularTrace<Job>> = traffic.iter().map(one_queue).collect();
    let streams: Vec<CumulativeWork> = single.iter().map(CumulativeWork::new).collect();
    let mut random = StdRng::seed_from_u64(seed);
    let fine = OtherWork::sample(&streams[1..], 4 * PER_OCTAVE, &mut random);
    let mut coarse = OtherWork::sample(&streams[1..], PER_OCTAVE, &mut random);
    let cells = beyond_rates(&streams[1..], &coarse.windows, &mut random);
    coarse.work.iter_mut().for_each(|work| work.sort_by(f64::total_cmp));
    let mut split = f64::INFINITY;
    let mut joined = f64::INFINITY;
    let mut separate = f64::INFINITY;
    for share in SHARES.into_iter().filter(|share| 1.0 - share > fine.rate) {
        let Some(own) = streams[0].own(share) else { continue };
        let most = fine.most_beyond(1.0 - share);
        split = split.min(latency(&own, &|room| share_above(&most, room)));
        let by_cells = |room: f64| union(&coarse.windows, &coarse.work, &cells, 1.0 - share, room);
        joined = joined.min(latency(&own, &by_cells));
        for exponent in EXPONENTS {
            if let Some(sum) = separate_backlogs(&streams[1..], (1.0 - share, exponent), &mut random) {
                separate = separate.min(latency(&own, &|room| share_above(&sum, room)));
            }
        }
    }
    Some([
        replayed(traffic, seed)?,
        replayed(&single, seed)?,
        split,
        joined,
        bound(&single)?,
        bound(traffic)?,
        separate,
    ])
}

fn show(name: &str, steps: &[f64; 7]) {
    let factors: Vec<String> =
        steps[..6].windows(2).map(|pair| format!("{:7.2}", pair[1] / pair[0])).collect();
    let total = steps[5] / steps[0];
    let separate = steps[6] / steps[1];
    println!("{name:<34} {:9.3} ms {} {total:8.2} {separate:8.2}", steps[0] * 1e3, factors.join(" "));
}

/// Poisson arrivals of 1 ms of work for as long as there are so many.
fn poisson(rate: f64, count: usize, random: &mut StdRng) -> CircularTrace<Job> {
    let mut now = 0.0;
    let mut jobs = Vec::new();
    for _ in 0..count {
        now -= (1.0 - random.random::<f64>()).ln() / rate;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes in nanoseconds")]
        let arrival = Nanos((now * 1e9) as u64);
        let work = PerStage::from_fn(|stage| Nanos(if stage == Stage::Storage { 1_000_000 } else { 0 }));
        jobs.push(Job { arrival, work });
    }
    CircularTrace::repeating(jobs).expect("in order")
}

/// The percentile of M/D/1 with services of 1 ms, seconds.
fn m_d_1(utilisation: f64) -> f64 {
    let mut wait = 0.0;
    while testkit::waits_in_m_d_1(utilisation, wait) < PERCENT / 100.0 {
        wait += 1e-3;
    }
    1e-3 * (1.0 + wait)
}

fn main() {
    let given = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let count = given("MIXES").unwrap_or(12);
    let size = given("SIZE").unwrap_or(SIZE);
    println!("{:<34} {:>12} one que   split   union   bound  stages    total   queues", "p99.9", "replay");
    for utilisation in [0.3, 0.6, 0.8] {
        let mut random = StdRng::seed_from_u64(1);
        let rate = utilisation / size as f64 * 1e3;
        let traffic: Vec<CircularTrace<Job>> =
            (0..size).map(|_| poisson(rate, 20_000, &mut random)).collect();
        if let Some(steps) = steps(&traffic, 1) {
            let exact = m_d_1(utilisation) * 1e3;
            show(&format!("M/D/1 {utilisation}, exact {exact:.3} ms"), &steps);
        }
    }
    let Some(real) = published(Through::Server) else { return };
    let mut random = StdRng::seed_from_u64(7);
    let mut all: Vec<[f64; 7]> = Vec::new();
    for mix in 0..count as u64 {
        let mut members: Vec<usize> = (0..real.len()).collect();
        members.shuffle(&mut random);
        let traffic: Vec<CircularTrace<Job>> =
            members[..size].iter().map(|m| real[*m].traffic.clone()).collect();
        if let Some(steps) = steps(&traffic, mix) {
            show(&format!("mix {mix}, {} and {} others", real[members[0]].name, size - 1), &steps);
            all.push(steps);
        }
    }
    let named = [("one queue", 1, 0), ("split", 2, 1), ("union", 3, 2), ("bound", 4, 3), ("stages", 5, 4)];
    for (name, after, before) in named.into_iter().chain([("in all", 5, 0), ("queues", 6, 1)]) {
        let mut factors: Vec<f64> = all.iter().map(|steps| steps[after] / steps[before]).collect();
        factors.sort_by(f64::total_cmp);
        let at = |index: usize| factors.get(index).copied().unwrap_or(f64::NAN);
        let half = factors.len() / 2;
        let last = factors.len().saturating_sub(1);
        println!("{name:<12} {:.2} to {:.2}, median {:.2}", at(0), at(last), at(half));
    }
}
