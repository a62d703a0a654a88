//! Derives one prediction in steps whose figures add up.

use crate::prediction::bounds::{ServerCompany, WorkloadBound, predict_bounds};
use crate::prediction::calibration::{WorkloadCalibration, report_calibration};
use crate::prediction::enforced_models;
use crate::prediction::model_name::ModelName;
use crate::prediction::problem::PredictionProblem;
use model::{LatencyModel, ServerMember, Stage, UndefinedLatency};
use operation::ProgressObserver;
use operation::text::{percent, time};
use predict::{
    EnforcedModel, EnforcedSketch, OneBurstSum, PathSketch, Probabilistic, ProbabilisticDerivation,
    PublishedSnc, Replayed, SncByStage, StageSketch, WorstCase, WorstCaseSketch,
};
use schemars::JsonSchema;
use serde::Serialize;
use units::{Percentile, plural};

/// Derivation of a prediction, for people and programs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PredictionDerivation {
    /// The workload whose latency is predicted.
    pub workload: String,
    /// The model that predicts it.
    pub model: ModelName,
    /// Assumption of the model.
    pub assumption: &'static str,
    /// Percentile of the latency distribution, 0 to 100.
    pub percentile: f64,
    /// Priority of the workload; 0 is served first.
    pub priority: u32,
    /// Latency of the SLO, seconds.
    pub slo_s: f64,
    /// Predicted latency, seconds; null without a bound, with the `reason`.
    pub bound_s: Option<f64>,
    /// Reason for a missing bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Workloads whose work may be served first.
    pub ahead: Vec<ServedBefore>,
    /// Figures that add up to the latency.
    pub steps: Vec<PredictionStep>,
    /// Explanation of the steps.
    pub method: &'static str,
}

/// A workload of the same or a higher priority.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServedBefore {
    /// The name of the workload.
    pub name: String,
    /// Its priority; 0 is served first.
    pub priority: u32,
    /// Mean use of network-in, storage and network-out, fractions of capacity.
    pub load: [f64; 3],
}

/// One figure of a derivation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PredictionStep {
    /// Name of the figure.
    pub what: String,
    /// Computation of the figure.
    pub how: String,
    /// Value of the figure in seconds, if it is a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

impl PredictionStep {
    fn new(what: impl Into<String>, how: impl Into<String>, seconds: Option<f64>) -> Self {
        Self { what: what.into(), how: how.into(), seconds }
    }
}

/// Derives what `model` predicts for a workload that shares a server with all others.
pub fn derive(
    problem: &PredictionProblem,
    workload: usize,
    model: ModelName,
    percentile: Option<Percentile>,
    observer: &dyn ProgressObserver,
) -> PredictionDerivation {
    let everybody: Vec<usize> = (0..problem.cluster.workloads.len()).collect();
    let all = predict_bounds(problem, &everybody, &[model], percentile, observer);
    let server = ServerCompany { problem, members: &everybody, percentile, observer };
    let (mut steps, method) = match model {
        ModelName::WorstCase if problem.enforced.is_some() => {
            let model = enforced_models::worst_case(problem.enforced);
            (server.with_members(&model, |members| enforced(&model, members, workload)), ENFORCED)
        }
        ModelName::WorstCase => {
            let model = WorstCase::default();
            (server.with_members(&model, |members| worst_case(&model, members, workload)), WORST_CASE)
        }
        ModelName::Probabilistic => {
            let model = enforced_models::probabilistic(problem.enforced);
            (server.with_members(&model, |members| probabilistic(&model, members, workload)), PROBABILISTIC)
        }
        ModelName::PublishedSnc => {
            let model = PublishedSnc::default();
            (server.with_members(&model, |members| published(&model, members, workload)), PUBLISHED)
        }
        ModelName::SncByStage => {
            let model = SncByStage::default();
            (server.with_members(&model, |members| by_stage(&model, members, workload)), BY_STAGE)
        }
        ModelName::Replayed => {
            let model = enforced_models::replaying(Replayed::default(), problem.enforced);
            (server.with_members(&model, |members| replayed(&model, members, workload)), REPLAYED)
        }
        ModelName::Calibrated => {
            let model = enforced_models::replaying(Replayed::default(), problem.enforced);
            let traced = server.with_members(&model, |members| replayed(&model, members, workload));
            let report = report_calibration(problem, percentile, observer);
            (with_margin(traced, &report.workloads[workload], report.coverage), CALIBRATED)
        }
    };
    let base = problem.base_latency(workload);
    if base > 0.0 {
        steps.push(PredictionStep::new("idle storage", "device profile", Some(base)));
    }
    let own = &all[workload];
    let spec = problem.spec(workload);
    PredictionDerivation {
        workload: spec.name.clone(),
        model: own.model,
        assumption: own.model.row().assumption,
        percentile: own.percentile.percent(),
        priority: own.priority,
        slo_s: spec.slo.latency.0,
        bound_s: own.latency.ok().map(|prediction| prediction.bound),
        reason: own.latency.err().map(|why| why.to_string()),
        ahead: served_before(problem, own, &all),
        steps,
        method,
    }
}

