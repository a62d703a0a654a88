//! Figure 7: two call chains of a trace, by the laws that section 5.3 prints of them.

use super::comparison_claims::{FAIR, LIMITED, ROUND_ROBIN, within_a_twentieth};
use super::scenario_runs::{Measure, ScenarioRuns, p99, reordering};
use super::setting::{MORE_BY_AGE, SETTING};
use crate::claim::{Claim, Expected, format_change};
use crate::context::{Context, FigureError};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use sim::engine::Estimate;

const RATES: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-7.toml");
const OPEN: &str = include_str!("../../../../examples/scenarios/tailclipper-fig-7-open.toml");
const READING: &str = "But for the times: the trace is not ours, and laws stand for it. Chain 1: a first tier of a mean of 9 ms, about \
    normal, whose standard deviation is not printed (1, 2 or 3 ms; Erlang, which has the same mean and variance, and \
    nothing below zero), a second one of 5 ms with a standard deviation of 4 ms (log-normal), a third one of 0.5 to 1 ms \
    (uniform). Chain 2: first and third tier as the third of chain 1, a second one of 4 or 35 ms, of which 10, 20 or \
    40 % are long; the shares are not printed. Tiers are independent of each other. What three cores are is read in \
    three ways: three processors with half of all these times, as in the other figures; six processors (logical ones) \
    with the times as printed; three processors with the times as printed, for which 300 requests/s are 90 % of what \
    chain 1's first tier can do before costs and other work. Plots by rate have 2 ms and 20 %. 60 s of arrivals from an \
    empty system.";

/// Cause of the differences in size.
const SIZE_UNKNOWN: &str = "decided by what three cores are, by the spread of the times that the text leaves out, and by what \
    a change of request costs";
/// Why claims for chain 2 may be otherwise.
const LONG_AND_SHORT: &str = "what a scheduler does with short requests behind long ones depends on the share of these, \
    which is not printed, and on how many processors are left";

/// Why claims about CFS may be otherwise.
const FEWER_SLICES: &str = "CFS, as it was read, changes requests after a millisecond and has no dispatcher, ORF after 300 us with \
    one; where nearly no request waits, and where the processors can hardly do the work, these costs decide";

/// Readings of "three cores".
const PROCESSORS: [&str; 3] = ["three processors, half the means", "six processors", "three processors"];

/// One of the two call chains, at the rate in the text of the paper.
struct CallChain {
    name: &'static str,
    /// Unprinted quantity and its values here; the middle one is that of the plots by rate.
    open: &'static str,
    values: [&'static str; 3],
    unit: &'static str,
    printed: f64,
    printed_text: &'static str,
    /// Why the direction of a claim may be otherwise.
    why: &'static str,
}

const CHAINS: [CallChain; 2] = [
    CallChain {
        name: "chain 1",
        open: "standard deviation of the first tier, ms",
        values: ["1", "2", "3"],
        unit: "ms",
        printed: -0.52,
        printed_text: "P99 −52 % against Shinjuku at 300/s",
        why: "",
    },
    CallChain {
        name: "chain 2",
        open: "long requests, %",
        values: ["10", "20", "40"],
        unit: "%",
        printed: -0.09,
        printed_text: "P99 −9 % against Shinjuku at 200/s",
        why: LONG_AND_SHORT,
    },
];

pub(crate) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let by_rate = ScenarioRuns::run_scenario(context, "tailclipper-fig-7.toml", RATES)?;
    let by_value = ScenarioRuns::run_scenario(context, "tailclipper-fig-7-open.toml", OPEN)?;
    let mut plots = Vec::new();
    let mut claims = Vec::new();
    for chain in &CHAINS {
        for case in by_rate.values("case").into_iter().filter(|case| case.starts_with(chain.name)) {
            plots.push(rate_plot(&by_rate, case));
        }
        plots.push(change_plot(&by_value, chain, ROUND_ROBIN, "Shinjuku"));
        plots.push(change_plot(&by_value, chain, LIMITED, "the cap without age"));
        for processors in PROCESSORS {
            claims.extend(chain_claims(&by_value, chain, processors));
        }
    }
    claims.extend(PROCESSORS.into_iter().filter_map(|processors| smaller_claim(&by_value, processors)));
    Ok(ReproducedFigure { reading: format!("{SETTING} {READING}"), plots, claims })
}

