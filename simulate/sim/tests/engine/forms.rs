//! Queues with known response times; the benchmark prints the same list with more requests.

use crate::support::{Law, SERVICE, entry, entry_of, exponential, nanos, single};
use discipline::enforce::{EnforcementRules, FlowRules, OverLimit};
use discipline::serve::{
    DisciplineSpec, FairSchedulerParameters, LimitScope, LimitedSharingParameters, PoolEntrance, PoolOrder,
    QueueChoice,
};
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::{Measures, NetworkStation, NetworkStep, QueueingNetwork, RequestDraft, RequestEntry, SKIP};
use units::{Nanos, Percentile};

/// A figure read from a run, in mean service times.
type Figure = Box<dyn Fn(&Measures) -> Option<f64>>;

/// A model, a figure of it in mean service times, and the value known for it.
pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) network: QueueingNetwork,
    pub(crate) load: Box<dyn Fn(u64) -> Vec<RequestEntry> + Sync>,
    pub(crate) figure: Figure,
    pub(crate) exact: f64,
}

fn form(name: &str, network: QueueingNetwork, rate: f64, law: Law, exact: f64) -> Form {
    Form {
        name: name.to_owned(),
        network,
        load: Box::new(move |seed| vec![entry(seed, rate, law)]),
        figure: Box::new(|run| Some(run.response.mean()? / SERVICE)),
        exact,
    }
}

pub(crate) fn memoryless(random: &mut StdRng) -> f64 {
    exponential(random, 1.0)
}

fn constant(_: &mut StdRng) -> f64 {
    1.0
}

/// Mean 1, second moment 0.9·0.5² + 0.1·5.5² = 3.25.
fn bimodal(random: &mut StdRng) -> f64 {
    if random.random_bool(0.9) { 0.5 } else { 5.5 }
}

/// Mean response of M/G/1 by Pollaczek and Khinchine: 1 + λE[S²]/2(1 − ρ), in mean service times.
fn pollaczek_khinchine(rate: f64, second_moment: f64) -> f64 {
    1.0 + rate * second_moment / (2.0 * (1.0 - rate))
}

/// Mean response of M/M/c by Erlang's C; `rate` per mean service time.
fn erlang_c(workers: u32, rate: f64) -> f64 {
    // B(0) = 1, B(k) = ρB/(k + ρB); C = B/(1 − ρ/c·(1 − B)).
    let blocked = (1..=workers).fold(1.0, |b, k| rate * b / (f64::from(k) + rate * b));
    let c = f64::from(workers);
    let waits = blocked / (1.0 - rate / c * (1.0 - blocked));
    1.0 + waits / (c - rate)
}

fn fair() -> FairSchedulerParameters {
    let [latency, min_granularity, wakeup, credit] =
        [2.0, 0.3, 0.2, 0.5].map(|times| nanos(times * SERVICE).0);
    FairSchedulerParameters { latency, min_granularity, wakeup_granularity: Some(wakeup), credit }
}

/// All disciplines that do not look at sizes: with exponential service and one class the number in an M/M/1 is the
/// same birth-death process under each.
pub(crate) fn blind() -> Vec<(&'static str, DisciplineSpec)> {
    let slice = nanos(0.4 * SERVICE).0;
    let oldest = LimitedSharingParameters::oldest_first(3, slice);
    vec![
        ("FIFO", DisciplineSpec::Fifo),
        ("LIFO", DisciplineSpec::Lifo),
        ("random order", DisciplineSpec::RandomOrder),
        ("oldest first", DisciplineSpec::OldestFirst),
        ("oldest first, preemptive", DisciplineSpec::PreemptiveOldestFirst),
        ("round-robin", DisciplineSpec::Limited(LimitedSharingParameters::round_robin(slice))),
        ("limited sharing", DisciplineSpec::Limited(LimitedSharingParameters::without_age(3, slice))),
        ("ORF", DisciplineSpec::Limited(oldest)),
        (
            "ORF, to the letter",
            DisciplineSpec::Limited(LimitedSharingParameters { count: LimitScope::Queue, ..oldest }),
        ),
        (
            "ORF, preemptive",
            DisciplineSpec::Limited(LimitedSharingParameters {
                entrance: PoolEntrance::Preempt,
                order: PoolOrder::Age,
                ..oldest
            }),
        ),
        ("fair sharing", DisciplineSpec::Fair(fair())),
    ]
}

