//! Replayed traffic: its own definition, its limits, and real traces served by a simulator of a few lines.

mod support;

use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember, Stage, UndefinedLatency};
use predict::{BudgetCheck, Replayed};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use support::{Through, published};
use units::{Nanos, Percentile};

fn percentile(percent: f64) -> Percentile {
    Percentile::new(percent).unwrap()
}

fn traffic(jobs: &[(u64, [u64; 3])], period: u64) -> CircularTrace<Job> {
    let job = |&(arrival, work): &(u64, [u64; 3])| Job {
        arrival: Nanos(arrival),
        work: PerStage::from_fn(|stage| Nanos(work[stage as usize])),
    };
    CircularTrace::from_first_arrival(jobs.iter().map(job).collect(), Nanos(period)).unwrap()
}

type Sketch = <Replayed as LatencyModel>::Sketch;

fn member(sketch: &Sketch, priority: [u32; 3], group: usize, percent: f64) -> ServerMember<'_, Sketch> {
    let priority = PerStage::from_fn(|stage: Stage| priority[stage as usize]);
    ServerMember { sketch, priority, group, percentile: percentile(percent) }
}

#[test]
fn alone_the_latency_is_the_work() {
    let model = Replayed::default();
    let sketch = model.sketch(&traffic(&[(0, [1, 2, 3]), (10, [0, 5, 5])], 100));
    for (percent, expected) in [(100.0, 10e-9), (50.0, 6e-9)] {
        let members = [member(&sketch, [0; 3], 0, percent)];
        let prediction = model.predict(&members)[0].unwrap();
        let estimate = prediction.estimate.unwrap();
        assert_eq!((prediction.bound, estimate.latency, estimate.low), (expected, expected, expected));
        assert_eq!(model.check_budgets(&members, &[expected]), BudgetCheck::Fits);
        let exceeds = BudgetCheck::Exceeds { member: 0, alignments: 1 };
        for budget in [expected - 1e-9, 0.0, -1.0, f64::NAN] {
            assert_eq!(model.check_budgets(&members, &[budget]), exceeds, "{budget}");
        }
        assert_eq!(model.check_budgets(&members, &[f64::INFINITY]), BudgetCheck::Fits);
        let correlated = model.correlated(&members)[0].unwrap();
        assert_eq!((correlated.recorded, correlated.bursts_together), (expected, expected));
    }
    assert!(model.predict(&[]).is_empty());
    assert_eq!(model.check_budgets(&[], &[]), BudgetCheck::Fits);
}

#[test]
fn too_few_alignments_say_how_many_would_do() {
    let error = Replayed::new(58, 0.95, 0.95, 1).unwrap_err();
    assert_eq!(error.needed, 59);
    assert!(error.to_string().contains("59"), "{error}");
    assert!(Replayed::new(459, 0.99, 0.99, 1).is_ok());
}

#[test]
fn overload_concerns_whoever_waits_for_it() {
    let model = Replayed::default();
    let light = model.sketch(&traffic(&[(0, [1, 3, 1])], 10));
    let heavy = model.sketch(&traffic(&[(0, [1, 8, 1])], 10));
    // Higher priority than the overload, everywhere: as if it were not there.
    let members = [member(&light, [0; 3], 0, 100.0), member(&heavy, [1; 3], 1, 100.0)];
    let predictions = model.predict(&members);
    assert_eq!(predictions[0].unwrap().bound, 5e-9);
    let Err(UndefinedLatency::Overload { stage: Stage::Storage, utilisation }) = predictions[1] else {
        panic!("{:?}", predictions[1]);
    };
    assert!((utilisation - 1.1).abs() < 1e-12);
    let why = predictions[1].unwrap_err();
    assert_eq!(model.check_budgets(&members, &[1.0, 1.0]), BudgetCheck::Undefined { member: 1, why });
    assert_eq!(model.correlated(&members)[1], Err(why));
    // Behind it on one link: what comes from the overloaded storage is not known.
    let members = [member(&light, [0, 0, 1], 0, 100.0), member(&heavy, [1, 1, 0], 1, 100.0)];
    assert_eq!(model.predict(&members)[0], Err(UndefinedLatency::NoBound));
    // Equals are overloaded together; a utilisation of exactly one is too much.
    let full = model.sketch(&traffic(&[(0, [0, 7, 0])], 10));
    let members = [member(&light, [0; 3], 0, 100.0), member(&full, [0; 3], 1, 100.0)];
    for prediction in model.predict(&members) {
        assert!(matches!(prediction, Err(UndefinedLatency::Overload { .. })), "{prediction:?}");
    }
    // A stage where one has no work is no concern of that one.
    let elsewhere = model.sketch(&traffic(&[(0, [1, 0, 0])], 10));
    let members = [
        member(&elsewhere, [9; 3], 0, 100.0),
        member(&full, [8, 0, 8], 1, 100.0),
        member(&full, [8; 3], 2, 100.0),
    ];
    let predictions = model.predict(&members);
    assert!(predictions[0].is_ok() && predictions[1].is_ok() && predictions[2].is_err(), "{predictions:?}");
}

