//! Predictions about servers as they are enforced, against slow and obvious recomputations from traces and limits.

use calculus::{DeviceQueue, EnforcedClass};
use model::{CircularTrace, Job, LatencyModel, PerStage, ServerMember, Stage};
use predict::{
    BegunWork, EnforcedLatency, EnforcedModel, EnforcedPath, EnforcedSketch, Probabilistic, Replayed,
    WorstCase,
};
use proptest::prelude::*;
use units::{Nanos, Percentile};

/// The period of all traces, seconds.
const PERIOD: f64 = 4.0;

fn path(channels: u32, best_effort_ms: f64) -> EnforcedPath {
    EnforcedPath {
        class: EnforcedClass {
            channels,
            best_effort_request: best_effort_ms / 1e3,
            packet: 1e-4,
            link_burst: 3e-4,
            proxy: 2e-4,
            densest_answer: 0.0,
            levels_max: 7,
        },
        queue: DeviceQueue { channels, outstanding: channels + 1, reserve: 1 },
        base_latency: 1e-3,
        has_storage: true,
    }
}

/// Jobs at these milliseconds, each with its work at the three stages in microseconds.
fn trace(jobs: &[(u64, [u64; 3])]) -> CircularTrace<Job> {
    let job = |&(at, work): &(u64, [u64; 3])| Job {
        arrival: Nanos(at * 1_000_000),
        work: PerStage::from_fn(|stage| Nanos(work[stage as usize] * 1000)),
    };
    let mut jobs: Vec<Job> = jobs.iter().map(job).collect();
    jobs.sort_by_key(|job| job.arrival);
    CircularTrace::from_first_arrival(jobs, Nanos(4_000_000_000)).expect("jobs in order")
}

fn member<S>(sketch: &S, group: usize, priority: u32) -> ServerMember<'_, S> {
    let percentile = Percentile::new(99.9).expect("a percentile");
    ServerMember { sketch, priority: PerStage::from_fn(|_| priority), group, percentile }
}

/// The most work of a trace within a window, over all windows that begin with a job.
fn most_work(trace: &CircularTrace<Job>, stage: Stage, window: f64) -> f64 {
    let jobs: Vec<(f64, f64)> = (0..3)
        .flat_map(|round| {
            let work =
                |job: &Job| (job.arrival.as_secs() + f64::from(round) * PERIOD, job.work[stage].as_secs());
            trace.items().iter().map(work).collect::<Vec<_>>()
        })
        .collect();
    let from = |first: usize| {
        let within = jobs[first..].iter().take_while(|(at, _)| *at <= jobs[first].0 + window + 1e-12);
        within.map(|(_, work)| work).sum::<f64>()
    };
    (0..trace.items().len()).map(from).fold(0.0, f64::max)
}

/// What buckets admit within a window.
fn admitted(buckets: &[(f64, f64)], window: f64) -> f64 {
    buckets.iter().map(|(rate, burst)| burst + rate * window).fold(f64::INFINITY, f64::min)
}

/// The least x with `x ≥ work + others(x)`, or infinity beyond a minute.
fn clear_time(work: f64, others: impl Fn(f64) -> f64) -> f64 {
    let mut end = 0.0;
    loop {
        let next = work + others(end);
        if next <= end + 1e-12 {
            return end;
        }
        if next > 60.0 {
            return f64::INFINITY;
        }
        end = next;
    }
}

struct Company {
    traces: Vec<CircularTrace<Job>>,
    sketches: Vec<EnforcedSketch<<WorstCase as LatencyModel>::Sketch>>,
    levels: Vec<u32>,
    path: EnforcedPath,
}

impl Company {
    fn new(traces: Vec<CircularTrace<Job>>, levels: Vec<u32>, path: EnforcedPath) -> Self {
        let model = EnforcedModel::new(WorstCase::default(), BegunWork::WorstCase, Some(path));
        let sketches = traces.iter().map(|trace| model.sketch(trace)).collect();
        Self { traces, sketches, levels, path }
    }

    fn worst_case(&self) -> Vec<EnforcedLatency> {
        let members = self.sketches.iter().zip(&self.levels).enumerate();
        let members: Vec<_> = members.map(|(group, (sketch, level))| member(sketch, group, *level)).collect();
        self.path.worst_case(&members)
    }