fn one_server() -> Vec<Form> {
    let mut forms: Vec<Form> = blind()
        .into_iter()
        .map(|(name, kind)| form(&format!("M/M/1 {name}"), single(1, kind), 0.8, memoryless, 5.0))
        .collect();
    let shared = |limit| single(1, DisciplineSpec::Sharing { limit });
    let mut p99 =
        form("M/M/1 FIFO, p99", single(1, DisciplineSpec::Fifo), 0.6, memoryless, 100f64.ln() / 0.4);
    p99.figure = Box::new(|run| Some(run.response.percentile(Percentile::new(99.0)?)?.0 as f64 / SERVICE));
    forms.extend([
        p99,
        form("M/D/1 FIFO", single(1, DisciplineSpec::Fifo), 0.8, constant, pollaczek_khinchine(0.8, 1.0)),
        form("M/G/1 FIFO", single(1, DisciplineSpec::Fifo), 0.7, bimodal, pollaczek_khinchine(0.7, 3.25)),
        form(
            "M/G/1 random order",
            single(1, DisciplineSpec::RandomOrder),
            0.7,
            bimodal,
            pollaczek_khinchine(0.7, 3.25),
        ),
        form("M/M/1-PS", shared(None), 0.8, memoryless, 5.0),
        // Insensitive to the law of service.
        form("M/G/1-PS", shared(None), 0.7, bimodal, 1.0 / 0.3),
        form("M/M/1 limited to 3, ideal", shared(Some(3)), 0.8, memoryless, 5.0),
    ]);
    forms
}

fn several_servers() -> Vec<Form> {
    let erlang = erlang_c(3, 2.4);
    let mut forms: Vec<Form> = [
        ("FIFO", DisciplineSpec::Fifo),
        ("ORF", blind()[7].1.clone()),
        ("fair sharing", DisciplineSpec::Fair(fair())),
        ("PS", DisciplineSpec::Sharing { limit: None }),
    ]
    .into_iter()
    .map(|(name, kind)| form(&format!("M/M/3 {name}"), single(3, kind), 2.4, memoryless, erlang))
    .collect();
    // Three independent M/M/1.
    forms.push(form(
        "3 × M/M/1, random",
        single(3, DisciplineSpec::Split(QueueChoice::Random)),
        2.4,
        memoryless,
        5.0,
    ));
    forms
}

/// Two classes with equal chances: class 0 needs half, class 1 one and a half of the mean on average.
fn two_classes(kind: DisciplineSpec) -> QueueingNetwork {
    QueueingNetwork { classes: 2, ..single(1, kind) }
}

fn two_class_load(seed: u64) -> Vec<RequestEntry> {
    let mut random = StdRng::seed_from_u64(seed ^ 0xC1);
    vec![entry_of(seed, 0.8, move |draft: &mut RequestDraft<'_>| {
        draft.class = random.random_range(0..2);
        let mean = SERVICE * (0.5 + f64::from(draft.class));
        draft.demands[0] = nanos(exponential(&mut random, mean));
    })]
}

/// Cobham: classes with λ = 0.4 each, ρ = 0.2 and 0.6; E[S²] = 2·mean².
fn cobham() -> Vec<Form> {
    let residual = [0.4 * 2.0 * 0.25 / 2.0, 0.4 * 2.0 * 2.25 / 2.0];
    let all = residual[0] + residual[1];
    let waiting = [0.5 + all / 0.8, 1.5 + all / (0.8 * 0.2)];
    let preemptive = [0.5 + residual[0] / 0.8, 1.5 / 0.8 + all / (0.8 * 0.2)];
    // Fayolle, Mitrani and Iasnogorodski for two classes of exponential service, here with weights 3 and 1.
    let rates = [1.0 / 0.5, 1.0 / 1.5];
    let shares = [3.0, 1.0];
    let divisor = rates[0] * shares[0] * (1.0 - 0.2) + rates[1] * shares[1] * (1.0 - 0.6);
    let shared = [
        (1.0 + rates[0] * 0.6 * (shares[1] - shares[0]) / divisor) / (rates[0] * 0.2),
        (1.0 + rates[1] * 0.2 * (shares[0] - shares[1]) / divisor) / (rates[1] * 0.2),
    ];
    let kinds = [
        ("Cobham", DisciplineSpec::Priority { levels: 2 }, waiting),
        ("Cobham, enforced", enforced(), waiting),
        ("weighted PS", DisciplineSpec::WeightedSharing { limit: None, weights: vec![3, 1] }, shared),
        ("preemptive priority", DisciplineSpec::PreemptivePriority { levels: 2 }, preemptive),
    ];
    let by_class = |(name, kind, exact): (&str, DisciplineSpec, [f64; 2])| {
        [0, 1].map(|class| Form {
            name: format!("{name}, class {class}"),
            network: two_classes(kind.clone()),
            load: Box::new(two_class_load),
            figure: Box::new(move |run| Some(run.by_class[class].mean()? / SERVICE)),
            exact: exact[class],
        })
    };
    kinds.into_iter().flat_map(by_class).chain([saturated()]).collect()
}

/// Levels 0 and 1 for the two classes, no limits, no bounds.
fn enforced() -> DisciplineSpec {
    let flow = |level| {
        let over_limit = OverLimit::Demote;
        let limits = Vec::new();
        (level, FlowRules { level, limits, over_limit, largest: None, shares_limits_of: None })
    };
    DisciplineSpec::Enforced(EnforcementRules {
        flows: [flow(0), flow(1)].into(),
        ..EnforcementRules::none()
    })
}

