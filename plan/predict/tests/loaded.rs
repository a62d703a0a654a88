//! Servers that are filled by more work than the traces have: their place between replays and worst case, and how often SLOs
//! are kept in held-out and in unseen windows. Judged by a queue of a few lines.

use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember, Stage};
use predict::{
    CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember, LoadedReplays, Replayed, SloTrial,
    TrialCompany, WorstCase, slo_coverage,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::{Nanos, Percentile};

/// The length of a window, nanoseconds, and the requests in it.
const WINDOW: u64 = 1_000_000_000;
const REQUESTS: u64 = 100;

fn percentile() -> Percentile {
    Percentile::new(90.0).unwrap()
}

/// A window in which the mean work of a request is drawn anew: at most `most` of what the stage does.
fn window(random: &mut StdRng, most: f64) -> Vec<Job> {
    let level = most * random.random_range(0.05f64..1.0);
    window_of(random, level)
}

/// The same with at least half of it.
fn leveled_window(random: &mut StdRng, most: f64) -> Vec<Job> {
    let level = most * random.random_range(0.5f64..1.0);
    window_of(random, level)
}

/// A window that uses the stage by `level`.
fn window_of(random: &mut StdRng, level: f64) -> Vec<Job> {
    let gap = (WINDOW / REQUESTS) as f64;
    let mut jobs = Vec::new();
    for number in 0..REQUESTS {
        let work = (-random.random_range(f64::EPSILON..1.0).ln() * level * gap).min(20.0 * level * gap);
        let at = number * (WINDOW / REQUESTS) + random.random_range(0..WINDOW / REQUESTS);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and minutes")]
        let ns = work as u64 + 1;
        let work = PerStage::from_fn(|stage| Nanos(if stage == Stage::Storage { ns } else { 0 }));
        jobs.push(Job { arrival: Nanos(at), work });
    }
    jobs
}

/// A trace of so many windows.
fn trace(random: &mut StdRng, windows: u64, most: f64) -> CircularTrace<Job> {
    let mut jobs = Vec::new();
    for number in 0..windows {
        let shifted = window(random, most).into_iter();
        jobs.extend(shifted.map(|job| Job { arrival: Nanos(job.arrival.0 + number * WINDOW), ..job }));
    }
    CircularTrace::new(jobs, Nanos(windows * WINDOW)).unwrap()
}

/// The 90th percentile of the latencies of a queue that repeats these requests, by Lindley's recursion, seconds.
fn seen(jobs: &[Job]) -> f64 {
    let mut free = 0;
    let mut latencies = Vec::new();
    for period in 0..2 {
        for job in jobs {
            let arrival = job.arrival.0 + period * WINDOW;
            free = arrival.max(free) + job.work[Stage::Storage].0;
            if period == 1 {
                latencies.push(free - arrival);
            }
        }
    }
    latencies.sort_unstable();
    latencies[(latencies.len() * 9).div_ceil(10) - 1] as f64 * 1e-9
}

fn goal(coverage: f64, scope: CalibrationScope) -> CalibrationGoal {
    CalibrationGoal { coverage, window: Some(Nanos(WINDOW)), scope }
}

fn members_of<S>(sketches: &[S]) -> Vec<ServerMember<'_, S>> {
    let priority = PerStage::from_fn(|_| 0);
    let sketches = sketches.iter().enumerate();
    sketches
        .map(|(group, sketch)| ServerMember { sketch, priority, group, percentile: percentile() })
        .collect()
}

fn bounds<M: LatencyModel>(model: &M, traces: &[CircularTrace<Job>]) -> Vec<f64> {
    let sketches: Vec<_> = traces.iter().map(|traffic| model.sketch(traffic)).collect();
    let predictions = model.predict(&members_of(&sketches));
    predictions.into_iter().map(|p| p.map_or(f64::INFINITY, |p| p.bound)).collect()
}

fn estimates<M: LatencyModel>(model: &M, traces: &[CircularTrace<Job>]) -> Vec<f64> {
    let sketches: Vec<_> = traces.iter().map(|traffic| model.sketch(traffic)).collect();
    let predictions = model.predict(&members_of(&sketches)).into_iter();
    predictions.map(|p| p.unwrap().estimate.expect("replays estimate").latency).collect()
}

