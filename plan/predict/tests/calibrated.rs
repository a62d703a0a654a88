//! Calibrated forecasts: coverage on exchangeable windows as promised, what a change that no window shows does to it, and what is
//! said where there is too little to learn from. Judged by a queue of a few lines.

use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember, Stage};
use predict::{
    Calibrated, CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember, MarginBasis, Replayed,
    TrialCompany, WorstCase,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::{Nanos, Percentile};

/// The length of a window, nanoseconds, and the requests in it.
const WINDOW: u64 = 1_000_000_000;
const REQUESTS: u64 = 200;

fn percentile() -> Percentile {
    Percentile::new(90.0).unwrap()
}

/// The work of one request in each window: so rare that no 90th percentile shows it, and so large that the worst case by the
/// burst curves of one window covers the percentile of another.
const RARE: u64 = 40_000_000;

/// A window in which the mean work of a request is drawn anew, from a range that `scale` multiplies.
fn window(random: &mut StdRng, scale: f64) -> Vec<Job> {
    let mut jobs = steady_window(random, scale);
    let rare = &mut jobs[usize::try_from(REQUESTS / 2).unwrap()];
    rare.work = PerStage::from_fn(|stage| Nanos(if stage == Stage::Storage { RARE } else { 0 }));
    jobs
}

/// The same without the rare request.
fn steady_window(random: &mut StdRng, scale: f64) -> Vec<Job> {
    let level = scale * random.random_range(0.02f64..0.6);
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
fn trace(random: &mut StdRng, windows: u64) -> CircularTrace<Job> {
    scaled_trace(random, windows, 1.0)
}

fn scaled_trace(random: &mut StdRng, windows: u64, scale: f64) -> CircularTrace<Job> {
    let mut jobs = Vec::new();
    for number in 0..windows {
        let shifted = window(random, scale).into_iter();
        jobs.extend(shifted.map(|job| Job { arrival: Nanos(job.arrival.0 + number * WINDOW), ..job }));
    }
    CircularTrace::new(jobs, Nanos(windows * WINDOW)).unwrap()
}

/// The 90th percentile of the latencies of a queue that is empty before, by Lindley's recursion.
fn seen(jobs: &[Job]) -> f64 {
    let mut free = 0;
    let mut latencies = Vec::new();
    for job in jobs {
        free = job.arrival.0.max(free) + job.work[Stage::Storage].0;
        latencies.push(free - job.arrival.0);
    }
    latencies.sort_unstable();
    latencies[latencies.len() * 9 / 10 - 1] as f64 * 1e-9
}

/// Everybody alone, in as many rounds as there are windows.
fn alone(traces: usize, windows: usize) -> Vec<TrialCompany> {
    let mut companies = Vec::new();
    for round in 0..windows {
        for trace in 0..traces {
            let member = CompanyMember {
                trace,
                priority: PerStage::from_fn(|_| 0),
                group: trace,
                percentile: percentile(),
            };
            companies.push(TrialCompany { round, window: round, members: vec![member] });
        }
    }
    companies
}

fn learn(goal: CalibrationGoal, traces: &[CircularTrace<Job>], windows: usize) -> Calibrated {
    let sources: Vec<_> =
        traces.iter().enumerate().map(|(block, traffic)| CalibrationTrace { traffic, block }).collect();
    Calibrated::learn(goal, &sources, &alone(traces.len(), windows), &|| true)
}

fn bound<M: LatencyModel>(model: &M, traffic: &CircularTrace<Job>) -> f64 {
    let sketch = model.sketch(traffic);
    let member = ServerMember {
        sketch: &sketch,
        priority: PerStage::from_fn(|_| 0),
        group: 0,
        percentile: percentile(),
    };
    let bound = model.predict(std::slice::from_ref(&member))[0].unwrap().bound;
    assert!(model.all_within(std::slice::from_ref(&member), &[bound * (1.0 + 1e-9)]));
    assert!(!model.all_within(std::slice::from_ref(&member), &[bound * 0.999]));
    bound
}

fn goal(coverage: f64) -> CalibrationGoal {
    CalibrationGoal { coverage, window: Some(Nanos(WINDOW)), scope: CalibrationScope::Workload }
}

/// The share of next windows, of so many times so many traces, that stay within the bound of `calibrated` and of `replayed`.
fn covered(coverage: f64, traces: usize, windows: u64, repetitions: u64, scale: f64) -> [f64; 2] {
    let mut within = [0, 0];
    let mut asked = 0;
    for seed in 0..repetitions {
        let mut random = StdRng::seed_from_u64(seed);
        let history: Vec<_> = (0..traces).map(|_| trace(&mut random, windows)).collect();
        let model = learn(goal(coverage), &history, usize::try_from(windows).unwrap());
        for traffic in &history {
            let next = seen(&window(&mut random, scale));
            within[0] += usize::from(next <= bound(&model, traffic));
            within[1] += usize::from(next <= bound(&Replayed::default(), traffic));
            asked += 1;
        }
    }
    within.map(|within| within as f64 / asked as f64)
}

#[test]
fn exchangeable_windows_are_covered_as_often_as_asked() {
    // A trial predicts from all windows but one, a forecast from all: the fewer there are, the more is covered.
    for (coverage, windows, most) in [(0.8, 2, 0.97), (0.9, 8, 0.97)] {
        let [calibrated, replayed] = covered(coverage, 24, windows, 6, 1.0);
        // Of 144 windows: four standard deviations are 0.13 and 0.1.
        let slack = 4.0 * (coverage * (1.0 - coverage) / 144.0f64).sqrt();
        assert!(calibrated >= coverage - slack, "{coverage}: {calibrated}");
        assert!(calibrated <= most, "{coverage}: {calibrated} is wasteful");
        assert!(replayed < coverage - 0.1, "{coverage}: {replayed} without margins");
    }
}

#[test]
fn a_change_that_no_window_shows_is_missed() {
    let [calibrated, _] = covered(0.9, 24, 2, 2, 8.0);
    assert!(calibrated < 0.5, "{calibrated} of windows with eight times the work are covered");
}

#[test]
fn many_windows_of_a_trace_are_enough_without_others() {
    let mut random = StdRng::seed_from_u64(3);
    let history = [trace(&mut random, 19), trace(&mut random, 18)];
    let model = learn(goal(0.95), &history, 19);
    let margin = model.margin_of(&history[0], percentile()).unwrap();
    assert_eq!((margin.basis, margin.blocks), (MarginBasis::Windows, 19));
    assert!(margin.factor >= 1.0 && margin.factor.is_finite(), "{}", margin.factor);
    // One window too few: the windows of both are pooled.
    let pooled = model.margin_of(&history[1], percentile()).unwrap();
    assert_eq!((pooled.basis, pooled.blocks), (MarginBasis::Pool, 37));
}

#[test]
fn without_enough_windows_the_worst_case_counts() {
    let mut random = StdRng::seed_from_u64(4);
    let history: Vec<_> = (0..9).map(|_| trace(&mut random, 2)).collect();
    let model = learn(goal(0.95), &history, 2);
    let few = model.margin_of(&history[0], percentile()).unwrap_err();
    assert_eq!((few.pool.given, few.pool.needed), (18, 19));
    assert_eq!(bound(&model, &history[0]), bound(&WorstCase::default(), &history[0]));
    // One more, and a trace that is too short to have windows has no margin all the same.
    let more: Vec<_> = (0..11).map(|number| trace(&mut random, if number == 0 { 1 } else { 2 })).collect();
    let model = learn(goal(0.95), &more, 2);
    assert!(model.margin_of(&more[0], percentile()).is_err());
    assert_eq!(model.margin_of(&more[1], percentile()).unwrap().blocks, 20);
    // Nobody in a trial, another percentile: nothing is known of it.
    assert!(model.margin_of(&more[1], Percentile::new(50.0).unwrap()).is_err());
}

/// The bound of `calibrated` is between those of `replayed` and of `worst-case`, at any coverage and with any amount of data,
/// alone and in company, and a limit that the worst case keeps is kept.
#[test]
fn no_bound_is_above_the_worst_case() {
    for (coverage, windows) in [(0.5, 2), (0.8, 4), (0.95, 2), (0.99, 4)] {
        let mut random = StdRng::seed_from_u64(11);
        // Windows that are not alike: margins are large.
        let history: Vec<_> = (0..12)
            .map(|number| scaled_trace(&mut random, windows, if number % 4 == 0 { 0.1 } else { 1.0 }))
            .collect();
        let model = learn(goal(coverage), &history, usize::try_from(windows).unwrap());
        let worst = predicted(&WorstCase::default(), &history[..3]);
        let replayed = predicted(&Replayed::default(), &history[..3]);
        let calibrated = predicted(&model, &history[..3]);
        for member in 0..3 {
            assert!(calibrated[member] <= worst[member], "{coverage}: {calibrated:?} above {worst:?}");
            assert!(calibrated[member] >= replayed[member].min(worst[member]), "{coverage}: {calibrated:?}");
        }
        let sketches: Vec<_> = history[..3].iter().map(|traffic| model.sketch(traffic)).collect();
        assert!(model.all_within(&members_of(&sketches), &worst), "{coverage}");
    }
}

/// Windows above the worst case by the curves of the rest are counted, and no margin is said to cover them.
#[test]
fn windows_beyond_the_curves_of_the_rest_are_counted() {
    let mut random = StdRng::seed_from_u64(12);
    let mut quiet = || {
        let first = steady_window(&mut random, 0.05);
        let second = steady_window(&mut random, 1.0);
        let second = second.into_iter().map(|job| Job { arrival: Nanos(job.arrival.0 + WINDOW), ..job });
        CircularTrace::new(first.into_iter().chain(second).collect(), Nanos(2 * WINDOW)).unwrap()
    };
    let history: Vec<_> = (0..24).map(|_| quiet()).collect();
    let model = learn(goal(0.8), &history, 2);
    // About half of the windows are the second ones.
    let kept = model.kept();
    assert!((0.4..0.75).contains(&kept.guaranteed_workloads), "{kept:?}");
    assert!(kept.workloads <= kept.guaranteed_workloads, "{kept:?}");
    assert_eq!(model.margin_of(&history[0], percentile()).unwrap().factor, f64::INFINITY);
    assert_eq!(bound(&model, &history[0]), bound(&WorstCase::default(), &history[0]));
}

/// With more traces of the same kind, margins do not grow in the mean, and one that was found does not vanish: the largest of 20
/// scores, the second largest of 40 and the fourth largest of 80 have the same rank among one more in expectation.
#[test]
fn more_data_needs_no_larger_margins() {
    const SEEDS: u64 = 12;
    let mut growth = [Vec::new(), Vec::new()];
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(100 + seed);
        let history: Vec<_> = (0..40).map(|_| trace(&mut random, 2)).collect();
        let margins = [5, 10, 20, 40].map(|traces| {
            let model = learn(goal(0.95), &history[..traces], 2);
            model.margin_of(&history[0], percentile()).map_or(f64::INFINITY, |margin| margin.factor)
        });
        assert_eq!(margins[0], f64::INFINITY, "ten windows are too few");
        assert!(margins[1..].iter().all(|margin| margin.is_finite()), "{margins:?}");
        for (step, growth) in growth.iter_mut().enumerate() {
            growth.push((margins[step + 2] / margins[step + 1]).ln());
        }
    }
    for growth in growth {
        let count = growth.len() as f64;
        let mean = growth.iter().sum::<f64>() / count;
        let squares: f64 = growth.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        assert!(mean <= 3.0 * error, "{mean} with a standard error of {error}: {growth:?}");
    }
}

/// The traces on one server, of one priority.
fn members_of<S>(sketches: &[S]) -> Vec<ServerMember<'_, S>> {
    let mut members = Vec::new();
    for (group, sketch) in sketches.iter().enumerate() {
        members.push(ServerMember {
            sketch,
            priority: PerStage::from_fn(|_| 0),
            group,
            percentile: percentile(),
        });
    }
    members
}

