//! How one prediction comes about, as steps whose figures add up.

use super::{Bound, ModelName, OneServer, bounds};
use crate::input::Scene;
use crate::output::{percent, time};
use model::{LatencyModel, ServerMember, Stage};
use predict::{Probabilistic, ProbabilisticDerivation, PublishedSnc, Replayed, WorstCase};
use serde::Serialize;
use units::Percentile;

/// A derivation for people and machines.
#[derive(Debug, Serialize)]
pub(crate) struct Derivation {
    pub(crate) workload: String,
    pub(crate) model: ModelName,
    pub(crate) assumption: &'static str,
    pub(crate) percentile: f64,
    pub(crate) priority: u32,
    pub(crate) slo_s: f64,
    /// Null where the model has no bound; `reason` says why.
    pub(crate) bound_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Whose work may come first.
    pub(crate) ahead: Vec<Ahead>,
    pub(crate) steps: Vec<Step>,
    /// What the steps mean.
    pub(crate) method: &'static str,
}

/// Somebody of the same or higher priority.
#[derive(Debug, Serialize)]
pub(crate) struct Ahead {
    pub(crate) name: String,
    pub(crate) priority: u32,
    /// Mean use of network-in, storage and network-out.
    pub(crate) load: [f64; 3],
}

/// One figure of a derivation.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    pub(crate) what: String,
    pub(crate) how: String,
    /// Seconds, where the step is a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
}

impl Step {
    fn new(what: impl Into<String>, how: impl Into<String>, seconds: Option<f64>) -> Self {
        Self { what: what.into(), how: how.into(), seconds }
    }
}

/// Derives what `model` predicts for a tenant that shares a server with all others.
pub(crate) fn derive(
    scene: &Scene,
    tenant: usize,
    model: ModelName,
    percentile: Option<Percentile>,
) -> Derivation {
    let everybody: Vec<usize> = (0..scene.tenants.len()).collect();
    let all = bounds(scene, &everybody, &[model], percentile);
    let own = all[tenant];
    let server = OneServer { scene, members: &everybody, percentile };
    let (steps, method) = match model {
        ModelName::WorstCase => {
            let model = WorstCase::default();
            (server.with_members(&model, |members| worst_case(&model, members, tenant)), WORST_CASE)
        }
        ModelName::Probabilistic => {
            let model = Probabilistic::default();
            (server.with_members(&model, |members| probabilistic(&model, members, tenant)), PROBABILISTIC)
        }
        ModelName::PublishedSnc => {
            let model = PublishedSnc::default();
            (server.with_members(&model, |members| published(&model, members, tenant)), PUBLISHED)
        }
        ModelName::Replayed => {
            let model = Replayed::default();
            (server.with_members(&model, |members| replayed(&model, members, tenant)), REPLAYED)
        }
    };
    derivation(scene, &own, &all, steps, method)
}

fn derivation(
    scene: &Scene,
    own: &Bound,
    all: &[Bound],
    mut steps: Vec<Step>,
    method: &'static str,
) -> Derivation {
    let spec = &scene.tenants[own.tenant].spec;
    if scene.base_latency() > 0.0 {
        steps.push(Step::new("idle storage", "device profile", Some(scene.base_latency())));
    }
    let mut ahead: Vec<&Bound> =
        all.iter().filter(|b| b.priority <= own.priority && b.tenant != own.tenant).collect();
    ahead.sort_by_key(|b| (b.priority, b.tenant));
    let name = |b: &&Bound| Ahead {
        name: scene.tenants[b.tenant].spec.name.clone(),
        priority: b.priority,
        load: scene.tenants[b.tenant].traffic.utilisation().into_array(),
    };
    Derivation {
        workload: spec.name.clone(),
        model: own.model,
        assumption: own.model.assumption(),
        percentile: own.percentile.percent(),
        priority: own.priority,
        slo_s: spec.slo.latency.0,
        bound_s: own.latency.ok().map(|prediction| prediction.bound),
        reason: own.latency.err().map(|why| why.to_string()),
        ahead: ahead.iter().map(name).collect(),
        steps,
        method,
    }
}

const WORST_CASE: &str = "The path is divided into runs of stages with one order of priorities. In a run, work of the \
same and higher priorities arrives within the burst curves of the traces; the longest horizontal distance to what \
the higher priorities leave of the capacity is the delay. What arrives at a later run may have been bunched by as much \
as the times to it differ.";