/// Every workload alone in each window, with an SLO of `limit` seconds.
fn alone(traces: usize, windows: usize, limit: f64) -> Vec<SloTrial> {
    let mut trials = Vec::new();
    for round in 0..windows {
        for trace in 0..traces {
            let priority = PerStage::from_fn(|_| 0);
            let member = CompanyMember { trace, priority, group: trace, percentile: percentile() };
            let company = TrialCompany { round, window: round, members: vec![member] };
            trials.push(SloTrial { company, limits: vec![limit] });
        }
    }
    trials
}

/// Bounds lie between the replays of as much work and the worst case, and a limit that either keeps is kept.
#[test]
fn the_lesser_of_loaded_replays_and_worst_case_counts() {
    let mut random = StdRng::seed_from_u64(7);
    let traces: Vec<_> = (0..3).map(|_| trace(&mut random, 4, 0.2)).collect();
    let worst = bounds(&WorstCase::default(), &traces);
    for load in [1.0, 1.5, 3.0, 8.0] {
        let more: Vec<_> = traces.iter().map(|traffic| traffic.with_work(load)).collect();
        let replayed = bounds(&Replayed::default(), &more);
        let model = LoadedReplays::new(goal(0.9, CalibrationScope::Workload), load);
        let found = bounds(&model, &traces);
        for member in 0..3 {
            assert_eq!(found[member], replayed[member].min(worst[member]), "{load}: {member}");
        }
        let sketches: Vec<_> = traces.iter().map(|traffic| model.sketch(traffic)).collect();
        assert!(model.all_within(&members_of(&sketches), &worst), "{load}");
        assert!(model.clone().remembering().all_within(&members_of(&sketches), &worst), "{load}");
        let less: Vec<f64> = found.iter().map(|bound| bound * 0.999).collect();
        assert!(!model.all_within(&members_of(&sketches), &less), "{load}");
        // Estimates are of the traces as they are, where replays bound the latency.
        if found.iter().zip(&worst).all(|(found, worst)| found < worst) {
            assert_eq!(estimates(&model, &traces), estimates(&Replayed::default(), &traces), "{load}");
        }
    }
    let heavy = bounds(&Replayed::default(), &[traces[0].with_work(8.0)]);
    assert!(heavy[0] >= 8.0 * bounds(&Replayed::default(), &traces[..1])[0] * (1.0 - 1e-6));
}

/// A trace that is shorter than two windows was not tested: only the worst case gives it a place.
#[test]
fn an_untested_trace_has_the_worst_case() {
    let mut random = StdRng::seed_from_u64(8);
    let traces = [trace(&mut random, 1, 0.2), trace(&mut random, 4, 0.2)];
    let model = LoadedReplays::new(goal(0.9, CalibrationScope::Workload), 1.0);
    let worst = bounds(&WorstCase::default(), &traces);
    let found = bounds(&model, &traces);
    assert_eq!(found[0], worst[0]);
    assert!(found[1] < worst[1], "{found:?} {worst:?}");
    let sketches: Vec<_> = traces.iter().map(|traffic| model.sketch(traffic)).collect();
    let within = |factor: f64| model.all_within(&members_of(&sketches), &[worst[0] * factor, worst[1]]);
    assert!(within(1.0) && !within(0.999));
}

/// Remembered answers to earlier questions change no answer.
#[test]
fn a_model_that_remembers_answers_alike() {
    let mut random = StdRng::seed_from_u64(8);
    let traces: Vec<CircularTrace<Job>> = (0..12).map(|_| trace(&mut random, 4, 0.1)).collect();
    for load in [1.0, 2.0] {
        let model = LoadedReplays::new(goal(0.9, CalibrationScope::Workload), load);
        let remembering = model.clone().remembering();
        let sketches: Vec<_> = traces.iter().map(|trace| model.sketch(trace)).collect();
        let mut kept = 0;
        for question in 0..60usize {
            let all = members_of(&sketches).into_iter().enumerate();
            let members: Vec<_> =
                all.filter(|(number, _)| (question + number) % 6 == 0).map(|(_, member)| member).collect();
            let limits = vec![0.0001 * 1.15f64.powf(question as f64); members.len()];
            let answer = model.all_within(&members, &limits);
            let likely = remembering.likely_within(&members, &limits);
            assert!(likely.is_none_or(|likely| likely == answer), "{load} {question}");
            assert_eq!(remembering.all_within(&members, &limits), answer, "{load} {question}");
            kept += usize::from(answer);
        }
        assert!(kept > 0 && kept < 60, "{load}: {kept}");
    }
}