fn rate_plot(runs: &ScenarioRuns, case: &str) -> FigurePlot {
    FigurePlot::new(
        format!("{case}: 99th percentile"),
        FigureAxis::linear("requests/s", AxisQuantity::PerSecond),
        FigureAxis::log("99th percentile", AxisQuantity::Seconds),
        runs.series_by(&[("case", case)], "rate", "scheduler", p99),
    )
}

/// Plots the change by ORF over the values of the unprinted quantity.
fn change_plot(runs: &ScenarioRuns, chain: &CallChain, pair: [&str; 2], against: &str) -> FigurePlot {
    let mut lines = Vec::new();
    for processors in PROCESSORS {
        let mut points = Vec::new();
        for value in chain.values {
            let found = chain.change(runs, value, processors, pair, p99);
            if let (Ok(value), Some(found)) = (value.parse(), found) {
                points.push((value, found.value));
            }
        }
        lines.push(FigureSeries::new(processors, points));
    }
    FigurePlot::new(
        format!("{}: change of the 99th percentile by ORF against {against}", chain.name),
        FigureAxis::linear(chain.open, AxisQuantity::Number),
        FigureAxis::linear("change", AxisQuantity::Share),
        lines,
    )
}

impl CallChain {
    /// The change of a measure from one scheduler to another, at the rate of the text.
    fn change(
        &self,
        runs: &ScenarioRuns,
        value: &str,
        processors: &str,
        pair: [&str; 2],
        measure: Measure,
    ) -> Option<Estimate> {
        let case = format!("{}, {value}; {processors}", self.name);
        runs.change(&[("case", &case)], "scheduler", pair, measure)
    }
}

fn chain_claims(runs: &ScenarioRuns, chain: &CallChain, processors: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for value in chain.values {
        let setting = format!("{}, {value} {}, {processors}", chain.name, chain.unit);
        let claim = |what: &str, expected: Expected, pair, measure| {
            let change = chain.change(runs, value, processors, pair, measure)?;
            Some(Claim::new(&format!("{setting}: {what}"), expected, change, format_change))
        };
        let size = claim(chain.printed_text, within_a_twentieth(chain.printed), ROUND_ROBIN, p99);
        claims.extend(size.map(|size| size.underspecified(SIZE_UNKNOWN)));
        let directions = [
            (claim("P99 lower than Shinjuku's", Expected::Negative, ROUND_ROBIN, p99), chain.why),
            (claim("P99 lower than CFS's", Expected::Negative, FAIR, p99), FEWER_SLICES),
            (
                claim("fewer are reordered than with Shinjuku", Expected::Negative, ROUND_ROBIN, reordering),
                chain.why,
            ),
        ];
        claims.extend(directions.into_iter().filter_map(|(direction, why)| Some(direction?.because(why))));
        let age = claim("age adds at most 5 % to the cap", Expected::AtLeast(-0.05), LIMITED, p99);
        claims.extend(age.map(|age| age.ours().because(MORE_BY_AGE)));
    }
    claims
}

/// The claim that the second chain gains less than the first one.
fn smaller_claim(runs: &ScenarioRuns, processors: &str) -> Option<Claim> {
    let [first, second] = &CHAINS;
    let of = |chain: &CallChain| chain.change(runs, chain.values[1], processors, ROUND_ROBIN, p99);
    let of_first = of(first)?;
    let of_second = of(second)?;
    // Requests differ between the chains, so that the intervals add up.
    let half_width = of_first.half_width + of_second.half_width;
    let difference = Estimate { value: of_second.value - of_first.value, half_width };
    let statement = format!("{processors}: P99 changes less in chain 2 (20 %) than in chain 1 (2 ms)");
    Some(Claim::new(&statement, Expected::Positive, difference, format_change).because(LONG_AND_SHORT))
}
