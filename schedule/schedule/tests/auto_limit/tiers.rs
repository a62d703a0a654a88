//! Two tiers in a row under a limit, simulated: the effect of c on the tail.

use arrivals::{ArrivalPattern, DistributionFamily, RateProcess, TimeDistribution, split_seed};
use discipline::serve::{DisciplineSpec, LimitedSharingParameters, PoolEntrance};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use schedule::{ServiceVariation, automatic_limit};
use sim::engine::{
    MeasurementWindow, NetworkStation, QueueingNetwork, RequestDraft, RequestEntry, SimulationEngine,
};
use std::num::NonZeroU32;
use units::{Nanos, Percentile, Seconds};

/// Mean service time at a tier, seconds.
const MEAN: Seconds = Seconds(0.01);
/// Time slice, nanoseconds: about that of Linux.
const SLICE: u64 = 3_000_000;

/// Utilisations of the tiers.
pub(crate) const LOADS: [f64; 4] = [0.5, 0.7, 0.85, 0.95];
/// Fixed limits, as multiples of the workers; the last is no limit.
pub(crate) const MULTIPLES: [Option<u32>; 8] =
    [Some(1), Some(2), Some(3), Some(4), Some(6), Some(10), Some(20), None];

/// Distributions of service times by name, with equal means: those of TailClipper (§5.1) and a bimodal
/// one.
pub(crate) fn laws() -> Vec<(&'static str, TimeDistribution)> {
    let points = |points: &[(f64, f64)]| {
        DistributionFamily::Points(points.iter().map(|(share, time)| (*share, Seconds(*time))).collect())
    };
    named([
        ("exponential", DistributionFamily::Exponential { mean: MEAN }),
        ("bimodal", points(&[(0.9, 0.005), (0.1, 0.055)])),
        ("trimodal", points(&[(13.0 / 14.0, 0.005), (1.0 / 28.0, 0.05), (1.0 / 28.0, 0.1)])),
        ("log-normal", DistributionFamily::LogNormal { mean: MEAN, c2: 100.0 }),
    ])
}

fn named<const N: usize>(
    families: [(&'static str, DistributionFamily); N],
) -> Vec<(&'static str, TimeDistribution)> {
    let law = |family| TimeDistribution::new(family).expect("parameters within their ranges");
    families.into_iter().map(|(name, family)| (name, law(family))).collect()
}

/// Returns the limit that a gate chooses after this many measured requests.
pub(crate) fn chosen_limit(law: &TimeDistribution, workers: u32, seed: u64, measured: u64) -> Option<u32> {
    let sampler = law.sampler();
    let mut random = StdRng::seed_from_u64(seed);
    let mut variation = ServiceVariation::default();
    (0..measured).for_each(|_| variation.add(sampler.draw(&mut random).as_secs()));
    let workers = NonZeroU32::new(workers).expect("at least 1");
    automatic_limit(variation.c2()?, workers).map(NonZeroU32::get)
}

/// A system of two tiers.
#[derive(Clone, Copy)]
pub(crate) struct SimulatedTiers<'a> {
    pub(crate) law: &'a TimeDistribution,
    pub(crate) workers: u32,
    pub(crate) load: f64,
    /// Number of measured requests.
    pub(crate) requests: u64,
}

impl SimulatedTiers<'_> {
    /// Returns the 99th percentile of response times under a limit, seconds. Equal seeds give equal
    /// requests.
    pub(crate) fn p99(&self, limit: Option<u32>, seed: u64) -> f64 {
        let parameters = LimitedSharingParameters {
            entrance: PoolEntrance::Preempt,
            ..LimitedSharingParameters::oldest_first(limit.unwrap_or(u32::MAX), SLICE)
        };
        let tier = |name: &str| NetworkStation::new(name, self.workers, DisciplineSpec::Limited(parameters));
        let network = QueueingNetwork::chain(vec![tier("first"), tier("second")]);
        let window =
            MeasurementWindow { inside_max: 1 << 24, ..MeasurementWindow::of_requests(self.requests) };
        let engine = SimulationEngine::new(&network, vec![self.entry(seed)], seed).expect("a valid network");
        let measures = engine.run(window).expect("the load is below 1");
        let p99 = measures.response.percentile(Percentile::new(99.0).expect("a percentile"));
        p99.unwrap_or(Nanos::ZERO).as_secs()
    }

    fn entry(&self, seed: u64) -> RequestEntry {
        let pattern = ArrivalPattern::Process(RateProcess::Poisson { rate: 1.0 });
        let pattern = pattern.at_utilisation(self.load, self.workers as usize, self.law).expect("a rate");
        let instants = pattern.instants(split_seed(seed, 0)).expect("a pattern");
        let sampler = self.law.sampler();
        let mut random = StdRng::seed_from_u64(split_seed(seed, 1));
        RequestEntry::open(instants, move |draft: &mut RequestDraft<'_>| {
            draft.demands.iter_mut().for_each(|demand| *demand = sampler.draw(&mut random));
        })
    }
}