/// Every held-out window is counted as the queue of a few lines counts it, and one to come as a miss.
#[test]
fn held_out_windows_are_counted_as_a_queue_serves_them() {
    let mut random = StdRng::seed_from_u64(9);
    let windows: Vec<Vec<Vec<Job>>> =
        (0..20).map(|_| (0..2).map(|_| window(&mut random, 0.6)).collect()).collect();
    let history: Vec<_> = windows
        .iter()
        .map(|windows| {
            let second = windows[1].iter().map(|job| Job { arrival: Nanos(job.arrival.0 + WINDOW), ..*job });
            CircularTrace::new(windows[0].iter().copied().chain(second).collect(), Nanos(2 * WINDOW)).unwrap()
        })
        .collect();
    let traces: Vec<_> =
        history.iter().enumerate().map(|(block, traffic)| CalibrationTrace { traffic, block }).collect();
    let mut latencies: Vec<f64> = windows.iter().flatten().map(|jobs| seen(jobs)).collect();
    latencies.sort_by(f64::total_cmp);
    // Half-way between two of them, so that rounding decides nothing.
    for late in [0, 1, 5, 20] {
        let limit = match late {
            0 => 2.0 * latencies[39],
            late => 0.5 * (latencies[39 - late] + latencies[40 - late]),
        };
        let goal = goal(0.95, CalibrationScope::Workload);
        let found = slo_coverage(&goal, &traces, &alone(20, 2, limit), &|| true);
        assert_eq!((found.blocks, found.needed), (40, 19));
        assert!((found.coverage - (40 - late) as f64 / 41.0).abs() < 1e-9, "{late}: {found:?}");
        assert!((found.kept[0] - (40 - late) as f64 / 40.0).abs() < 1e-9, "{late}: {found:?}");
        assert_eq!(found.suffices(&goal), late <= 1, "{late}: {found:?}");
    }
    let none = slo_coverage(&goal(0.95, CalibrationScope::Workload), &traces, &alone(20, 2, 1.0), &|| false);
    assert_eq!((none.blocks, none.has_enough_blocks()), (0, false));
}

/// Workloads, servers and plans are blocks of their own kind: windows of traces, windows of servers, windows.
#[test]
fn blocks_follow_what_the_coverage_counts() {
    let mut random = StdRng::seed_from_u64(10);
    let history: Vec<_> = (0..12).map(|_| trace(&mut random, 4, 0.1)).collect();
    let traces: Vec<_> =
        history.iter().enumerate().map(|(block, traffic)| CalibrationTrace { traffic, block }).collect();
    let mut trials = Vec::new();
    for window in 0..4 {
        for server in 0..3 {
            let mut members = Vec::new();
            for trace in 4 * server..4 * server + 4 {
                let priority = PerStage::from_fn(|_| 0);
                members.push(CompanyMember { trace, priority, group: trace, percentile: percentile() });
            }
            // The last server misses its SLOs always.
            let limits = vec![if server == 2 { 0.0 } else { 10.0 }; 4];
            let company = TrialCompany { round: window, window, members };
            trials.push(SloTrial { company, limits });
        }
    }
    for (scope, blocks, kept) in [
        (CalibrationScope::Workload, 48, 32.0),
        (CalibrationScope::Server, 12, 8.0),
        (CalibrationScope::Plan, 4, 0.0),
    ] {
        let found = slo_coverage(&goal(0.6, scope), &traces, &trials, &|| true);
        assert_eq!(found.blocks, blocks, "{scope:?}");
        assert!((found.coverage - kept / (blocks + 1) as f64).abs() < 1e-9, "{scope:?}: {found:?}");
        assert_eq!(found.kept.map(|share| (share * 300.0).round()), [200.0, 200.0, 0.0]);
    }
}

/// The SLO of workloads that are let in alone, seconds.
const LIMIT: f64 = 0.02;
const LOADS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0];