/// The bounds of traces that share a server, seconds; infinite where there is none.
fn predicted<M: LatencyModel>(model: &M, traces: &[CircularTrace<Job>]) -> Vec<f64> {
    let sketches: Vec<_> = traces.iter().map(|traffic| model.sketch(traffic)).collect();
    let predictions = model.predict(&members_of(&sketches)).into_iter();
    predictions.map(|prediction| prediction.map_or(f64::INFINITY, |prediction| prediction.bound)).collect()
}

#[test]
fn everybody_together_needs_more() {
    let mut random = StdRng::seed_from_u64(5);
    let history: Vec<_> = (0..24).map(|_| trace(&mut random, 2)).collect();
    let factor = |scope| {
        let model = learn(CalibrationGoal { scope, ..goal(0.9) }, &history, 2);
        model.margin_of(&history[0], percentile()).map(|margin| (margin.factor, margin.blocks))
    };
    let workload = factor(CalibrationScope::Workload).unwrap();
    let servers = factor(CalibrationScope::Server).unwrap();
    // Alone on a server, everybody there is one.
    assert_eq!(workload, servers);
    // A round is one plan, and its two windows are two.
    let few = factor(CalibrationScope::Plan).unwrap_err();
    assert_eq!((few.windows.given, few.pool.given, few.pool.needed), (2, 1, 9));
}

