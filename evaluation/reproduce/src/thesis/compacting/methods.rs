//! Methods that choose limits, and the servers that each needs.

use super::sources::{CurveForm, DrawnWorkload, TraceSet};
use placement::{
    CurvePriorities, LimitMethod, Placement, PlacementOrder, PlanningProblem, SearchEffort, lower_bound,
    place, place_first_fit, place_whole_curves,
};

/// A method of the comparisons in chapter 5, or ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackingMethod {
    /// WorkloadCompactor: the linear program, first fit.
    Compactor,
    /// No bursts, and the split of the SLO that needs the least rate, first fit.
    EffectiveBandwidth,
    /// The knee of each curve, first fit.
    Knee,
    /// 1.5 times the mean rate, first fit.
    OneAndAHalfTimesAverage,
    /// Twice the mean rate, first fit.
    TwiceAverage,
    /// Several limiters at once with the conservative analysis of equal priorities (§5.4.7), first fit.
    SeveralLimiters,
    /// The search of this project.
    Tailwright,
}

/// The state of the art in §5.3.1.
pub(super) const STATE_OF_THE_ART: [PackingMethod; 4] = [
    PackingMethod::EffectiveBandwidth,
    PackingMethod::Knee,
    PackingMethod::OneAndAHalfTimesAverage,
    PackingMethod::TwiceAverage,
];

impl PackingMethod {
    /// The name in legends and claims.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Compactor => "WorkloadCompactor",
            Self::EffectiveBandwidth => "effective bandwidth",
            Self::Knee => "knee",
            Self::OneAndAHalfTimesAverage => "1.5 × average",
            Self::TwiceAverage => "2 × average",
            Self::SeveralLimiters => "several limiters",
            Self::Tailwright => "tailwright",
        }
    }

    /// Returns the number of servers for these workloads. Each workload that a method refuses counts as a server, the
    /// least that it could cost.
    pub(super) fn servers(self, set: &TraceSet, drawn: &[DrawnWorkload]) -> usize {
        let form = match self {
            Self::Compactor => CurveForm::Reduced,
            Self::Tailwright => CurveForm::Sustained,
            _ => CurveForm::Plain,
        };
        let problem = set.problem(drawn, form);
        let placement = match self {
            Self::SeveralLimiters => {
                let placement =
                    place_whole_curves(&problem, CurvePriorities::EqualsFirst, PlacementOrder::Given);
                return placement.servers.len() + placement.refused.len();
            }
            Self::Tailwright => best(&problem),
            Self::Compactor => first_fit(&problem, LimitMethod::Relaxed),
            Self::EffectiveBandwidth => first_fit(&problem, LimitMethod::EffectiveBest),
            Self::Knee => first_fit(&problem, LimitMethod::Knee),
            Self::OneAndAHalfTimesAverage => first_fit(&problem, LimitMethod::Average(1.5)),
            Self::TwiceAverage => first_fit(&problem, LimitMethod::Average(2.0)),
        };
        placement.servers.len() + placement.refused.len()
    }
}

/// First fit in the order of arrival.
pub(super) fn first_fit(problem: &PlanningProblem, method: LimitMethod) -> Placement {
    let order: Vec<usize> = (0..problem.workloads.len()).collect();
    place_first_fit(problem, method, &order, false)
}

fn best(problem: &PlanningProblem) -> Placement {
    let goal = lower_bound(problem, LimitMethod::Exact).servers;
    let effort = SearchEffort::for_workloads(problem.workloads.len());
    place(problem, LimitMethod::Exact, PlacementOrder::Best, effort, goal, &mut |_| true)
}