/// Class 0 as above beside a saturated class 1: by Cobham, the mean residual service found by an arrival
/// is λE[S²]/2 from class 0 and (1 − ρ)·E[S²]/2E[S] from class 1.
fn saturated() -> Form {
    let load = |seed| {
        let mut random = StdRng::seed_from_u64(seed ^ 0xC2);
        let high = move |draft: &mut RequestDraft<'_>| {
            draft.demands[0] = nanos(exponential(&mut random, 0.5 * SERVICE));
        };
        let mut random = StdRng::seed_from_u64(seed ^ 0xC3);
        let low = move |draft: &mut RequestDraft<'_>| {
            draft.class = 1;
            draft.demands[0] = nanos(exponential(&mut random, 1.5 * SERVICE));
        };
        vec![entry_of(seed, 0.4, high), RequestEntry::closed(8, std::iter::repeat(Nanos(1)), low)]
    };
    Form {
        name: "Cobham, enforced, class 0 beside saturation".into(),
        network: two_classes(enforced()),
        load: Box::new(load),
        figure: Box::new(|run| Some(run.by_class[0].mean()? / SERVICE)),
        exact: 0.5 + 0.4 * 0.25 / 0.8 + 1.5,
    }
}

fn networks() -> Vec<Form> {
    let station = |workers| NetworkStation::new("tier", workers, DisciplineSpec::Fifo);
    let tandem = QueueingNetwork::chain(vec![station(1), station(3), station(1)]);
    let jackson = form("Jackson, M/M/1 → M/M/3 → M/M/1", tandem, 0.8, memoryless, 10.0 + erlang_c(3, 0.8));
    let step = |station| NetworkStep { station, after: vec![], delay: Nanos::ZERO };
    let both =
        QueueingNetwork { stations: vec![station(1), station(1)], steps: vec![step(0), step(1)], classes: 1 };
    // Flatto and Hahn, for two queues: (12 − ρ)/8 of the mean of one.
    let fork = form("fork-join of two", both, 0.8, memoryless, (12.0 - 0.8) / 8.0 * 5.0);
    // One request inside at a time: M/G/1 with the sum of both services, mean 2 and E[S²] = 6.
    let mut one_inside = form(
        "window of one before a tandem",
        QueueingNetwork::chain(vec![station(1), station(1)]),
        0.4,
        memoryless,
        2.0 + 0.4 * 6.0 / (2.0 * 0.2),
    );
    one_inside.load = Box::new(|seed| vec![RequestEntry { window: Some(1), ..entry(seed, 0.4, memoryless) }]);
    vec![jackson, fork, one_inside, branch(), closed()]
}

/// A quarter goes to a slow station of its own, the others to a fast one; both then join at a third.
fn branch() -> Form {
    let station = || NetworkStation::new("tier", 1, DisciplineSpec::Fifo);
    let step = |station, after: &[usize]| NetworkStep { station, after: after.to_vec(), delay: Nanos::ZERO };
    let network = QueueingNetwork {
        stations: vec![station(), station(), station()],
        steps: vec![step(0, &[]), step(1, &[]), step(2, &[0, 1])],
        classes: 1,
    };
    let load = |seed| {
        let mut random = StdRng::seed_from_u64(seed ^ 0xB7);
        vec![entry_of(seed, 0.8, move |draft: &mut RequestDraft<'_>| {
            let slow = random.random_bool(0.25);
            let mean = if slow { 3.0 } else { 1.0 };
            let own = usize::from(!slow);
            draft.demands[own] = nanos(exponential(&mut random, mean * SERVICE));
            draft.demands[1 - own] = SKIP;
            draft.demands[2] = nanos(exponential(&mut random, SERVICE));
        })]
    };
    // 0.2·3 = 0.6 and 0.6·1 = 0.6: 3/0.4, 1/0.4; the shared one has 0.8.
    let exact = 0.25 * 7.5 + 0.75 * 2.5 + 5.0;
    let figure = |run: &Measures| Some(run.response.mean()? / SERVICE);
    Form { name: "branches that join".into(), network, load: Box::new(load), figure: Box::new(figure), exact }
}

/// Ten clients that think five service times: response = N/X − Z with X by the birth-death process.
fn closed() -> Form {
    let clients = 10u32;
    let think = 5.0;
    let weights = (0..clients).scan(1.0, |weight, busy| {
        *weight *= f64::from(clients - busy) / think;
        Some(*weight)
    });
    let idle = 1.0 / (1.0 + weights.sum::<f64>());
    let load = move |seed| {
        let mut random = StdRng::seed_from_u64(seed ^ 0xCC);
        let think = std::iter::repeat_with(move || nanos(exponential(&mut random, think * SERVICE)));
        let mut random = StdRng::seed_from_u64(seed ^ 0xCD);
        let draw =
            move |draft: &mut RequestDraft<'_>| draft.demands[0] = nanos(exponential(&mut random, SERVICE));
        vec![RequestEntry::closed(clients, think, draw)]
    };
    Form {
        name: "closed loop of ten".into(),
        network: single(1, DisciplineSpec::Fifo),
        load: Box::new(load),
        figure: Box::new(|run| Some(run.response.mean()? / SERVICE)),
        exact: f64::from(clients) / (1.0 - idle) - think,
    }
}

pub(crate) fn all() -> Vec<Form> {
    one_server().into_iter().chain(several_servers()).chain(cobham()).chain(networks()).collect()
}
