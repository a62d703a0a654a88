//! Figures 8 and 9: tails, reordering and means over the rate, for four distributions of demands.

use super::comparison_claims::{ComparisonClaim, FAIR, LIMITED, ROUND_ROBIN, compare, within_a_twentieth};
use super::scenario_runs::{Measure, ScenarioRuns, exceeds, mean, p99, reordering};
use super::setting::{COSTS_OF_CFS, COSTS_UNKNOWN, DIRECTION_OF_COSTS, MORE_BY_AGE, SETTING};
use crate::claim::{Claim, ClaimSource, Expected, format_change, format_number, format_share, format_time};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, ReproducedFigure};
use sim::engine::Estimate;

const TAILS: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-8.toml");
const MEANS: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-9.toml");
const LENGTH: &str = "60 s of arrivals from an empty system at every rate: beyond what the workers can do nothing is \
    stationary, and the figures are those of exactly these requests.";

pub(crate) fn tails(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-8.toml", TAILS)?;
    let p99_axis = FigureAxis::log("99th percentile", AxisQuantity::Seconds);
    let reordering_axis = FigureAxis::linear("reordered requests", AxisQuantity::Share);
    let mut plots = plots_by_law(&runs, "99th percentile", &p99_axis, p99);
    plots.extend(plots_by_law(&runs, "reordering", &reordering_axis, reordering));
    let mut claims = compare(&runs, &TAIL_CLAIMS);
    claims.extend(fixed_claims(&runs));
    claims.extend(log_normal_claims(&runs));
    claims.extend(trimodal_claim(&runs));
    Ok(ReproducedFigure { reading: format!("{SETTING} {LENGTH}"), plots, claims })
}

pub(crate) fn means(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = ScenarioRuns::run_scenario(context, "tailclipper-fig-9.toml", MEANS)?;
    let mean_axis = FigureAxis::log("mean latency", AxisQuantity::Seconds);
    let plots = plots_by_law(&runs, "mean", &mean_axis, mean);
    let claims = compare(&runs, &MEAN_CLAIMS);
    Ok(ReproducedFigure { reading: format!("{SETTING} {LENGTH}"), plots, claims })
}

fn plots_by_law(runs: &ScenarioRuns, what: &str, y: &FigureAxis, measure: Measure) -> Vec<FigurePlot> {
    let mut plots = Vec::new();
    for law in runs.values("law") {
        let x = FigureAxis::linear("requests/s", AxisQuantity::PerSecond);
        let series = runs.series_by(&[("law", law)], "rate", "scheduler", measure);
        plots.push(FigurePlot::new(format!("{law}: {what}"), x, y.clone(), series));
    }
    plots
}

const EXP_400: &[(&str, &str)] = &[("law", "exponential"), ("rate", "400")];
const EXP_450: &[(&str, &str)] = &[("law", "exponential"), ("rate", "450")];
const EXP_500: &[(&str, &str)] = &[("law", "exponential"), ("rate", "500")];
const EXP_250: &[(&str, &str)] = &[("law", "exponential"), ("rate", "250")];
const EXP_350: &[(&str, &str)] = &[("law", "exponential"), ("rate", "350")];
const LOG_NORMAL_400: &[(&str, &str)] = &[("law", "log-normal"), ("rate", "400")];
const TRIMODAL_450: &[(&str, &str)] = &[("law", "trimodal"), ("rate", "450")];

