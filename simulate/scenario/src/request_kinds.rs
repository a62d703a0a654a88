//! The kinds of requests of an entry with their shares, and the demand of each at every step.
//!
//! Everything is drawn when the request arrives, from separate generators: one for demands, in the order
//! of steps; one for the kind and for optional steps; one for each random delay. A change of one
//! distribution does not change other draws, as far as distributions need one draw per value; a change of
//! a share or a delay changes nothing else.

use crate::file::{EntrySpec, KindSpec};
use crate::step_service::StepService;
use crate::text_field::TextField;
use arrivals::{Sampler, TimeDistribution};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{RequestDraft, SKIP};
use std::collections::BTreeMap;
use std::path::Path;

/// The number of the random stream that chooses kinds and optional steps; demands have the seed itself.
const CHOICE_STREAM: u64 = 1;
/// Number of the random stream of the entry's delay; those of steps follow.
const ENTRY_DELAY_STREAM: u64 = 2;

/// Returns a generator that is independent of those of other streams of the same seed.
fn random_stream(seed: u64, stream: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The kinds of requests of an entry; their shares add up to 1.
#[derive(Debug, Clone)]
pub(crate) struct RequestKinds(Vec<RequestKind>);

#[derive(Debug, Clone)]
struct RequestKind {
    share: f64,
    class: u32,
    /// The service at each step; `None` where the kind leaves the step out.
    service: Vec<Option<OptionalService>>,
}

/// Service at a step that is taken with a probability.
#[derive(Debug, Clone)]
struct OptionalService {
    /// The probability that a request takes the step, above 0.
    chance: f64,
    time: TimeDistribution,
}

impl RequestKinds {
    /// The kinds of an entry. `steps` are the names of the steps of the network, `class` finds the number of a class.
    pub(crate) fn new(
        entry: &EntrySpec,
        steps: &[String],
        folder: &Path,
        class: impl Fn(&KindSpec) -> Result<u32, String>,
    ) -> Result<Self, String> {
        let specs = entry.all_kinds()?;
        let shares = shares(&specs)?;
        let mut kinds = Vec::with_capacity(specs.len());
        for ((spec, share), number) in specs.iter().zip(shares).zip(1..) {
            let kind = RequestKind::new(spec, share, steps, folder, &class);
            kinds.push(kind.map_err(|error| match (&spec.name, specs.len()) {
                (_, 1) => error,
                (Some(name), _) => format!("kind '{name}': {error}"),
                (None, _) => format!("kind {number}: {error}"),
            })?);
        }
        Ok(Self(kinds))
    }

    /// Exponent of the heaviest tail of the service times.
    pub(crate) fn tail_exponent(&self) -> f64 {
        let services = self.0.iter().flat_map(|kind| kind.service.iter().flatten());
        services.map(|service| service.time.tail_exponent()).fold(f64::INFINITY, f64::min)
    }

    /// Returns true if all requests are equal.
    pub(crate) fn is_constant(&self) -> bool {
        let is_fixed = |service: &OptionalService| service.chance >= 1.0 && service.time.c2() == 0.0;
        match self.0.as_slice() {
            [kind] => kind.service.iter().flatten().all(is_fixed),
            _ => false,
        }
    }

    /// Mean demand of a request at the steps that are `included`, seconds.
    pub(crate) fn work(&self, included: impl Fn(usize) -> bool) -> f64 {
        self.0.iter().map(|kind| kind.share * kind.work(&included)).sum()
    }

    /// A function that draws requests; `delays` are the random ones.
    pub(crate) fn drawer(
        &self,
        seed: u64,
        delays: &RandomDelays,
    ) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let kinds: Vec<RequestKindSampler> = self.0.iter().map(RequestKindSampler::new).collect();
        let mut demands = StdRng::seed_from_u64(seed);
        let mut choices = random_stream(seed, CHOICE_STREAM);
        let mut delays = delays.drawer(seed);
        move |draft| {
            let kind = match kinds.as_slice() {
                [only] => only,
                several => kind_at(several, choices.random()),
            };
            draft.class = kind.class;
            for (demand, service) in draft.demands.iter_mut().zip(&kind.service) {
                *demand = match service {
                    None => SKIP,
                    Some((chance, sampler)) => {
                        let drawn = sampler.draw(&mut demands);
                        let is_taken = *chance >= 1.0 || choices.random::<f64>() < *chance;
                        if is_taken { drawn } else { SKIP }
                    }
                };
            }
            delays(draft);
        }
    }
}

impl RequestKind {
    fn new(
        spec: &KindSpec,
        share: f64,
        steps: &[String],
        folder: &Path,
        class: impl Fn(&KindSpec) -> Result<u32, String>,
    ) -> Result<Self, String> {
        let service = service_of_steps(&spec.service, steps, folder)?;
        Ok(Self { share, class: class(spec)?, service })
    }

    /// Mean demand of a request of this kind at the steps that are `included`, seconds.
    fn work(&self, included: impl Fn(usize) -> bool) -> f64 {
        let steps = self.service.iter().enumerate().filter(|(step, _)| included(*step));
        let service = steps.filter_map(|(_, service)| service.as_ref());
        service.map(|service| service.chance * service.time.mean().0).sum::<f64>()
    }
}