    /// The work of the largest request at a stage, seconds.
    fn largest(&self, stage: Stage) -> f64 {
        let jobs = self.traces.iter().flat_map(CircularTrace::items);
        jobs.map(|job| job.work[stage].as_secs()).fold(0.0, f64::max)
    }

    /// What a stage may have begun, seconds.
    fn begun(&self, stage: Stage) -> f64 {
        if stage != Stage::Storage {
            return (self.levels.len() + 3) as f64 * self.path.class.packet + self.path.class.link_burst;
        }
        let longest = self.largest(Stage::Storage);
        f64::from(self.path.class.channels) * self.path.class.best_effort_request.max(longest) + longest
    }

    /// The written limits of the others at a stage whose level is as `keep` says.
    fn limits(
        &self,
        (own, stage): (usize, Stage),
        found: &[EnforcedLatency],
        keep: impl Fn(u32) -> bool,
    ) -> Vec<Vec<(f64, f64)>> {
        let others = (0..self.levels.len()).filter(|&other| other != own && keep(self.levels[other]));
        let written = |other: usize| {
            let bunched = found[other].bunched[stage];
            let limits = self.sketches[other].limits(stage).iter();
            limits.map(|&(rate, burst)| (rate, burst + rate * bunched)).collect()
        };
        others.map(written).collect()
    }

    /// The delay of a member at a stage, from its own limits and the written buckets of the others.
    fn delay(&self, own: usize, stage: Stage, found: &[EnforcedLatency]) -> f64 {
        let level = self.levels[own];
        let above = self.limits((own, stage), found, |other| other < level);
        let equal = self.limits((own, stage), found, |other| other == level);
        let begun = self.begun(stage);
        let mut longest = 0.0_f64;
        for at in (0..400).map(|step| f64::from(step) * 0.01) {
            let work = most_work(&self.traces[own], stage, at);
            let end = if stage == Stage::Storage {
                clear_time(begun + work + sum(&equal, at), |window| sum(&above, window))
            } else {
                let any = clear_time(begun + work, |window| sum(&above, window) + sum(&equal, window));
                let packets = equal.len() as f64 * self.path.class.packet;
                let turns = begun + packets + (equal.len() + 1) as f64 * work;
                any.min(clear_time(turns, |window| sum(&above, window)))
            };
            longest = longest.max(end - at);
        }
        longest
    }
}

/// What all of these admit within a window.
fn sum(all: &[Vec<(f64, f64)>], window: f64) -> f64 {
    all.iter().map(|one| admitted(one, window)).sum()
}

fn any_trace() -> impl Strategy<Value = CircularTrace<Job>> {
    let job = (0..4000_u64, [1..3000_u64, 1..8000_u64, 1..3000_u64]);
    prop::collection::vec(job, 1..12).prop_map(|jobs| trace(&jobs))
}

#[test]
fn alone_a_request_waits_for_what_is_begun() {
    let company = Company::new(vec![trace(&[(0, [2000, 10_000, 1000])])], vec![0], path(2, 5.0));
    let found = company.worst_case()[0];
    // Four packets and the burst on a link. At the device three requests of at most 10 ms: the best-effort ones are shorter.
    // Limits admit a little more than the one request.
    let delays = found.delays.map(|delay| (delay * 1e4).round());
    assert_eq!(delays.into_array(), [27.0, 400.0, 10.0 + 4.0 + 3.0 + 10.0]);
    assert!((found.own_service - 0.01).abs() < 1e-9 && (found.proxy - 2e-4).abs() < 1e-12);
    let sum = 0.0027 + 0.04 + 0.0027 + 0.01 + 0.0002;
    assert!((found.total - sum).abs() < 1e-4, "{found:?}");
    assert!((found.bunched[Stage::NetworkOut] - found.total - 0.001).abs() < 1e-9, "{found:?}");
}