#[test]
fn a_load_that_rounds_to_one_is_an_overload_for_somebody() {
    // Shares of a period that sum to 1 exactly, or to 1 − 10⁻¹⁷, in every order of priorities.
    let model = Replayed::default();
    let period = 1 << 58;
    let shares =
        [period / 10, period / 5, period / 10 * 3, period - period / 10 - period / 5 - period / 10 * 3];
    for short in [0, 1] {
        let work = shares.map(|share| share - short);
        let sketches = work.map(|work| model.sketch(&traffic(&[(0, [0, work, 0])], period)));
        for turn in 0..4 {
            let place = |i: usize| u32::try_from((i + turn) % 4).unwrap();
            let list: Vec<_> = (0..4).map(|i| member(&sketches[i], [place(i); 3], i, 100.0)).collect();
            let overloads =
                |p: &&Result<_, UndefinedLatency>| matches!(p, Err(UndefinedLatency::Overload { .. }));
            let predictions = model.predict(&list);
            assert!(predictions.iter().filter(overloads).count() >= 1, "{predictions:?}");
            assert!(matches!(model.check_budgets(&list, &[f64::INFINITY; 4]), BudgetCheck::Undefined { .. }));
        }
    }
}

#[test]
fn groups_move_as_one() {
    // Two single jobs in one group meet always or never; apart, in 5 of 100 alignments each way.
    let model = Replayed::new(300, 0.95, 0.95, 4).unwrap();
    let early = traffic(&[(0, [0, 5, 0])], 100);
    let late = traffic(&[(0, [0, 4, 0])], 100);
    let sketches = [model.sketch(&early), model.sketch(&late)];
    let with = |groups: [usize; 2]| {
        let members =
            [member(&sketches[0], [0; 3], groups[0], 100.0), member(&sketches[1], [1; 3], groups[1], 100.0)];
        model.samples(&members)[1].clone().unwrap()
    };
    assert!(with([0, 0]).iter().all(|latency| *latency == Nanos(9)));
    let apart = with([0, 1]);
    let met = apart.iter().filter(|latency| **latency > Nanos(4)).count();
    // Nine shifts of 100: 27 expected, standard deviation 5.
    assert!((7..=47).contains(&met), "{met}");
}

fn members() -> impl Strategy<Value = Vec<(CircularTrace<Job>, [u32; 3], f64)>> {
    let job = (0u64..80, [0u64..6, 0u64..6, 0u64..6]);
    let jobs = proptest::collection::vec(job, 1..5).prop_map(|mut jobs| {
        jobs.sort_by_key(|job| job.0);
        traffic(&jobs, 100)
    });
    let percent = prop_oneof![Just(100.0), 30.0f64..100.0];
    proptest::collection::vec((jobs, [0u32..3, 0u32..3, 0u32..3], percent), 1..5)
}