fn worst_case(
    model: &WorstCase,
    members: &[ServerMember<'_, <WorstCase as LatencyModel>::Sketch>],
    tenant: usize,
) -> Vec<Step> {
    let terms = model.terms(members).swap_remove(tenant);
    let range = |(first, last): (Stage, Stage)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    let step = |leg: predict::WorstCaseTerm| {
        Step::new(
            range(leg.stages),
            format!("arrivals bunched by up to {}", time(leg.jitter)),
            Some(leg.delay),
        )
    };
    terms.into_iter().map(step).collect()
}

const PROBABILISTIC: &str = "A request finds some work of its own stream; whoever else is served before it, at any \
relative shift, must not need more than the room that is left. Requests are sorted by what they find: the shares of \
requests times the probabilities that the others exceed the room add up to what the percentile allows. Bursts at \
different time scales are counted by a union bound, each scale by its exact or exponential tail.";

fn probabilistic(
    model: &Probabilistic,
    members: &[ServerMember<'_, <Probabilistic as LatencyModel>::Sketch>],
    tenant: usize,
) -> Vec<Step> {
    let derivation = match model.derivation(members, tenant) {
        Ok(ProbabilisticDerivation::FewAreLate(lateness)) => lateness,
        Ok(ProbabilisticDerivation::WorstCase(seconds)) => {
            let how = "smaller: no alignment exceeds it (--model worst-case derives it)";
            return vec![Step::new("worst case", how, Some(seconds))];
        }
        Err(_) => return Vec::new(),
    };
    let share = percent(derivation.share);
    let mut steps = vec![Step::new("own stream", format!("is given {share} of the queue"), None)];
    let mut sum = 0.0;
    for term in &derivation.terms {
        let late = term.probability * term.late;
        // What adds nothing that can be seen is one line at the end.
        if late < 0.02 * derivation.allowed {
            continue;
        }
        sum += late;
        let what = format!("{} of requests find {}", percent(term.probability), time(term.own));
        let how = if term.room < 0.0 {
            format!("late for sure: {}", percent(late))
        } else {
            format!(
                "others need more than {} with {}: {}",
                time(term.room),
                percent(term.late),
                percent(late)
            )
        };
        steps.push(Step::new(what, how, None));
    }
    let all: f64 = derivation.terms.iter().map(|term| term.probability * term.late).sum();
    steps.push(Step::new("all others", format!("late: {}", percent(all - sum)), None));
    let allowed = format!("late: {} of {} that may be", percent(all), percent(derivation.allowed));
    steps.push(Step::new("queueing", allowed, Some(derivation.latency)));
    steps
}

const PUBLISHED: &str = "Each stage is a queue that may exceed its share of what the percentile leaves. At an exponent \
theta, the same and higher priorities leave a rate; the latency is what theta gives least (thesis Theorem 1, \
Table 4.1), with sigma = 0.";

fn published(
    model: &PublishedSnc,
    members: &[ServerMember<'_, <PublishedSnc as LatencyModel>::Sketch>],
    tenant: usize,
) -> Vec<Step> {
    let step = |stage: predict::PublishedStage| {
        let how = format!("exceeded by {} at theta = {:.4} per second", percent(stage.exceeded), stage.theta);
        Step::new(stage.stage.to_string(), how, Some(stage.latency))
    };
    model.stages(members, tenant).map_or_else(|_| Vec::new(), |stages| stages.into_iter().map(step).collect())
}

const REPLAYED: &str = "The traces are replayed exactly at random shifts. Each alignment gives the percentile over the \
requests of its longest trace; the bound is an order statistic of these values, chosen so that it covers 95% of all \
alignments with 95% confidence whatever their distribution.";

fn replayed(
    model: &Replayed,
    members: &[ServerMember<'_, <Replayed as LatencyModel>::Sketch>],
    tenant: usize,
) -> Vec<Step> {
    let Ok(mut values) = model.samples(members).swap_remove(tenant) else { return Vec::new() };
    values.sort_unstable();
    let quantile = |share: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A share of a small number.
        let rank = (share * (values.len() - 1) as f64).round() as usize;
        Some(values[rank].as_secs())
    };
    let of =
        |what: &str, share: f64| Step::new(what, format!("of {} alignments", values.len()), quantile(share));
    let mut steps = vec![
        of("smallest", 0.0),
        of("lower quartile", 0.25),
        of("median", 0.5),
        of("upper quartile", 0.75),
        of("largest", 1.0),
    ];
    if let Ok(correlated) = model.correlated(members).swap_remove(tenant) {
        steps.push(Step::new("all traces begin together", "one alignment", Some(correlated.recorded)));
        steps.push(Step::new(
            "all worst bursts end together",
            "one alignment",
            Some(correlated.bursts_together),
        ));
    }
    steps
}
