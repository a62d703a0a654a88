//! The probabilistic model against replays: on every shift of tiny traces, on random shifts, and its laws.

mod support;

use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember, Stage, UndefinedLatency};
use predict::{
    PathSketch, Probabilistic, ProbabilisticRefusal, ProbabilisticSketch, PublishedSnc, WorstCase,
};
use proptest::prelude::*;
use sim::{Alignment, Latencies, PreemptionMode, Replay, ReplayStream, ReplaySystem, ReplayTrace};
use support::{Through, published};
use units::{Nanos, Percentile};

const MS: u64 = 1_000_000;

/// So many cases, unless `PROPTEST_CASES` asks for others.
fn cases(count: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    if asked { default } else { ProptestConfig { cases: count, ..default } }
}

fn percentile(percent: f64) -> Percentile {
    Percentile::new(percent).unwrap()
}

/// Jobs (time, works) in units of `unit` ns.
fn traffic(jobs: &[(u64, [u64; 3])], period: u64, unit: u64) -> CircularTrace<Job> {
    let job = |&(at, works): &(u64, [u64; 3])| Job {
        arrival: Nanos(at * unit),
        work: PerStage::from_fn(|stage| Nanos(works[stage as usize] * unit)),
    };
    let mut jobs: Vec<Job> = jobs.iter().map(job).collect();
    jobs.sort_by_key(|job| job.arrival);
    CircularTrace::from_first_arrival(jobs, Nanos(period * unit)).unwrap()
}

fn member(
    sketch: &ProbabilisticSketch,
    priority: u32,
    group: usize,
    percent: f64,
) -> ServerMember<'_, ProbabilisticSketch> {
    ServerMember { sketch, priority: PerStage::from_fn(|_| priority), group, percentile: percentile(percent) }
}

/// Bounds of members with these priorities, each its own group.
fn bounds(
    traffic: &[CircularTrace<Job>],
    priorities: &[u32],
    percent: f64,
) -> Vec<Result<f64, UndefinedLatency>> {
    let groups: Vec<usize> = (0..traffic.len()).collect();
    grouped_bounds(traffic, priorities, &groups, percent)
}

fn grouped_bounds(
    traffic: &[CircularTrace<Job>],
    priorities: &[u32],
    groups: &[usize],
    percent: f64,
) -> Vec<Result<f64, UndefinedLatency>> {
    let model = Probabilistic::default();
    let sketches: Vec<ProbabilisticSketch> = traffic.iter().map(|t| model.sketch(t)).collect();
    let members: Vec<ServerMember<'_, ProbabilisticSketch>> =
        (0..traffic.len()).map(|i| member(&sketches[i], priorities[i], groups[i], percent)).collect();
    model.predict(&members).into_iter().map(|p| p.map(|p| p.bound)).collect()
}

fn traces(traffic: &[CircularTrace<Job>]) -> Vec<ReplayTrace> {
    traffic.iter().map(|t| ReplayTrace::new(t.clone()).unwrap()).collect()
}

fn system<'a>(traces: &'a [ReplayTrace], priorities: &[u32]) -> ReplaySystem<'a> {
    let stream = |group: usize| ReplayStream {
        trace: &traces[group],
        priority: PerStage::from_fn(|_| priorities[group]),
        group,
    };
    ReplaySystem::new((0..traces.len()).map(stream).collect()).unwrap()
}

/// The share of the requests of each stream, over all the shifts, that take longer than its bound.
fn exceeded(system: &ReplaySystem<'_>, shifts: impl Iterator<Item = Vec<Nanos>>, bounds: &[f64]) -> Vec<f64> {
    let mut replay = Replay::new(system, PreemptionMode::Preemptive);
    let mut counts = vec![(0usize, 0usize); bounds.len()];
    for shifts in shifts {
        let mut latencies = Latencies::new(bounds.len());
        replay.run(&shifts, &mut latencies);
        for ((all, late), (stream, bound)) in counts.iter_mut().zip(latencies.streams.iter().zip(bounds)) {
            *all += stream.len();
            *late += stream.iter().filter(|latency| latency.as_secs() > *bound).count();
        }
    }
    counts.into_iter().map(|(all, late)| late as f64 / all as f64).collect()
}

/// Which stages the requests of a system pass.
fn any_path() -> impl Strategy<Value = [bool; 3]> {
    prop::sample::select(vec![
        [true; 3],
        [true, false, true],
        [true, true, false],
        [false, true, true],
        [true, false, false],
    ])
}