#[test]
fn without_servers_that_interrupt_nothing_is_added() {
    let traffic = trace(&[(0, [2000, 10_000, 1000]), (7, [2000, 5000, 1000])]);
    for begun in [BegunWork::WorstCase, BegunWork::EveryClass, BegunWork::OnePacket] {
        let model = EnforcedModel::new(WorstCase::default(), begun, None);
        let sketch = model.sketch(&traffic);
        let members = [member(&sketch, 0, 0)];
        let inner = EnforcedModel::<WorstCase>::inner_members(&members);
        assert_eq!(model.predict(&members), WorstCase::default().predict(&inner));
        assert_eq!(model.begun(&members), [0.0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With the limits that are written, no stage delays longer than the prediction counts, which is not far above; and what
    /// the limits take for bunched is what comes before.
    #[test]
    fn worst_cases_follow_from_traces_and_limits(
        members in prop::collection::vec((any_trace(), 0..3_u32), 1..5), channels in 1..4_u32,
    ) {
        let (traces, levels) = members.into_iter().unzip();
        let company = Company::new(traces, levels, path(channels, 4.0));
        let found = company.worst_case();
        for (own, latency) in found.iter().enumerate() {
            let mut before = latency.own_service + latency.proxy + company.path.base_latency;
            for stage in Stage::ALL {
                let exact = company.delay(own, stage, &found);
                let counted = latency.delays[stage];
                prop_assert!(counted >= exact - 1e-9, "{stage}: {counted} {exact}");
                let densest = if stage == Stage::NetworkOut && channels > 1 { f64::INFINITY } else { 1.15 };
                // Sketches know windows of some lengths only, in which a request more may come; on links, those of
                // other members take turns with it.
                let turns = if stage == Stage::Storage { 1 } else { found.len() };
                let one_more = turns as f64 * company.largest(stage);
                prop_assert!(counted <= exact * densest + 2e-3 + one_more, "{stage}: {counted} {exact}");
                before += counted;
            }
            prop_assert!(latency.bunched[Stage::NetworkIn] >= latency.delays[Stage::NetworkIn]);
            prop_assert!(latency.bunched[Stage::Storage] >= latency.delays[Stage::NetworkIn]);
            prop_assert!(latency.bunched[Stage::NetworkOut] >= before * (1.0 - 1e-9));
        }
    }

    /// A model about enforced servers predicts no less than about those that interrupt, and no more than the worst case.
    #[test]
    fn models_lie_between_interruption_and_the_worst_case(
        members in prop::collection::vec((any_trace(), 0..3_u32), 1..4),
    ) {
        let path = path(2, 4.0);
        let (traces, levels): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let worst = Company::new(traces.clone(), levels.clone(), path).worst_case();
        let worst: Vec<f64> = worst.iter().map(|latency| latency.total).collect();
        check_between(&Probabilistic::default(), BegunWork::EveryClass, (&traces, &levels), &worst, path)?;
        let replayed = Replayed::new(14, 0.8, 0.95, 3).expect("enough");
        check_between(&replayed, BegunWork::OnePacket, (&traces, &levels), &worst, path)?;
    }
}

fn check_between<M: LatencyModel + Clone>(
    model: &M,
    begun: BegunWork,
    (traces, levels): (&[CircularTrace<Job>], &[u32]),
    worst: &[f64],
    path: EnforcedPath,
) -> Result<(), TestCaseError> {
    let enforced = EnforcedModel::new(model.clone(), begun, Some(path));
    let sketches: Vec<_> = traces.iter().map(|trace| enforced.sketch(trace)).collect();
    let both = sketches.iter().zip(levels).enumerate();
    let members: Vec<_> = both.map(|(group, (sketch, level))| member(sketch, group, *level)).collect();
    let inner = model.predict(&EnforcedModel::<M>::inner_members(&members));
    let found = enforced.predict(&members);
    for ((found, inner), worst) in found.iter().zip(inner).zip(worst) {
        let found = found.expect("a bound").bound;
        prop_assert!(found <= worst * (1.0 + 1e-12), "{found} {worst}");
        // The preemptive worst case may be the lesser one, which the enforced server does not have.
        if let Ok(inner) = inner {
            prop_assert!(found >= inner.bound.min(*worst) * (1.0 - 1e-9), "{found} {inner:?}");
        }
    }
    let limits: Vec<f64> = found.iter().map(|found| found.expect("a bound").bound * 1.001).collect();
    prop_assert!(enforced.all_within(&members, &limits));
    let tight: Vec<f64> = limits.iter().map(|limit| limit * 0.9).collect();
    let keeps = found.iter().zip(&tight).all(|(found, tight)| found.expect("a bound").bound <= *tight);
    prop_assert_eq!(enforced.all_within(&members, &tight), keeps);
    Ok(())
}
