//! Options of planning: method, order, effort.

use model::{OperationError, Policy};
use operation::text::meant_word;
use placement::{LimitMethod, PlacementOrder, SearchEffort};
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The published procedure of WorkloadCompactor: curves of 12 segments, cut at 30 s of burst.
const PUBLISHED_SEGMENTS: NonZeroUsize = NonZeroUsize::new(12).expect("12 is not zero");
const PUBLISHED_BURST_MAX_S: f64 = 30.0;

/// Names of methods, for messages.
const METHODS: &str = "tailwright, workload-compactor, effective-bandwidth, effective-bandwidth-even, \
                        knee, average-K (K times the mean rate, such as average-1.5)";

/// The order in which workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// First fit in the order of arrival.
    FirstFit,
    /// Fewest servers: several orders and a local search.
    FewestServers,
}

/// Planning options of a user.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecipeSettings {
    /// Method of choosing limits.
    pub method: LimitMethod,
    /// Order of placement; by default that of the method.
    pub placing: Option<Placing>,
    /// Skip servers that look full at the rates in force.
    pub skip_full: bool,
    /// Reduce curves to this many segments.
    pub segments: Option<NonZeroUsize>,
    /// Maximum number of trials of the packing search.
    pub effort: Option<u64>,
    /// End the search after this time with the best so far.
    pub time_budget: Option<Duration>,
    /// Count the bounds of servers that preempt, as published.
    pub preemptive: bool,
}

/// Settings that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipeError {
    /// Full servers are skipped by the published methods only.
    SkipFullWithSearchedLimits,
    /// Full servers are skipped in the order of arrival only.
    SkipFullWithFewestServers,
    /// Curves are reduced for the method that was published with reduced curves only.
    SegmentsWithExactCurves,
    /// There is no search to limit in the order of arrival.
    SearchLimitsWithFirstFit,
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SkipFullWithSearchedLimits => "the method tailwright does not skip servers that look full",
            Self::SkipFullWithFewestServers => "servers are skipped in the order of arrival only",
            Self::SearchLimitsWithFirstFit => "placing in the order of arrival searches for nothing",
            Self::SegmentsWithExactCurves => "only the method workload-compactor reduces curves",
        })
    }
}

impl std::error::Error for RecipeError {}

/// Parses the name of a method, as used in policies.
///
/// # Errors
///
/// If there is no such method; the message lists the names.
pub fn parse_method(text: &str) -> Result<LimitMethod, String> {
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
    factor.filter(|k| k.is_finite() && *k > 0.0).map(LimitMethod::Average).ok_or_else(|| {
        let meant = meant_word(text, METHODS.split(", "));
        format!("there is no policy '{text}': expected one of {METHODS}{meant}")
    })
}

/// Everything that decides a plan, beside the problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanningRecipe {
    /// Method of choosing limits.
    pub method: LimitMethod,
    /// The order in which workloads are placed.
    pub order: PlacementOrder,
    /// Limits sustain the mean rate for ever; the published methods do so only for the length of the trace.
    pub sustained: bool,
    /// Segments of the reduced curves, and the burst in seconds of capacity where they are cut.
    pub reduction: Option<(NonZeroUsize, f64)>,
    /// Effort of the search; `None` chooses it by the number of workloads.
    pub effort: Option<SearchEffort>,
    /// When the search ends with the best so far.
    pub time_budget: Option<Duration>,
    /// Bounds are those of servers that preempt, which do not exist: the published formula, to compare with.
    pub preemptive: bool,
}

impl PlanningRecipe {
    /// A method as it is meant: tailwright searches, the others place first fit as published.
    pub fn of(method: LimitMethod) -> Self {
        let published = method == LimitMethod::Relaxed;
        Self {
            method,
            order: if method == LimitMethod::Exact { PlacementOrder::Best } else { PlacementOrder::Given },
            sustained: method == LimitMethod::Exact,
            reduction: published.then_some((PUBLISHED_SEGMENTS, PUBLISHED_BURST_MAX_S)),
            effort: None,
            time_budget: None,
            preemptive: false,
        }
    }

    /// The recipe that these settings ask for.
    ///
    /// # Errors
    ///
    /// When settings do not go together.
    pub fn with(settings: &RecipeSettings) -> Result<Self, RecipeError> {
        let mut recipe = Self::of(settings.method);
        recipe.effort = settings.effort.map(SearchEffort::Evaluations);
        recipe.time_budget = settings.time_budget;
        recipe.preemptive = settings.preemptive;
        match settings.placing {
            Some(Placing::FirstFit) => recipe.order = PlacementOrder::Given,
            Some(Placing::FewestServers) => recipe.order = PlacementOrder::Best,
            None => {}
        }
        let has_search_limits = settings.effort.is_some() || settings.time_budget.is_some();
        if has_search_limits && recipe.order == PlacementOrder::Given {
            return Err(RecipeError::SearchLimitsWithFirstFit);
        }
        if settings.skip_full {
            if settings.method == LimitMethod::Exact {
                return Err(RecipeError::SkipFullWithSearchedLimits);
            }
            if recipe.order == PlacementOrder::Best {
                return Err(RecipeError::SkipFullWithFewestServers);
            }
            recipe.order = PlacementOrder::GivenFast;
        }
        if let Some(segments) = settings.segments {
            if settings.method != LimitMethod::Relaxed {
                return Err(RecipeError::SegmentsWithExactCurves);
            }
            recipe.reduction = Some((segments, PUBLISHED_BURST_MAX_S));
        }
        Ok(recipe)
    }
}

/// The recipe of the method that made a policy.
///
/// # Errors
///
/// When the policy was made by no method of planning.
pub fn recipe_of_policy(policy: &Policy) -> Result<PlanningRecipe, OperationError> {
    let method = parse_method(&policy.policy_name).map_err(|error| {
        OperationError::input(error)
            .hint("bounds of policies by a model are derived by `tailwright explain NAME … --model MODEL`")
    })?;
    let preemptive = policy.servers.iter().any(|server| server.enforcement.is_none());
    Ok(PlanningRecipe { preemptive, ..PlanningRecipe::of(method) })
}