#[test]
fn traces_that_depend_on_each_other_are_one_block() {
    let mut random = StdRng::seed_from_u64(6);
    let history: Vec<_> = (0..24).map(|_| trace(&mut random, 2)).collect();
    let pairs = history.iter().enumerate();
    let sources = pairs.map(|(number, traffic)| CalibrationTrace { traffic, block: number / 2 });
    let model = Calibrated::learn(goal(0.9), &sources.collect::<Vec<_>>(), &alone(24, 2), &|| true);
    assert_eq!(model.margin_of(&history[0], percentile()).unwrap().blocks, 24);
    let kept = model.kept();
    assert!(
        kept.workloads >= 0.9 && kept.plans <= kept.servers && kept.servers <= kept.workloads,
        "{kept:?}"
    );
}

#[test]
fn trials_are_left_out_when_told() {
    let mut random = StdRng::seed_from_u64(8);
    let history: Vec<_> = (0..24).map(|_| trace(&mut random, 2)).collect();
    let sources: Vec<_> =
        history.iter().enumerate().map(|(block, traffic)| CalibrationTrace { traffic, block }).collect();
    let model = Calibrated::learn(goal(0.9), &sources, &alone(24, 2), &|| false);
    assert_eq!(model.margin_of(&history[0], percentile()).unwrap_err().pool.given, 0);
}

#[test]
fn an_interrupted_prediction_is_none() {
    let mut random = StdRng::seed_from_u64(8);
    let traces: Vec<CircularTrace<Job>> = (0..6).map(|_| trace(&mut random, 4)).collect();
    let model = learn(goal(0.8), &traces, 4);
    let sketch = model.sketch(&traces[0]);
    let member = ServerMember {
        sketch: &sketch,
        priority: PerStage::from_fn(|_| 0),
        group: 0,
        percentile: percentile(),
    };
    let members = [member];
    assert_eq!(model.predict_unless(&|| true, &members), None);
    assert_eq!(model.predict_unless(&|| false, &members), Some(model.predict(&members)));
}
