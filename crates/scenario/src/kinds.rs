//! What a request of an entry may be: kinds with their shares, and what each needs at every step.
//!
//! Everything is drawn when the request arrives, from generators of their own: one for demands, in the order of
//! steps; one for which kind it is and whether optional steps are taken; one for each random delay. A law that is
//! varied does not change what else is drawn, as far as laws need one draw per value, and a share or a delay changes
//! nothing else.

use crate::file::{EntrySpec, KindSpec};
use crate::text::Service;
use arrivals::{Sampler, TimeDistribution};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{RequestDraft, SKIP};
use std::collections::BTreeMap;
use std::path::Path;

type Result<T> = std::result::Result<T, String>;

/// The kinds of an entry; their shares add up to 1.
#[derive(Debug, Clone)]
pub(crate) struct Kinds(Vec<Kind>);

#[derive(Debug, Clone)]
struct Kind {
    share: f64,
    class: u32,
    /// By step; `None` leaves it out, otherwise with this probability.
    service: Vec<Option<(f64, TimeDistribution)>>,
}

/// Streams of random numbers of one entry, besides that of demands.
const CHOICES: u64 = 1;
const DELAYS: u64 = 2;

/// A generator that has nothing to do with those of other streams of the same seed.
fn stream(seed: u64, stream: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

impl Kinds {
    /// `names` are those of the steps, `class` finds the number of a class.
    pub(crate) fn new(
        entry: &EntrySpec,
        names: &[String],
        folder: &Path,
        class: impl Fn(&KindSpec) -> Result<u32>,
    ) -> Result<Self> {
        let specs = entry.all_kinds()?;
        let shares = shares(&specs)?;
        let kind = |(index, (spec, share)): (usize, (&KindSpec, f64))| {
            let kind = || {
                let service = service(&spec.service, names, folder)?;
                Ok(Kind { share, class: class(spec)?, service })
            };
            let named = |fault: String| match (&spec.name, specs.len()) {
                (_, 1) => fault,
                (Some(name), _) => format!("kind '{name}': {fault}"),
                (None, _) => format!("kind {}: {fault}", index + 1),
            };
            kind().map_err(named)
        };
        specs.iter().zip(shares).enumerate().map(kind).collect::<Result<_>>().map(Self)
    }

    /// Mean demand of a request at these steps, seconds.
    pub(crate) fn work(&self, at: impl Fn(usize) -> bool) -> f64 {
        let of = |kind: &Kind| -> f64 {
            let steps = kind.service.iter().enumerate().filter(|(step, _)| at(*step));
            let work = steps.filter_map(|(_, service)| service.as_ref());
            kind.share * work.map(|(chance, law)| chance * law.mean().0).sum::<f64>()
        };
        self.0.iter().map(of).sum()
    }

    /// Draws requests; `delays` are the random ones, by step, and that of the entry.
    pub(crate) fn drawer(&self, seed: u64, delays: &Delays) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let kinds: Vec<Sampled> = self.0.iter().map(Sampled::new).collect();
        let (mut demands, mut choices) = (StdRng::seed_from_u64(seed), stream(seed, CHOICES));
        let mut delays = delays.drawer(seed);
        move |draft| {
            let kind = match kinds.as_slice() {
                [only] => only,
                several => pick(several, choices.random()),
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

struct Sampled {
    /// Of this and all kinds before it.
    share: f64,
    class: u32,
    service: Vec<Option<(f64, Sampler)>>,
}

impl Sampled {
    fn new(kind: &Kind) -> Self {
        let sampler = |service: &Option<(f64, TimeDistribution)>| {
            service.as_ref().map(|(chance, law)| (*chance, law.sampler()))
        };
        Self { share: kind.share, class: kind.class, service: kind.service.iter().map(sampler).collect() }
    }
}

/// The kind whose share contains `u`.
fn pick(kinds: &[Sampled], mut u: f64) -> &Sampled {
    for kind in kinds {
        u -= kind.share;
        if u < 0.0 {
            return kind;
        }
    }
    // Rounding of the shares alone leads here.
    &kinds[kinds.len() - 1]
}

/// The share of each kind; one without a share has what the others leave.
fn shares(kinds: &[KindSpec]) -> Result<Vec<f64>> {
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

/// What is needed by step: by the step's name, or by the longest beginning of it with a star behind.
fn service(
    given: &BTreeMap<String, crate::text::Text<Service>>,
    names: &[String],
    folder: &Path,
) -> Result<Vec<Option<(f64, TimeDistribution)>>> {
    let matches = |key: &str, name: &str| match key.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == key,
    };
    if let Some(unknown) = given.keys().find(|key| !names.iter().any(|name| matches(key, name))) {
        return Err(format!("service: no step has the name '{unknown}'; there are {}", names.join(", ")));
    }
    let one = |name: &String| {
        let exact = given.get(name);
        let longest = || {
            let stars = given.iter().filter(|(key, _)| key.ends_with('*') && matches(key, name));
            stars.max_by_key(|(key, _)| key.len()).map(|(_, text)| text)
        };
        let found = exact.or_else(longest);
        let expected = || format!("service: expected a law, \"30% LAW\" or \"skip\" for '{name}'");
        match &found.ok_or_else(expected)?.0 {
            Service::Skip => Ok(None),
            Service::Draw(chance, times) => Ok(Some((*chance, times.law(folder)?))),
        }
    };
    let service: Vec<Option<(f64, TimeDistribution)>> = names.iter().map(one).collect::<Result<_>>()?;
    if !service.iter().flatten().any(|(chance, _)| *chance >= 1.0) {
        return Err("service: expected at least one step that is neither skipped nor optional".into());
    }
    Ok(service)
}

/// Network delays that are random.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delays {
    /// By step.
    pub(crate) steps: Vec<Option<TimeDistribution>>,
    pub(crate) entry: Option<TimeDistribution>,
}

impl Delays {
    fn drawer(&self, seed: u64) -> impl FnMut(&mut RequestDraft<'_>) + use<> {
        let numbered = self.steps.iter().enumerate();
        let mut steps: Vec<(usize, Sampler, StdRng)> = numbered
            .filter_map(|(step, law)| {
                Some((step, law.as_ref()?.sampler(), stream(seed, DELAYS + 1 + step as u64)))
            })
            .collect();
        let mut entry = self.entry.as_ref().map(|law| (law.sampler(), stream(seed, DELAYS)));
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