/// A kind of requests as a run draws it.
struct RequestKindSampler {
    share: f64,
    class: u32,
    /// The chance and the sampler of each step; `None` where the kind leaves the step out.
    service: Vec<Option<(f64, Sampler)>>,
}

impl RequestKindSampler {
    fn new(kind: &RequestKind) -> Self {
        let service = kind.service.iter();
        let service =
            service.map(|service| service.as_ref().map(|service| (service.chance, service.time.sampler())));
        Self { share: kind.share, class: kind.class, service: service.collect() }
    }
}

/// Returns the kind whose interval of cumulative shares contains `u`.
fn kind_at(kinds: &[RequestKindSampler], mut u: f64) -> &RequestKindSampler {
    for kind in kinds {
        u -= kind.share;
        if u < 0.0 {
            return kind;
        }
    }
    // Only the rounding of the shares leads here.
    &kinds[kinds.len() - 1]
}

/// Returns the share of each kind; a kind without one gets what the others leave.
fn shares(kinds: &[KindSpec]) -> Result<Vec<f64>, String> {
    let given: Vec<f64> = kinds.iter().filter_map(|kind| kind.share).collect();
    if let Some(share) = given.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
        return Err(format!("kind: expected a share above 0 and at most 1, found {share}"));
    }
    let rest = 1.0 - given.iter().sum::<f64>();
    match kinds.len() - given.len() {
        0 if rest.abs() < 1e-9 => Ok(given),
        0 => Err(format!("kind: expected shares that add up to 1, found {}", 1.0 - rest)),
        1 if rest > 0.0 => Ok(kinds.iter().map(|kind| kind.share.unwrap_or(rest)).collect()),
        1 => Err("kind: the others leave no share for the one without".into()),
        _ => Err("kind: expected a share for each but one".into()),
    }
}

/// Returns the given service of each step: under the name of the step, or under its longest prefix
/// followed by a star.
fn service_of_steps(
    given: &BTreeMap<String, TextField<StepService>>,
    steps: &[String],
    folder: &Path,
) -> Result<Vec<Option<OptionalService>>, String> {
    if let Some(unknown) = given.keys().find(|key| !steps.iter().any(|step| key_matches(key, step))) {
        return Err(format!("service: no step has the name '{unknown}'; there are {}", steps.join(", ")));
    }
    let mut service = Vec::with_capacity(steps.len());
    for step in steps {
        let text = service_text(given, step)
            .ok_or_else(|| format!("service: expected a law, \"30% LAW\" or \"skip\" for '{step}'"))?;
        service.push(match text {
            StepService::Skip => None,
            StepService::Draw(chance, times) => {
                Some(OptionalService { chance: *chance, time: times.distribution(folder)? })
            }
        });
    }
    if !service.iter().flatten().any(|service| service.chance >= 1.0) {
        return Err("service: expected at least one step that is neither skipped nor optional".into());
    }
    Ok(service)
}

fn service_text<'a>(
    given: &'a BTreeMap<String, TextField<StepService>>,
    step: &str,
) -> Option<&'a StepService> {
    if let Some(exact) = given.get(step) {
        return Some(&exact.0);
    }
    let with_star = given.iter().filter(|(key, _)| key.ends_with('*') && key_matches(key, step));
    with_star.max_by_key(|(key, _)| key.len()).map(|(_, text)| &text.0)
}

/// Returns true if a key is the name of a step, or a prefix of it followed by a star.
fn key_matches(key: &str, step: &str) -> bool {
    match key.strip_suffix('*') {
        Some(beginning) => step.starts_with(beginning),
        None => step == key,
    }
}

/// Network delays that are random.
#[derive(Debug, Clone, Default)]
pub(crate) struct RandomDelays {
    /// The delay before each step; `None` where it is fixed.
    pub(crate) steps: Vec<Option<TimeDistribution>>,
    /// The delay between the entry and the first steps; `None` where it is fixed.
    pub(crate) entry: Option<TimeDistribution>,
}

impl RandomDelays {
    /// Returns true if no delay is random.
    pub(crate) fn is_empty(&self) -> bool {
        self.entry.is_none() && self.steps.iter().all(Option::is_none)
    }

    /// A function that draws the delays of a request.
    fn drawer(&self, seed: u64) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let mut steps: Vec<(usize, Sampler, StdRng)> = Vec::new();
        for (step, delay) in self.steps.iter().enumerate() {
            if let Some(delay) = delay {
                let random = random_stream(seed, ENTRY_DELAY_STREAM + 1 + step as u64);
                steps.push((step, delay.sampler(), random));
            }
        }
        let entry = self.entry.as_ref();
        let mut entry = entry.map(|delay| (delay.sampler(), random_stream(seed, ENTRY_DELAY_STREAM)));
        move |draft| {
            for (step, sampler, random) in &mut steps {
                draft.delays[*step] = sampler.draw(random);
            }
            if let Some((sampler, random)) = &mut entry {
                draft.entry_delay = sampler.draw(random);
            }
        }
    }
}