proptest! {
    #[test]
    fn fits_is_what_the_bounds_say(members in members(), factor in 0.5f64..1.2, alignments in 59usize..100) {
        let model = Replayed::new(alignments, 0.95, 0.95, 2).unwrap();
        let sketches: Vec<Sketch> = members.iter().map(|m| model.sketch(&m.0)).collect();
        let list: Vec<_> = (0..members.len()).map(|i| member(&sketches[i], members[i].1, i, members[i].2)).collect();
        let predictions = model.predict(&list);
        for prediction in predictions.iter().flatten() {
            let estimate = prediction.estimate.unwrap();
            prop_assert!(estimate.low <= estimate.latency && estimate.latency <= prediction.bound);
        }
        let exact: Vec<f64> = predictions.iter().map(|p| p.map_or(1.0, |p| p.bound)).collect();
        let budgets: Vec<f64> = exact.iter().map(|bound| bound * factor).collect();
        match model.check_budgets(&list, &budgets) {
            BudgetCheck::Fits => {
                let within = |(p, budget): (&Result<_, _>, &f64)| p.is_ok_and(|p: model::Prediction| p.bound <= *budget);
                prop_assert!(predictions.iter().zip(&budgets).all(within));
            }
            BudgetCheck::Exceeds { member, .. } => prop_assert!(predictions[member].unwrap().bound > budgets[member]),
            BudgetCheck::Undefined { member, why } => prop_assert_eq!(predictions[member], Err(why)),
        }
    }

    /// More traffic never makes anybody faster, at one stage.
    #[test]
    fn more_traffic_never_lowers_a_bound(members in members(), percent in 30.0f64..100.0) {
        let model = Replayed::default();
        let alone = |jobs: &CircularTrace<Job>| {
            let keep = |job: &Job| Job { work: PerStage::from_fn(|s| if s == Stage::Storage { job.work[s] } else { Nanos::ZERO }), ..*job };
            CircularTrace::from_first_arrival(jobs.items().iter().map(keep).collect(), jobs.period()).unwrap()
        };
        let sketches: Vec<Sketch> = members.iter().map(|m| model.sketch(&alone(&m.0))).collect();
        let list = |count: usize| -> Vec<_> {
            (0..count).map(|i| member(&sketches[i], members[i].1, i, percent)).collect()
        };
        let all = model.predict(&list(members.len()));
        let fewer = model.predict(&list(members.len() - 1));
        for (fewer, all) in fewer.iter().zip(&all) {
            if let (Ok(fewer), Ok(all)) = (fewer, all) {
                prop_assert!(fewer.bound <= all.bound && fewer.estimate.unwrap().latency <= all.estimate.unwrap().latency);
            }
        }
    }
}

/// One stage, from an idle start: at each arrival the work since the last is done, by priority and arrival.
/// Gives the time at which each is done.
fn serve(queue: &[(u64, u32, u64)]) -> Vec<u64> {
    let mut done: Vec<u64> = queue.iter().map(|job| job.0).collect();
    let mut waiting: BTreeMap<(u32, usize), u64> = BTreeMap::new();
    let mut now = 0;
    let mut work_until = |waiting: &mut BTreeMap<(u32, usize), u64>, done: &mut [u64], until: u64| {
        while let Some(mut first) = waiting.first_entry() {
            if now + *first.get() > until {
                *first.get_mut() -= until - now;
                break;
            }
            now += first.get();
            done[first.key().1] = now;
            first.remove();
        }
        now = until;
    };
    for (index, &(arrival, priority, work)) in queue.iter().enumerate() {
        work_until(&mut waiting, &mut done, arrival);
        if work > 0 {
            waiting.insert((priority, index), work);
        }
    }
    work_until(&mut waiting, &mut done, u64::MAX);
    done
}

/// Nearest-rank percentiles, by member, of the requests in a window of one longest period, after `before`
/// longest periods from an empty start.
fn by_hand(
    traffics: &[&CircularTrace<Job>],
    shifts: &[u64],
    priorities: &[u32],
    before: u64,
    percent: f64,
) -> Vec<u64> {
    let horizon = traffics.iter().map(|t| t.period().0).max().unwrap();
    let open = before * horizon;
    let close = (before + 1) * horizon;
    let mut requests: Vec<(u64, u64, usize, Job)> = Vec::new();
    for (i, traffic) in traffics.iter().enumerate() {
        let period = traffic.period().0;
        let first = (open + shifts[i]) % period;
        // One more period behind the window: the lower priorities are still served.
        for round in 0..(close + horizon) / period + 1 {
            let start = first + round * period;
            requests.extend(
                traffic.items().iter().map(|job| (start + job.arrival.0, start + job.arrival.0, i, *job)),
            );
        }
    }
    for stage in Stage::ALL {
        // Stable: ties keep the order of the stage before, and of the members at first.
        requests.sort_by_key(|request| request.0);
        let queue: Vec<_> = requests.iter().map(|r| (r.0, priorities[r.2], r.3.work[stage].0)).collect();
        requests.iter_mut().zip(serve(&queue)).for_each(|(request, done)| request.0 = done);
    }
    let of_member = |i: usize| {
        let mine = requests.iter().filter(|r| r.2 == i && (open..close).contains(&r.1));
        let mut latencies: Vec<u64> = mine.map(|r| r.0 - r.1).collect();
        latencies.sort_unstable();
        let needed = (percent / 100.0 * latencies.len() as f64 - 1e-9).ceil();
        latencies
            .iter()
            .enumerate()
            .find(|(rank, _)| (rank + 1) as f64 >= needed)
            .map(|(_, latency)| *latency)
            .unwrap()
    };
    (0..traffics.len()).map(of_member).collect()
}