/// Traces of so many windows, each with a level of its own that no window leaves by more than a factor of two.
fn steady_traces(random: &mut StdRng, levels: &[f64], windows: u64) -> Vec<CircularTrace<Job>> {
    let mut traces = Vec::new();
    for level in levels {
        let mut jobs = Vec::new();
        for number in 0..windows {
            let shifted = leveled_window(random, *level).into_iter();
            jobs.extend(shifted.map(|job| Job { arrival: Nanos(job.arrival.0 + number * WINDOW), ..job }));
        }
        traces.push(CircularTrace::new(jobs, Nanos(windows * WINDOW)).unwrap());
    }
    traces
}

/// Returns true if a workload alone keeps the SLO with this load.
fn is_let_in(traffic: &CircularTrace<Job>, load: f64) -> bool {
    bounds(&Replayed::default(), &[traffic.with_work(load)])[0] <= LIMIT
}

/// Returns the least load with which held-out windows keep the SLOs of those who are let in by the rest.
fn chosen_load(history: &[CircularTrace<Job>], windows: usize, goal: &CalibrationGoal) -> Option<f64> {
    let traces: Vec<_> =
        history.iter().enumerate().map(|(block, traffic)| CalibrationTrace { traffic, block }).collect();
    LOADS.into_iter().find(|&load| {
        let mut trials = alone(history.len(), windows, LIMIT);
        trials.retain(|trial| {
            let TrialCompany { members, window, .. } = &trial.company;
            is_let_in(&goal.rest(&history[members[0].trace], *window).unwrap(), load)
        });
        slo_coverage(goal, &traces, &trials, &|| true).suffices(goal)
    })
}

/// Those who are let in keep their SLO in a window that is not known yet at least as often as is asked for.
#[test]
fn exchangeable_windows_keep_slos_as_often_as_asked() {
    const COVERAGE: f64 = 0.9;
    let mut kept = [0u32, 0];
    let mut placed = [0u32, 0];
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(50 + seed);
        let levels: Vec<f64> = (0..24).map(|_| random.random_range(0.3..1.2)).collect();
        let history = steady_traces(&mut random, &levels, 2);
        let next: Vec<f64> = levels.iter().map(|level| seen(&leveled_window(&mut random, *level))).collect();
        let chosen = chosen_load(&history, 2, &goal(COVERAGE, CalibrationScope::Workload));
        // Without a load that suffices, the worst case would decide, and nothing is promised here.
        for (way, load) in [chosen, Some(1.0)].into_iter().enumerate() {
            let Some(load) = load else { continue };
            for (traffic, next) in history.iter().zip(&next) {
                if is_let_in(traffic, load) {
                    placed[way] += 1;
                    kept[way] += u32::from(*next <= LIMIT);
                }
            }
        }
    }
    let share = |way: usize| f64::from(kept[way]) / f64::from(placed[way]);
    let slack = 3.0 * (COVERAGE * (1.0 - COVERAGE) / f64::from(placed[0])).sqrt();
    assert!(placed[0] > 50, "{placed:?}");
    assert!(share(0) >= COVERAGE - slack, "{kept:?} of {placed:?}");
    assert!(share(1) < COVERAGE, "without more work too few keep it: {kept:?} of {placed:?}");
}

/// With more windows of the same workloads, the load that suffices does not grow in the mean; where none does, the worst case
/// decides, which counts as the largest.
#[test]
fn more_windows_need_no_larger_load() {
    let mut sums = [0.0; 3];
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(80 + seed);
        let levels: Vec<f64> = (0..12).map(|_| random.random_range(0.3..1.2)).collect();
        for (sum, windows) in sums.iter_mut().zip([2, 4, 8]) {
            let history = steady_traces(&mut random, &levels, windows);
            let windows = usize::try_from(windows).unwrap();
            let chosen = chosen_load(&history, windows, &goal(0.9, CalibrationScope::Workload));
            *sum += chosen.unwrap_or(LOADS[LOADS.len() - 1]);
        }
    }
    assert!(sums[2] <= sums[1] && sums[1] <= sums[0], "{sums:?}");
    assert!(sums[2] < sums[0], "{sums:?}");
}
