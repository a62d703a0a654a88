//! Which method decides, in which order, with how much effort.

use clap::{Args, ValueEnum};
use model::OperationError;
use plan::{LimitMethod, PlacementOrder, SearchEffort};
use std::num::NonZeroUsize;
use std::time::Duration;
use units::Nanos;

/// The published procedure of WorkloadCompactor: curves of 12 segments, cut at 30 s of burst.
const PUBLISHED_SEGMENTS: NonZeroUsize = NonZeroUsize::new(12).expect("12 is not zero");
const PUBLISHED_BURST_MAX_S: f64 = 30.0;

/// Names of policies, for messages.
const POLICIES: &str = "tailwright, workload-compactor, effective-bandwidth, effective-bandwidth-even, \
                        knee, average-K (K times the mean rate, such as average-1.5)";

/// In which order workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// First fit in order of arrival.
    Given,
    /// Whatever uses fewest servers: several orders and a local search.
    Best,
}

/// How to plan.
#[derive(Debug, Clone, Args)]
pub(crate) struct MethodArgs {
    /// How limits are chosen: tailwright, or a published method to compare with (workload-compactor,
    /// effective-bandwidth, effective-bandwidth-even, knee, average-1.5, average-K).
    #[arg(long, value_name = "NAME", default_value = "tailwright", value_parser = parse_method)]
    policy: LimitMethod,
    /// Order of placement (default: best for tailwright, given for the others).
    #[arg(long, value_enum)]
    order: Option<OrderChoice>,
    /// Skip servers that look full at the rates in force (not for tailwright).
    #[arg(long)]
    fast_first_fit: bool,
    /// Reduce curves to this many segments, cut at 30 s of burst (workload-compactor only; default 12).
    #[arg(long, value_name = "N")]
    segments: Option<NonZeroUsize>,
    /// How many trials the search for a better packing may make (default: by the number of workloads);
    /// the same effort gives the same plan.
    #[arg(long, value_name = "TRIALS")]
    effort: Option<u64>,
    /// End the search after this time with the best so far, such as 10s; such a plan may differ from run
    /// to run.
    #[arg(long, value_name = "TIME")]
    time_budget: Option<Nanos>,
}

/// The name of a policy as the user writes it.
fn parse_method(text: &str) -> Result<LimitMethod, String> {
    let fixed = [
        LimitMethod::Exact,
        LimitMethod::Relaxed,
        LimitMethod::EffectiveBest,
        LimitMethod::EffectiveEven,
        LimitMethod::Knee,
    ];
    if let Some(method) = fixed.into_iter().find(|method| method.name() == text) {
        return Ok(method);
    }
    let factor = text.strip_prefix("average-").and_then(|k| k.parse::<f64>().ok());
    factor
        .filter(|k| k.is_finite() && *k > 0.0)
        .map(LimitMethod::Average)
        .ok_or_else(|| format!("there is no policy '{text}': expected one of {POLICIES}"))
}

/// Everything that decides a plan, beside the problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) method: LimitMethod,
    pub(crate) order: PlacementOrder,
    /// Limits sustain the mean rate for ever; the published methods have it only for the trace's length.
    pub(crate) sustained: bool,
    /// Segments of the reduced curves, and the burst in seconds of capacity where they are cut.
    pub(crate) reduction: Option<(NonZeroUsize, f64)>,
    /// `None` for what suits the number of workloads.
    pub(crate) effort: Option<SearchEffort>,
    pub(crate) time_budget: Option<Duration>,
}

impl Recipe {
    /// A method as it is meant: tailwright searches, the others place first fit as published.
    pub(crate) fn of(method: LimitMethod) -> Self {
        let published = method == LimitMethod::Relaxed;
        Self {
            method,
            order: if method == LimitMethod::Exact { PlacementOrder::Best } else { PlacementOrder::Given },
            sustained: method == LimitMethod::Exact,
            reduction: published.then_some((PUBLISHED_SEGMENTS, PUBLISHED_BURST_MAX_S)),
            effort: None,
            time_budget: None,
        }
    }
}

/// The recipe of the method that made a policy.
pub(crate) fn recipe_of_policy(policy: &model::Policy) -> Result<Recipe, OperationError> {
    parse_method(&policy.policy_name).map(Recipe::of).map_err(OperationError::input)
}

impl MethodArgs {
    /// The recipe, or which flags contradict each other.
    pub(crate) fn recipe(&self) -> Result<Recipe, OperationError> {
        let mut recipe = Recipe::of(self.policy);
        recipe.effort = self.effort.map(SearchEffort::Evaluations);
        recipe.time_budget = self.time_budget.map(|Nanos(ns)| Duration::from_nanos(ns));
        match self.order {
            Some(OrderChoice::Given) => recipe.order = PlacementOrder::Given,
            Some(OrderChoice::Best) => recipe.order = PlacementOrder::Best,
            None => {}
        }
        if self.fast_first_fit {
            if self.policy == LimitMethod::Exact {
                return Err(OperationError::input("--fast-first-fit does not go with --policy tailwright")
                    .hint("it is a rule of the published methods, such as --policy workload-compactor"));
            }
            if recipe.order == PlacementOrder::Best {
                return Err(OperationError::input("--fast-first-fit does not go with --order best")
                    .hint("it places in the order of arrival; leave --order out"));
            }
            recipe.order = PlacementOrder::GivenFast;
        }
        if let Some(segments) = self.segments {
            if self.policy != LimitMethod::Relaxed {
                return Err(OperationError::input("--segments goes with --policy workload-compactor only")
                    .hint("the other policies use exact curves"));
            }
            recipe.reduction = Some((segments, PUBLISHED_BURST_MAX_S));
        }
        Ok(recipe)
    }
}