#[test]
fn real_traces_have_the_latencies_of_a_simple_simulator() {
    let Some(real) = published(Through::Server) else { return };
    let model = Replayed::default();
    let rank = |ms: f64| {
        [50.0, 100.0, 200.0, 450.0, 950.0].iter().filter(|slo| **slo < ms).fold(0u32, |rank, _| rank + 1)
    };
    // Every fourth: some 150,000 requests; a whole period of the past is enough for them to have been idle.
    let real: Vec<_> = real.iter().step_by(4).collect();
    let traffics: Vec<&CircularTrace<Job>> = real.iter().map(|r| &r.traffic).collect();
    let sketches: Vec<Sketch> = traffics.iter().map(|t| model.sketch(t)).collect();
    let priorities: Vec<u32> = real.iter().map(|r| (r.slo.latency.0 * 1000.0).round()).map(rank).collect();
    for percent in [99.9, 100.0] {
        let list: Vec<_> =
            (0..real.len()).map(|i| member(&sketches[i], [priorities[i]; 3], i, percent)).collect();
        let expected = by_hand(&traffics, &vec![0; real.len()], &priorities, 1, percent);
        let got: Vec<f64> = model.correlated(&list).into_iter().map(|c| c.unwrap().recorded).collect();
        let expected: Vec<f64> = expected.into_iter().map(|ns| Nanos(ns).as_secs()).collect();
        assert_eq!(got, expected);
    }
}

/// Decisions skip what is certain; predictions replay everything.
#[test]
fn decisions_on_real_mixes_are_those_of_complete_replays() {
    let Some(real) = published(Through::Server) else { return };
    let model = Replayed::new(14, 0.8, 0.95, 3).unwrap();
    let sketches: Vec<Sketch> = real.iter().map(|r| model.sketch(&r.traffic)).collect();
    let mut random = StdRng::seed_from_u64(11);
    let mut fit = 0;
    let mut exceed = 0;
    for round in 0..24 {
        let count = random.random_range(1..16);
        let drawn: Vec<usize> = (0..count).map(|_| random.random_range(0..real.len())).collect();
        let slos: Vec<f64> = (0..count).map(|_| random.random_range(0.03..1.0)).collect();
        let rank = |slo: f64| u32::try_from(slos.iter().filter(|other| **other < slo).count()).unwrap();
        let list: Vec<_> =
            (0..count).map(|i| member(&sketches[drawn[i]], [rank(slos[i]); 3], i, 99.9)).collect();
        let bounds: Vec<f64> = model.predict(&list).into_iter().map(|p| p.unwrap().bound).collect();
        // Exactly at the edge, and at random.
        let at_the_edge = |less: f64| bounds.iter().map(|bound| bound - less).collect::<Vec<f64>>();
        for budgets in [at_the_edge(-1e-10), at_the_edge(2e-9), slos.clone()] {
            let fits = bounds.iter().zip(&budgets).all(|(bound, budget)| bound <= budget);
            let answer = model.check_budgets(&list, &budgets);
            assert_eq!(answer == BudgetCheck::Fits, fits, "round {round}: {answer:?}");
            if let BudgetCheck::Exceeds { member, .. } = answer {
                assert!(bounds[member] > budgets[member], "round {round}");
            }
            fit += usize::from(fits);
            exceed += usize::from(!fits);
        }
    }
    assert!(fit >= 24 && exceed >= 24, "{fit} {exceed}");
}