/// Returns the other workloads of the same or a higher priority, in order of service.
fn served_before(
    problem: &PredictionProblem,
    own: &WorkloadBound,
    all: &[WorkloadBound],
) -> Vec<ServedBefore> {
    let mut ahead: Vec<&WorkloadBound> =
        all.iter().filter(|bound| bound.priority <= own.priority && bound.workload != own.workload).collect();
    ahead.sort_by_key(|bound| (bound.priority, bound.workload));
    let mut workloads = Vec::new();
    for bound in ahead {
        let workload = &problem.cluster.workloads[bound.workload];
        workloads.push(ServedBefore {
            name: workload.spec.name.clone(),
            priority: bound.priority,
            load: workload.traffic.utilisation().into_array(),
        });
    }
    workloads
}

const WORST_CASE: &str = "The path is divided into runs of stages with one order of priorities. In a run, work of the \
same and higher priorities arrives within the burst curves of the traces; the longest horizontal distance to what \
the higher priorities leave of the capacity is the delay. What arrives at a later run may have been bunched by as much \
as the times to it differ.";

fn worst_case(
    model: &WorstCase,
    members: &[ServerMember<'_, <WorstCase as LatencyModel>::Sketch>],
    workload: usize,
) -> Vec<PredictionStep> {
    let terms = model.terms(members).swap_remove(workload);
    let mut steps = Vec::new();
    for term in terms {
        let how = format!("arrivals bunched by up to {}", time(term.jitter));
        steps.push(PredictionStep::new(stage_range(term.stages), how, Some(term.delay)));
    }
    steps
}

const ENFORCED: &str = "On a link, work of the same and higher priorities arrives within what their limits admit, and at \
the device also within that of the workload's own level; the longest horizontal distance to what the higher priorities \
leave of the capacity is the delay. What a stage has begun and does not interrupt comes first. Limits admit what the \
stages before may bunch, so that they delay no workload that keeps to the curves of its trace.";

fn enforced(
    model: &EnforcedModel<WorstCase>,
    members: &[ServerMember<'_, EnforcedSketch<WorstCaseSketch>>],
    workload: usize,
) -> Vec<PredictionStep> {
    let Some(worst) = model.worst_case(members) else { return Vec::new() };
    let worst = worst[workload];
    let begun = model.begun_by_stage(members.iter().map(|member| member.sketch));
    let mut steps = Vec::new();
    for (stage, delay) in worst.delays.iter() {
        let how = format!("{} may already be in service", time(begun[stage]));
        steps.push(PredictionStep::new(stage.to_string(), how, Some(*delay)));
    }
    for (what, how, seconds) in [
        ("own service", "on one channel instead of all", worst.own_service),
        ("proxy", "without queueing", worst.proxy),
    ] {
        if seconds > 0.0 {
            steps.push(PredictionStep::new(what, how, Some(seconds)));
        }
    }
    steps
}

fn stage_range((first, last): (Stage, Stage)) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

const PROBABILISTIC: &str = "A request finds some work of its own stream; whoever else is served before it, at any \
relative shift, must not need more than the room that is left. Requests are sorted by what they find: the shares of \
requests times the probabilities that the others exceed the room add up to what the percentile allows. Bursts at \
different time scales are counted by a union bound, each scale by its exact or exponential tail; or, where that is less, the \
largest burst of one stream by the delay that it causes alone, over all scales at once, and only the rest by a union bound.";

fn probabilistic(
    model: &EnforcedModel<Probabilistic>,
    members: &[ServerMember<'_, EnforcedSketch<<Probabilistic as LatencyModel>::Sketch>>],
    workload: usize,
) -> Vec<PredictionStep> {
    let inner = EnforcedModel::<Probabilistic>::inner_members(members);
    let begun = model.begun(members)[workload];
    let found = match model.worst_case(members) {
        None => model.inner().derivation(&inner, workload),
        Some(worst) => {
            let worst = Some(worst[workload].total).filter(|worst| worst.is_finite());
            let worst = worst.ok_or(UndefinedLatency::NoBound);
            model.inner().derivation_behind(&inner, (workload, begun), worst)
        }
    };
    let derivation = match found {
        Ok(ProbabilisticDerivation::FewAreLate(lateness)) => lateness,
        Ok(ProbabilisticDerivation::OneBurst(sum)) => return by_one_burst(&sum, begun),
        Ok(ProbabilisticDerivation::WorstCase(seconds)) => {
            let how = "smaller: no alignment exceeds it (--model worst-case derives it)";
            return vec![PredictionStep::new(LESSER_BOUND, how, Some(seconds))];
        }
        Err(_) => return Vec::new(),
    };
    let share = percent(derivation.share);
    let mut steps = vec![PredictionStep::new("own stream", format!("is given {share} of the queue"), None)];
    if begun > 0.0 {
        let how = format!("{} may already be in service, and are counted in all that follows", time(begun));
        steps.push(PredictionStep::new("stages", how, None));
    }
    let mut sum = 0.0;
    for term in &derivation.terms {
        let late = term.probability * term.late;
        // Negligible contributions share one line at the end.
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
        steps.push(PredictionStep::new(what, how, None));
    }
    let all: f64 = derivation.terms.iter().map(|term| term.probability * term.late).sum();
    steps.push(PredictionStep::new("all others", format!("late: {}", percent(all - sum)), None));
    let allowed = format!("late: {} of {} that may be", percent(all), percent(derivation.allowed));
    steps.push(PredictionStep::new("queueing", allowed, Some(derivation.latency)));
    steps
}

/// The steps of a probabilistic bound that counts each burst once.
fn by_one_burst(sum: &OneBurstSum, begun: f64) -> Vec<PredictionStep> {
    let how = "is given the share of the queue that makes its request late least often";
    let mut steps = vec![PredictionStep::new("own stream", how, None)];
    if begun > 0.0 {
        let how = format!("{} may already be in service, and are counted in all that follows", time(begun));
        steps.push(PredictionStep::new("stages", how, None));
    }
    let how = "each burst counts once, however long it delays others";
    steps.push(PredictionStep::new("all others", how, None));
    if let Some(one_burst) = sum.one_burst {
        let [own, large] = one_burst.shares.map(percent);
        let how =
            format!("or {large} of the queue for one burst of another stream, {own} for the own stream");
        steps.push(PredictionStep::new("one burst", how, None));
        let burst = time(one_burst.burst);
        let two = percent(one_burst.two);
        let how = format!("of more than {burst}, in two other streams at once; late: {two}");
        steps.push(PredictionStep::new("two bursts", how, None));
    }
    let allowed = format!("late: {} of {} that may be", percent(sum.late), percent(sum.allowed));
    steps.push(PredictionStep::new("queueing", allowed, Some(sum.latency)));
    steps
}

const PUBLISHED: &str = "All stages of the path are one queue (thesis Theorem 5), and what goes first is subtracted from it \
(Eq. A.5). A request counts as its largest work. At an exponent theta the others leave a rate; the latency is what theta gives \
least (Theorem 1, Table 4.1), with sigma = 0.";

fn published(
    model: &PublishedSnc,
    members: &[ServerMember<'_, PathSketch>],
    workload: usize,
) -> Vec<PredictionStep> {
    let Ok(Some(found)) = model.latency(members, workload) else { return Vec::new() };
    let terms = found.latency;
    let left = format!(
        "{} together leave {} of the path at theta = {:.4} per second",
        plural(found.ahead, "other workload"),
        percent(terms.left),
        terms.theta
    );
    let queues = match found.queues {
        1 => "one queue".to_owned(),
        queues => format!("{queues} queues as one, which counts as {} slower", percent(0.01)),
    };
    let exceeded = format!("exceeded by {} of requests", percent(found.exceeded));
    vec![
        PredictionStep::new("served first", left, None),
        PredictionStep::new("path", queues, Some(terms.convolution)),
        PredictionStep::new("any start", "of the busy period, in steps of 10us", Some(terms.any_start)),
        PredictionStep::new("percentile", exceeded, Some(terms.exceeded)),
    ]
}

const BY_STAGE: &str = "Each stage is a queue that may exceed its share of what the percentile leaves. At an exponent \
theta, the same and higher priorities leave a rate; the latency is what theta gives least (thesis Theorem 1, \
Table 4.1), with sigma = 0.";

fn by_stage(
    model: &SncByStage,
    members: &[ServerMember<'_, StageSketch>],
    workload: usize,
) -> Vec<PredictionStep> {
    let mut steps = Vec::new();
    for stage in model.stages(members, workload).unwrap_or_default() {
        let theta = stage.latency.theta;
        let how = format!("exceeded by {} at theta = {theta:.4} per second", percent(stage.exceeded));
        steps.push(PredictionStep::new(stage.stage.to_string(), how, Some(stage.latency.seconds)));
    }
    steps
}

const CALIBRATED: &str = "The traces are replayed at random shifts. In trials, a window of every trace was held out and all workloads \
were replayed in it; a score is what a workload saw, divided by what the replays of the rest predicted. The margin is the \
quantile of the scores by split conformal prediction, and multiplies the largest latency of the alignments. No bound is above \
the worst case, which is the bound where there is no margin.";

/// The steps of `replayed` that come after the margin.
const BEGUN_WORK: &str = "already in service";
const LESSER_BOUND: &str = "worst case";

/// The steps of `replayed` with the margin on them.
fn with_margin(
    mut steps: Vec<PredictionStep>,
    calibration: &WorkloadCalibration,
    coverage: f64,
) -> Vec<PredictionStep> {
    let blocks = calibration.blocks;
    let window = time(calibration.window_s);
    let score = match (&calibration.fallback, calibration.margin) {
        (Some(why), _) => why.clone(),
        (None, Some(margin)) => format!(
            "{margin:.3} times the largest: scores of held-out windows of {window}, {} of {blocks} blocks and one to come ({})",
            percent(coverage),
            calibration.basis.unwrap_or_default()
        ),
        (None, None) => {
            format!(
                "none: with no margin did held-out windows of {window} keep the coverage; the worst case counts"
            )
        }
    };
    let beside = steps.iter().position(|step| [BEGUN_WORK, LESSER_BOUND].contains(&step.what.as_str()));
    steps.insert(beside.unwrap_or(steps.len()), PredictionStep::new("margin", score, None));
    steps
}

/// The quantiles of the alignments' latencies that are shown.
const QUARTILES: [(&str, f64); 5] = [
    ("smallest", 0.0),
    ("lower quartile", 0.25),
    ("median", 0.5),
    ("upper quartile", 0.75),
    ("largest", 1.0),
];

const REPLAYED: &str = "The traces are replayed exactly at random shifts. Each alignment gives the percentile over the \
requests of its longest trace; the bound is an order statistic of these values, chosen so that it covers 95% of all \
alignments with 95% confidence whatever their distribution.";

fn replayed(
    model: &EnforcedModel<Replayed>,
    members: &[ServerMember<'_, EnforcedSketch<<Replayed as LatencyModel>::Sketch>>],
    workload: usize,
) -> Vec<PredictionStep> {
    let begun = model.begun(members)[workload];
    let worst = model.worst_case(members);
    let members = &EnforcedModel::<Replayed>::inner_members(members)[..];
    let model = model.inner();
    let Ok(mut values) = model.samples(members).swap_remove(workload) else { return Vec::new() };
    values.sort_unstable();
    let mut steps = Vec::new();
    for (what, share) in QUARTILES {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a small number"
        )]
        let rank = (share * (values.len() - 1) as f64).round() as usize;
        let how = format!("of {}", plural(values.len(), "alignment"));
        steps.push(PredictionStep::new(what, how, Some(values[rank].as_secs())));
    }
    if let Ok(correlated) = model.correlated(members).swap_remove(workload) {
        steps.push(PredictionStep::new(
            "all traces begin together",
            "one alignment",
            Some(correlated.recorded),
        ));
        steps.push(PredictionStep::new(
            "all worst bursts end together",
            "one alignment",
            Some(correlated.bursts_together),
        ));
    }
    if begun > 0.0 {
        steps.push(PredictionStep::new(BEGUN_WORK, "added to each of these", Some(begun)));
    }
    if let Some(worst) = worst.filter(|worst| worst[workload].total.is_finite()) {
        let how = "the lesser of it and the sum counts (--model worst-case derives it)";
        steps.push(PredictionStep::new(LESSER_BOUND, how, Some(worst[workload].total)));
    }
    steps
}