/// Jobs of a stream: times below `span`, works of at least 1 on the path and less than `most`.
fn any_jobs(span: u64, most: u64, path: [bool; 3]) -> impl Strategy<Value = Vec<(u64, [u64; 3])>> {
    let job = (0..span, [1..most, 1..most, 1..most])
        .prop_map(move |(at, works)| (at, std::array::from_fn(|s| if path[s] { works[s] } else { 0 })));
    prop::collection::vec(job, 1..6)
}

fn any_streams(
    span: u64,
    most: u64,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Vec<(u64, [u64; 3])>>> {
    any_path().prop_flat_map(move |path| prop::collection::vec(any_jobs(span, most, path), count.clone()))
}

/// What the lemma of one queue says of the request at `index` of stream `tagged`: the longest d with
/// own + same + higher(d) + allowances ≥ u + d for the start of some busy period.
fn joint_queue(streams: &[Vec<(u64, [u64; 3])>], priorities: &[u32], tagged: usize, index: usize) -> u64 {
    let t = streams[tagged][index].0;
    let starts = streams.iter().flatten().map(|job| job.0).filter(|at| *at <= t);
    starts.map(|start| longest_from(streams, priorities, (tagged, index), start)).max().unwrap()
}

fn longest_from(
    streams: &[Vec<(u64, [u64; 3])>],
    priorities: &[u32],
    tagged: (usize, usize),
    start: u64,
) -> u64 {
    let t = streams[tagged.0][tagged.1].0;
    let mut d = 0;
    loop {
        let work: u64 = (0..streams.len())
            .filter(|i| priorities[*i] <= priorities[tagged.0])
            .map(|i| {
                let until = if priorities[i] < priorities[tagged.0] { t + d } else { t };
                let counts = |(j, job): &(usize, &(u64, [u64; 3]))| {
                    (start..=until).contains(&job.0) && (i != tagged.0 || *j <= tagged.1)
                };
                demand(streams[i].iter().enumerate().filter(counts).map(|(_, job)| job.1))
            })
            .sum();
        let end = (start + work).saturating_sub(t);
        if end <= d {
            return d;
        }
        d = end;
    }
}

/// Work and allowance.
fn demand(works: impl Iterator<Item = [u64; 3]>) -> u64 {
    let mut sum = 0;
    let mut first = 0;
    let mut second = 0;
    let mut both = 0;
    for [a, b, c] in works {
        let most = a.max(b).max(c);
        sum += most;
        first = first.max(a.min(b));
        second = second.max(b.min(c));
        both = both.max(a + b + c - most);
    }
    sum + both.max(first + second)
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_path_is_no_slower_than_one_queue_with_allowances(
        mut streams in any_streams(40, 9, 1..5),
        priorities in prop::collection::vec(0..3u32, 5),
    ) {
        streams.iter_mut().for_each(|jobs| jobs.sort_by_key(|job| job.0));
        // Times stay as they are: `from_first_arrival` would count each stream from its first job.
        let traces: Vec<ReplayTrace> = streams.iter().map(|jobs| {
            let job = |&(at, works): &(u64, [u64; 3])| Job { arrival: Nanos(at), work: PerStage::from_fn(|s| Nanos(works[s as usize])) };
            let jobs = jobs.iter().map(job).collect();
            ReplayTrace::new(CircularTrace::new(jobs, Nanos(10_000)).unwrap()).unwrap()
        }).collect();
        let system = system(&traces, &priorities);
        let mut latencies = Latencies::new(streams.len());
        Replay::new(&system, PreemptionMode::Preemptive).run(&Alignment::Recorded.shifts(&system), &mut latencies);
        for (tagged, stream) in latencies.streams.iter().enumerate() {
            // A stream's requests leave in order.
            for (index, latency) in stream.iter().enumerate() {
                let bound = joint_queue(&streams, &priorities, tagged, index);
                prop_assert!(latency.0 <= bound, "stream {tagged}, job {index}: {latency:?} above {bound}");
            }
        }
    }
}

#[test]
fn a_job_alone_needs_the_work_of_all_stages() {
    // The larger of two stages' work and the smaller of each pair would be 5 + 1 + 1.
    let alone = [traffic(&[(0, [5, 1, 5])], 1000, MS)];
    let bound = bounds(&alone, &[0], 100.0)[0].unwrap();
    assert!((0.011..0.0115).contains(&bound), "{bound}");
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn no_bound_is_exceeded_over_all_shifts(
        streams in any_streams(2000, 300, 2..3),
        priorities in prop::collection::vec(0..2u32, 2),
        percent in prop::sample::select(vec![50.0, 75.0, 90.0, 99.0, 100.0]),
    ) {
        let period = 4000;
        let all: Vec<CircularTrace<Job>> = streams.iter().map(|jobs| traffic(jobs, period, 1)).collect();
        let found: Vec<f64> = bounds(&all, &priorities, percent).into_iter().map(|b| b.unwrap_or(f64::INFINITY)).collect();
        let traces = traces(&all);
        let shifts = (0..period).map(|shift| vec![Nanos::ZERO, Nanos(shift)]);
        prop_assume!(all.iter().map(|t| t.utilisation()[Stage::NetworkIn].max(t.utilisation()[Stage::Storage])).sum::<f64>() < 0.9);
        for share in exceeded(&system(&traces, &priorities), shifts, &found) {
            prop_assert!(share <= 1.0 - percent / 100.0 + 1e-9, "{share} above {found:?}");
        }
    }

    #[test]
    fn no_bound_of_three_is_exceeded_over_all_shifts_of_rare_bursts(
        streams in any_streams(150, 14, 3..4),
        priorities in prop::collection::vec(0..3u32, 3),
        percent in prop::sample::select(vec![80.0, 90.0, 95.0, 98.0, 99.0, 99.7]),
    ) {
        let period = 240;
        let all: Vec<CircularTrace<Job>> = streams.iter().map(|jobs| traffic(jobs, period, 1000)).collect();
        prop_assume!(Stage::ALL.iter().all(|s| all.iter().map(|t| t.utilisation()[*s]).sum::<f64>() < 0.6));
        let found: Vec<f64> = bounds(&all, &priorities, percent).into_iter().map(|b| b.unwrap_or(f64::INFINITY)).collect();
        let traces = traces(&all);
        let shifts = (0..period * period).map(|shift| vec![Nanos::ZERO, Nanos(shift % period * 1000), Nanos(shift / period * 1000)]);
        for share in exceeded(&system(&traces, &priorities), shifts, &found) {
            prop_assert!(share <= 1.0 - percent / 100.0 + 1e-9, "{share} above {found:?}");
        }
    }

    #[test]
    fn bounds_hold_on_random_shifts(
        streams in any_streams(90, 6, 3..4),
        periods in prop::collection::vec(90..140u64, 3),
        priorities in prop::collection::vec(0..3u32, 3),
        percent in prop::sample::select(vec![50.0, 75.0, 90.0, 100.0]),
    ) {
        let all: Vec<CircularTrace<Job>> = streams.iter().zip(&periods).map(|(jobs, period)| traffic(jobs, *period, MS)).collect();
        let found: Vec<f64> = bounds(&all, &priorities, percent).into_iter().map(|b| b.unwrap_or(f64::INFINITY)).collect();
        prop_assume!(Stage::ALL.iter().all(|s| all.iter().map(|t| t.utilisation()[*s]).sum::<f64>() < 0.9));
        let traces = traces(&all);
        let system = system(&traces, &priorities);
        let shifts = Alignment::random(3, 1000).map(|alignment| alignment.shifts(&system));
        // Hoeffding: the mean of 1000 alignments is this far off less than once in 10¹⁰.
        let off = if percent == 100.0 { 0.0 } else { 0.11 };
        for share in exceeded(&system, shifts, &found) {
            prop_assert!(share <= 1.0 - percent / 100.0 + off, "{share} above {found:?}");
        }
    }

    #[test]
    fn more_traffic_and_a_higher_percentile_and_dependence_do_not_lower_a_bound(
        streams in any_streams(90, 4, 3..4),
        priorities in prop::collection::vec(0..3u32, 3),
        percents in (10.0..99.0f64, 0.1..1.0f64),
    ) {
        let all: Vec<CircularTrace<Job>> = streams.iter().map(|jobs| traffic(jobs, 100, MS)).collect();
        let value = |found: Result<f64, UndefinedLatency>| found.unwrap_or(f64::INFINITY);
        let at_most = |less: f64, more: f64| less <= more * (1.0 + 1e-9);
        let base: Vec<f64> = bounds(&all, &priorities, percents.0).into_iter().map(value).collect();
        let fewer: Vec<f64> = bounds(&all[..2], &priorities[..2], percents.0).into_iter().map(value).collect();
        let higher = percents.0 + (100.0 - percents.0) * percents.1;
        let higher: Vec<f64> = bounds(&all, &priorities, higher).into_iter().map(value).collect();
        for groups in [[0, 1, 1], [0, 0, 1], [0, 0, 0]] {
            let dependent = grouped_bounds(&all, &priorities, &groups, percents.0);
            for (base, dependent) in base.iter().zip(dependent) {
                prop_assert!(at_most(*base, value(dependent)), "{groups:?}: {base} {dependent:?}");
            }
        }
        for index in 0..3 {
            prop_assert!(at_most(base[index], higher[index]));
            prop_assert!(index == 2 || at_most(fewer[index], base[index]), "{fewer:?} {base:?}");
        }
    }

    #[test]
    fn time_has_no_unit(streams in any_streams(90, 4, 3..4), priorities in prop::collection::vec(0..3u32, 3)) {
        let at = |unit: u64| {
            let all: Vec<CircularTrace<Job>> = streams.iter().map(|jobs| traffic(jobs, 100, unit)).collect();
            bounds(&all, &priorities, 86.371_93)
        };
        for (once, eightfold) in at(100 * MS).into_iter().zip(at(800 * MS)) {
            match (once, eightfold) {
                (Ok(once), Ok(eightfold)) => prop_assert!((eightfold / once / 8.0 - 1.0).abs() < 1e-9, "{once} {eightfold}"),
                (once, eightfold) => prop_assert_eq!(once.is_ok(), eightfold.is_ok()),
            }
        }
    }
}

#[test]
fn what_has_no_bound_says_why() {
    let half = traffic(&[(0, [0, 6, 0])], 10, MS);
    let found = bounds(&[half.clone(), half.clone()], &[0, 1], 99.0);
    assert!(found[0].is_ok());
    assert_eq!(found[1], Err(UndefinedLatency::Overload { stage: Stage::Storage, utilisation: 1.2 }));
    let model = Probabilistic::default();
    let sketch = model.sketch(&traffic(&[(0, [1, 1, 1])], 100, MS));
    let crossed = ServerMember {
        priority: PerStage::from_fn(|stage| u32::from(stage == Stage::Storage)),
        ..member(&sketch, 0, 0, 99.0)
    };
    let level = ServerMember {
        priority: PerStage::from_fn(|stage| u32::from(stage != Stage::Storage)),
        ..member(&sketch, 0, 1, 99.0)
    };
    // What has no bound of its own has the worst case.
    let job = traffic(&[(0, [1, 1, 1])], 100, MS);
    let worst_sketch = WorstCase::default().sketch(&job);
    let crossed_worst = [&crossed, &level].map(|m| ServerMember {
        sketch: &worst_sketch,
        priority: m.priority,
        group: m.group,
        percentile: m.percentile,
    });
    let worst = WorstCase::default().predict(&crossed_worst);
    assert!(worst.iter().all(Result::is_ok));
    assert_eq!(model.predict(&[crossed, level]), worst);
    let some_skip = model.sketch(&traffic(&[(0, [1, 1, 1]), (5, [1, 0, 1])], 100, MS));
    assert!(model.predict(&[member(&some_skip, 0, 0, 99.0)])[0].is_ok_and(|p| p.bound >= 0.003));
    assert_eq!(model.predict(&[]), []);
}

#[test]
fn a_margin_counts_as_work() {
    let traffic = traffic(&[(0, [1, 2, 1]), (3, [1, 2, 1])], 100, MS);
    let bound = |model: Probabilistic| {
        let sketch = model.sketch(&traffic);
        model.predict(&[member(&sketch, 0, 0, 99.0)])[0].unwrap().bound
    };
    let ratio = bound(Probabilistic::with_safety(1.5)) / bound(Probabilistic::default());
    assert!((1.45..1.6).contains(&ratio), "{ratio}");
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

/// Poisson arrivals at storage; work in seconds from a uniform number.
fn poisson(seed: u64, count: usize, rate_per_s: f64, work: impl Fn(f64) -> f64) -> CircularTrace<Job> {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut at = 0.0;
    let mut job = || {
        at -= (1.0 - random.random::<f64>()).ln() / rate_per_s;
        let works = [0.0, work(random.random()), 0.0];
        (at, works)
    };
    let jobs: Vec<(f64, [f64; 3])> = (0..count).map(|_| job()).collect();
    let job = |(at, works): &(f64, [f64; 3])| Job {
        arrival: nanos(*at),
        work: PerStage::from_fn(|stage| nanos(works[stage as usize])),
    };
    CircularTrace::repeating(jobs.iter().map(job).collect()).unwrap()
}

#[test]
fn poisson_traffic_is_bounded_within_a_small_factor() {
    // M/M/1 at utilisation 0.5, mean work 1 ms, as the sum of 8: P(latency > d) = exp(−d/2 ms).
    let exponential = |uniform: f64| -(1.0 - uniform).ln() * 1e-3;
    let all: Vec<CircularTrace<Job>> =
        (0..8).map(|seed| poisson(seed, 5_000, 500.0 / 8.0, exponential)).collect();
    for (percent, factor) in [(99.0, 1.9), (99.9, 1.8)] {
        let exact = -(1.0 - percent / 100.0f64).ln() * 2e-3;
        for bound in bounds(&all, &[0; 8], percent) {
            let ratio = bound.unwrap() / exact;
            println!("M/M/1 p{percent}: {ratio}");
            assert!((0.95..factor).contains(&ratio), "p{percent}: {ratio}");
        }
    }
}

/// Here the published procedure is sound: arrivals are Poisson and sizes exponential, as its fit assumes. Near saturation, and
/// there alone, the last priorities have larger bounds than the published ones.
#[test]
fn bounds_of_poisson_traffic_are_within_the_published_ones() {
    let exponential = |uniform: f64| -(1.0 - uniform).ln() * 1e-3;
    let ours = Probabilistic::default();
    let theirs = PublishedSnc::default();
    for (count, load) in [(2, 0.3), (8, 0.3), (8, 0.5)] {
        let rate = load * 1e3 / count as f64;
        let all: Vec<CircularTrace<Job>> =
            (0..count as u64).map(|seed| poisson(seed, 5_000, rate, exponential)).collect();
        let sketches: Vec<ProbabilisticSketch> = all.iter().map(|t| ours.sketch(t)).collect();
        let published: Vec<PathSketch> = all.iter().map(|t| theirs.sketch(t)).collect();
        for levels in [1, count] {
            let found = ours.predict(&by_position(&sketches, levels));
            let beside = theirs.predict(&by_position(&published, levels));
            for (found, beside) in found.iter().zip(&beside) {
                let ratio = found.unwrap().bound / beside.unwrap().bound;
                assert!(ratio < 0.7, "{count} workloads, load {load}, {levels} priorities: {ratio}");
            }
        }
    }
}

/// Each its own group, with p99.9 and so many priorities in turn.
fn by_position<S>(sketches: &[S], levels: usize) -> Vec<ServerMember<'_, S>> {
    let member = |(group, sketch)| ServerMember {
        sketch,
        priority: PerStage::from_fn(|_| u32::try_from(group % levels).unwrap()),
        group,
        percentile: percentile(99.9),
    };
    sketches.iter().enumerate().map(member).collect()
}

#[test]
fn quick_answers_agree_with_bounds() {
    let Some(real) = published(Through::Server) else { return };
    let model = Probabilistic::default();
    let sketches: Vec<ProbabilisticSketch> = real.iter().take(8).map(|r| model.sketch(&r.traffic)).collect();
    let members: Vec<ServerMember<'_, ProbabilisticSketch>> =
        sketches.iter().enumerate().map(|(i, s)| member(s, [0, 0, 0, 1, 1, 1, 2, 2][i], i, 99.9)).collect();
    let bounds: Vec<f64> = model.predict(&members).into_iter().map(|p| p.unwrap().bound).collect();
    assert_eq!(model.accepts(&members, &bounds), Ok(()));
    for tight in 0..8 {
        let mut budgets = bounds.clone();
        budgets[tight] *= 0.5;
        assert_eq!(model.accepts(&members, &budgets), Err(ProbabilisticRefusal::Exceeded(tight)));
    }
}

#[test]
fn real_traces_keep_their_bounds() {
    let Some(real) = published(Through::Server) else { return };
    let model = Probabilistic::default();
    let some: Vec<CircularTrace<Job>> = real.into_iter().step_by(7).map(|r| r.traffic).collect();
    let priorities: Vec<u32> = (0u32..3).cycle().take(some.len()).collect();
    let sketches: Vec<ProbabilisticSketch> = some.iter().map(|t| model.sketch(t)).collect();
    let traces = traces(&some);
    let system = system(&traces, &priorities);
    for percent in [90.0, 99.9] {
        let members: Vec<ServerMember<'_, ProbabilisticSketch>> =
            sketches.iter().enumerate().map(|(i, s)| member(s, priorities[i], i, percent)).collect();
        let found: Vec<f64> = model.predict(&members).into_iter().map(|p| p.unwrap().bound).collect();
        let shifts = Alignment::random(1, 6).map(|alignment| alignment.shifts(&system));
        for (index, share) in exceeded(&system, shifts, &found).into_iter().enumerate() {
            assert!(
                share <= 1.0 - percent / 100.0,
                "member {index}, p{percent}: {share} later than {}",
                found[index]
            );
        }
    }
}