/// A claim of the paper that leaves nothing open.
const fn claim(
    statement: &'static str,
    expected: Expected,
    choices: &'static [(&'static str, &'static str)],
    pair: [&'static str; 2],
    measure: Measure,
) -> ComparisonClaim {
    let source = ClaimSource::Paper;
    ComparisonClaim { statement, expected, choices, pair, measure, source, open: None, why: "" }
}

/// A claim of the paper about a direction that costs decide.
const fn open_direction(
    statement: &'static str,
    expected: Expected,
    choices: &'static [(&'static str, &'static str)],
    pair: [&'static str; 2],
    open: &'static str,
) -> ComparisonClaim {
    ComparisonClaim { open: Some(open), ..claim(statement, expected, choices, pair, mean) }
}

/// Our conjecture that age adds at most 5 % to the effect of the cap: in prototypes it added 1 to 5 % in a chain.
const fn little_by_age(
    statement: &'static str,
    choices: &'static [(&'static str, &'static str)],
    measure: Measure,
) -> ComparisonClaim {
    let claim = claim(statement, Expected::AtLeast(-0.05), choices, LIMITED, measure);
    ComparisonClaim { source: ClaimSource::Ours, why: MORE_BY_AGE, ..claim }
}

const TAIL_CLAIMS: [ComparisonClaim; 11] = [
    ComparisonClaim {
        open: Some(COSTS_UNKNOWN),
        ..claim(
            "exponential, 400/s: P99 −81 % against Shinjuku",
            Expected::About { value: -0.81, within: 0.05 },
            EXP_400,
            ROUND_ROBIN,
            p99,
        )
    },
    claim("exponential, 400/s: P99 lower than Shinjuku's", Expected::Negative, EXP_400, ROUND_ROBIN, p99),
    little_by_age("exponential, 400/s: age adds at most 5 % to the cap", EXP_400, p99),
    claim("exponential, 450/s: P99 lowest, against Shinjuku", Expected::Negative, EXP_450, ROUND_ROBIN, p99),
    claim("exponential, 450/s: P99 lowest, against CFS", Expected::Negative, EXP_450, FAIR, p99),
    claim("exponential, 500/s: P99 lowest, against Shinjuku", Expected::Negative, EXP_500, ROUND_ROBIN, p99),
    claim("exponential, 500/s: P99 lowest, against CFS", Expected::Negative, EXP_500, FAIR, p99),
    claim(
        "log-normal, 400/s: P99 lower than Shinjuku's",
        Expected::Negative,
        LOG_NORMAL_400,
        ROUND_ROBIN,
        p99,
    ),
    little_by_age("log-normal, 400/s: age adds at most 5 % to the cap", LOG_NORMAL_400, p99),
    claim("trimodal, 450/s: P99 lower than Shinjuku's", Expected::Negative, TRIMODAL_450, ROUND_ROBIN, p99),
    little_by_age("trimodal, 450/s: age adds at most 5 % to the cap", TRIMODAL_450, p99),
];

const MEAN_CLAIMS: [ComparisonClaim; 9] = [
    ComparisonClaim {
        open: Some(COSTS_UNKNOWN),
        ..claim(
            "exponential, 350/s: mean −54 % against Shinjuku",
            Expected::About { value: -0.54, within: 0.05 },
            EXP_350,
            ROUND_ROBIN,
            mean,
        )
    },
    open_direction(
        "exponential, 350/s: mean lower than Shinjuku's",
        Expected::Negative,
        EXP_350,
        ROUND_ROBIN,
        DIRECTION_OF_COSTS,
    ),
    little_by_age("exponential, 350/s: age adds at most 5 % to the cap", EXP_350, mean),
    ComparisonClaim {
        open: Some(COSTS_UNKNOWN),
        ..claim(
            "exponential, 250/s: mean −11 % against Shinjuku",
            Expected::About { value: -0.11, within: 0.05 },
            EXP_250,
            ROUND_ROBIN,
            mean,
        )
    },
    open_direction(
        "exponential, 250/s: mean lower than Shinjuku's",
        Expected::Negative,
        EXP_250,
        ROUND_ROBIN,
        DIRECTION_OF_COSTS,
    ),
    open_direction(
        "exponential, 450/s: mean lowest, against Shinjuku",
        Expected::Negative,
        EXP_450,
        ROUND_ROBIN,
        DIRECTION_OF_COSTS,
    ),
    open_direction(
        "exponential, 450/s: mean lowest, against CFS",
        Expected::Negative,
        EXP_450,
        FAIR,
        COSTS_OF_CFS,
    ),
    open_direction(
        "exponential, 450/s: CFS has a higher mean than Shinjuku",
        Expected::Positive,
        EXP_450,
        ["fair", "round-robin"],
        COSTS_OF_CFS,
    ),
    open_direction(
        "log-normal, 350/s: mean not above Shinjuku's",
        Expected::AtMost(0.0),
        &[("law", "log-normal"), ("rate", "350")],
        ROUND_ROBIN,
        DIRECTION_OF_COSTS,
    ),
];

/// The latency that the paper asks of the 99th percentile, seconds.
const TARGET: f64 = 1.0;

/// Claims with fixed demands: the rate beyond which each scheduler exceeds the target, and the largest
/// reordering of ORF.
fn fixed_claims(runs: &ScenarioRuns) -> Vec<Claim> {
    let above = Expected::AtLeast(TARGET);
    let shinjuku = "fixed: Shinjuku's P99 exceeds 1 s beyond 450/s, at 500/s";
    let cfs = "fixed: CFS's P99 exceeds 1 s beyond 450/s, at 500/s";
    let orf = "fixed: ORF's P99 exceeds 1 s only beyond 600/s";
    let claims = [
        fixed_p99_claim(runs, shinjuku, above, "round-robin", "500"),
        fixed_p99_claim(runs, cfs, above, "fair", "500"),
        fixed_p99_claim(runs, orf, Expected::AtMost(TARGET), "orf", "600"),
        fixed_reordering_claim(runs),
    ];
    claims.into_iter().flatten().collect()
}

fn fixed_p99_claim(
    runs: &ScenarioRuns,
    statement: &str,
    expected: Expected,
    scheduler: &str,
    rate: &str,
) -> Option<Claim> {
    let found = runs.estimate(&[("law", "fixed"), ("scheduler", scheduler), ("rate", rate)], p99)?;
    Some(Claim::new(statement, expected, found, format_time).underspecified(COSTS_UNKNOWN))
}

fn fixed_reordering_claim(runs: &ScenarioRuns) -> Option<Claim> {
    let estimates = runs.values("rate").into_iter().filter_map(|rate| {
        runs.estimate(&[("law", "fixed"), ("scheduler", "orf"), ("rate", rate)], reordering)
    });
    let most = estimates.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let statement = "fixed: ORF reorders at most 25 % at any rate";
    let claim = Claim::new(statement, Expected::AtMost(0.25), most, format_share);
    Some(claim.remark("other work reorders in the last tier, too, whatever the scheduler there does"))
}

/// Returns the claims about the load that the target allows with log-normal demands.
fn log_normal_claims(runs: &ScenarioRuns) -> Vec<Claim> {
    let (Some(orf), Some(round_robin)) =
        (log_normal_rate_at_target(runs, "orf"), log_normal_rate_at_target(runs, "round-robin"))
    else {
        return Vec::new();
    };
    let ratio = orf / round_robin;
    let beyond_400 = "log-normal: ORF's P99 exceeds 1 s only beyond 400/s";
    let sixty_percent = "log-normal: 1.6 × the load of Shinjuku within 1 s";
    let more = "log-normal: more load than Shinjuku";
    vec![
        Claim::exact(beyond_400, Expected::AtLeast(400.0), orf, |rate| format!("{rate:.0}/s")),
        Claim::exact(sixty_percent, within_a_twentieth(1.6), ratio, format_number)
            .underspecified(COSTS_UNKNOWN),
        Claim::exact(more, Expected::AtLeast(1.0), ratio, format_number),
    ]
}

/// The rate from which on the 99th percentile exceeds the target with log-normal demands, requests per second.
fn log_normal_rate_at_target(runs: &ScenarioRuns, scheduler: &str) -> Option<f64> {
    let points = runs.points(&[("law", "log-normal"), ("scheduler", scheduler)], "rate", p99);
    exceeds(&points, TARGET)
}

/// The largest reduction by ORF at a rate at which it keeps the target, with trimodal demands.
fn trimodal_claim(runs: &ScenarioRuns) -> Option<Claim> {
    let mut best: Option<Estimate> = None;
    for rate in runs.values("rate") {
        let choices = [("law", "trimodal"), ("rate", rate)];
        let tail = runs.estimate(&[&choices[..], &[("scheduler", "orf")]].concat(), p99);
        if !tail.is_some_and(|tail| tail.value <= TARGET) {
            continue;
        }
        let Some(change) = runs.change(&choices, "scheduler", ROUND_ROBIN, p99) else { continue };
        if best.is_none_or(|best| change.value.total_cmp(&best.value).is_lt()) {
            best = Some(change);
        }
    }
    let statement = "trimodal: P99 −76 % against Shinjuku where ORF's is within 1 s";
    let claim = Claim::new(statement, within_a_twentieth(-0.76), best?, format_change);
    Some(claim.underspecified(COSTS_UNKNOWN))
}
