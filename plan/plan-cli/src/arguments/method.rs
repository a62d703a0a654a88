//! Options of planning: method, order, effort.

use clap::{Args, ValueEnum};
use model::OperationError;
use placement::LimitMethod;
use plan::planning::{Placing, PlanningRecipe, RecipeError, RecipeSettings, parse_method};
use std::num::NonZeroUsize;
use std::time::Duration;
use units::Nanos;

/// In which order workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderChoice {
    /// First fit in order of arrival.
    Given,
    /// Whatever uses fewest servers: several orders and a local search.
    Best,
}

/// Planning method and effort of the search.
#[derive(Debug, Clone, Args)]
pub(crate) struct MethodArgs {
    /// Method of choosing limits: tailwright, or a published method to compare with (workload-compactor,
    /// effective-bandwidth, effective-bandwidth-even, knee, average-1.5, average-K).
    #[arg(long = "method", alias = "policy", value_name = "METHOD", default_value = "tailwright", value_parser = parse_method)]
    policy: LimitMethod,
    /// Order of placement (default: best for tailwright, given for the others).
    #[arg(long, value_enum)]
    order: Option<OrderChoice>,
    /// Skip servers that look full at the rates in force (not for tailwright).
    #[arg(long)]
    fast_first_fit: bool,
    /// Reduce curves to this many segments, cut at 30 s of burst (workload-compactor only; default 12).
    #[arg(long, value_name = "N", value_parser = cli::quantities::at_least_one)]
    segments: Option<NonZeroUsize>,
    /// Maximum number of trials of the packing search (default: by the number of workloads); the same effort
    /// gives the same plan.
    #[arg(long, value_name = "TRIALS")]
    effort: Option<u64>,
    /// End the search after this time with the best so far, such as 10s; such a plan may differ from run
    /// to run.
    #[arg(long, value_name = "TIME")]
    time_budget: Option<Nanos>,
    /// For servers that interrupt what they have begun: bounds by the published formula. No real server does: such bounds
    /// are for comparison, and what the policy promises does not hold.
    #[arg(long)]
    preemptive: bool,
}

impl MethodArgs {
    /// Returns true if bounds are those of preemptive servers.
    pub(crate) fn is_preemptive(&self) -> bool {
        self.preemptive
    }

    /// The recipe that these flags ask for, or which of them contradict each other.
    pub(crate) fn recipe(&self) -> Result<PlanningRecipe, OperationError> {
        let settings = RecipeSettings {
            method: self.policy,
            placing: self.order.map(|order| match order {
                OrderChoice::Given => Placing::FirstFit,
                OrderChoice::Best => Placing::FewestServers,
            }),
            skip_full: self.fast_first_fit,
            segments: self.segments,
            effort: self.effort,
            preemptive: self.preemptive,
            time_budget: self.time_budget.map(|Nanos(ns)| Duration::from_nanos(ns)),
        };
        PlanningRecipe::with(&settings).map_err(contradiction)
    }
}

/// The settings that do not go together, as flags.
fn contradiction(error: RecipeError) -> OperationError {
    let (message, hint) = match error {
        RecipeError::SkipFullWithSearchedLimits => (
            "--fast-first-fit does not go with --method tailwright",
            "it is a rule of the published methods, such as --method workload-compactor",
        ),
        RecipeError::SkipFullWithFewestServers => (
            "--fast-first-fit does not go with --order best",
            "it places in the order of arrival; leave --order out",
        ),
        RecipeError::SearchLimitsWithFirstFit => (
            "--effort and --time-budget do not go with placing in the order of arrival",
            "they limit the search for fewer servers, --order best",
        ),
        RecipeError::SegmentsWithExactCurves => {
            ("--segments goes with --method workload-compactor only", "the other methods use exact curves")
        }
    };
    OperationError::input(message).hint(hint)
}
