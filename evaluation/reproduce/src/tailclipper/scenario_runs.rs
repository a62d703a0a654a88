//! All variants of a scenario, addressed by their values on its axes, and the figures that claims are about.

use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::FigureSeries;
use scenario::ScenarioRun;
use sim::engine::{Estimate, Histogram, Measures, SLOWDOWN_UNIT, SimulationReport};
use units::Percentile;

/// Takes one number from a replication, in the unit of its axis.
pub(super) type Measure = fn(&Measures) -> Option<f64>;

/// Values on some axes of a scenario, each with the name of its axis.
pub(super) type VariantChoices<'a> = [(&'a str, &'a str)];

/// The runs of all variants of a scenario.
pub(super) struct ScenarioRuns(Vec<ScenarioRun>);

impl ScenarioRuns {
    /// Runs a scenario that is part of the program.
    pub(super) fn run_scenario(context: &Context, name: &str, text: &str) -> Result<Self, FigureError> {
        context.run_variants(&embedded_scenario(name, text)?).map(Self)
    }

    /// The report of the first variant with all of these values. `None` when its queues grow without bound, so that its
    /// numbers mean nothing.
    fn stable_report(&self, choices: &VariantChoices) -> Option<&SimulationReport> {
        let has_all = |run: &&ScenarioRun| choices.iter().all(|(axis, value)| run.choice(axis) == *value);
        self.0.iter().find(has_all).filter(|run| run.is_stable()).map(|run| &run.report)
    }

    /// The values of an axis in the order of the scenario file.
    pub(super) fn values(&self, axis: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for run in &self.0 {
            let value = run.choice(axis);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// A measure of the variant with these values.
    pub(super) fn estimate(&self, choices: &VariantChoices, measure: Measure) -> Option<Estimate> {
        self.stable_report(choices)?.estimate(measure)
    }

    /// The relative change of a measure from `base` to `changed` on an axis, all other values being `choices`.
    pub(super) fn change(
        &self,
        choices: &VariantChoices,
        axis: &str,
        [changed, base]: [&str; 2],
        measure: Measure,
    ) -> Option<Estimate> {
        let changed = self.stable_report(&[choices, &[(axis, changed)]].concat())?;
        let base = self.stable_report(&[choices, &[(axis, base)]].concat())?;
        changed.change(base, measure)
    }

    /// A series for each value of the axis `legend`, over the axis `x`, whose values are numbers.
    pub(super) fn series_by(
        &self,
        choices: &VariantChoices,
        x: &str,
        legend: &str,
        measure: Measure,
    ) -> Vec<FigureSeries> {
        let mut series = Vec::new();
        for name in self.values(legend) {
            let points = self.points(&[choices, &[(legend, name)]].concat(), x, measure);
            series.push(FigureSeries::new(name, points));
        }
        series
    }

    /// A measure over an axis whose values are numbers.
    pub(super) fn points(&self, choices: &VariantChoices, x: &str, measure: Measure) -> Vec<(f64, f64)> {
        self.points_over(x, |at_x| self.estimate(&[choices, &[at_x]].concat(), measure))
    }

    /// The relative change of a measure over the axis `x`, whose values are numbers; see [`Self::change`].
    pub(super) fn change_points(
        &self,
        choices: &VariantChoices,
        x: &str,
        axis: &str,
        pair: [&str; 2],
        measure: Measure,
    ) -> Vec<(f64, f64)> {
        self.points_over(x, |at_x| self.change(&[choices, &[at_x]].concat(), axis, pair, measure))
    }

    /// Points over an axis whose values are numbers, where there are estimates.
    fn points_over(&self, x: &str, estimate: impl Fn((&str, &str)) -> Option<Estimate>) -> Vec<(f64, f64)> {
        let mut points = Vec::new();
        for value in self.values(x) {
            if let (Ok(coordinate), Some(estimate)) = (value.parse(), estimate((x, value))) {
                points.push((coordinate, estimate.value));
            }
        }
        points
    }
}

/// The 99th percentile, seconds.
pub(super) fn p99(measures: &Measures) -> Option<f64> {
    percentile(&measures.response).map(|ns| ns / 1e9)
}

/// The 99th percentile of the requests with the least demand, seconds.
pub(super) fn shortest_p99(measures: &Measures) -> Option<f64> {
    percentile(&measures.shortest).map(|ns| ns / 1e9)
}

/// The 99th percentile of time in the system ÷ demand.
pub(super) fn slowdown_p99(measures: &Measures) -> Option<f64> {
    percentile(&measures.slowdown).map(|units| units * SLOWDOWN_UNIT)
}

/// The mean latency, seconds.
pub(super) fn mean(measures: &Measures) -> Option<f64> {
    measures.response.mean().map(|ns| ns / 1e9)
}

/// The share of requests that are complete in another position than in the ideal order.
pub(super) fn reordering(measures: &Measures) -> Option<f64> {
    measures.displaced_pct().map(|percent| percent / 100.0)
}

/// Completions per second while requests arrive.
pub(super) fn throughput(measures: &Measures) -> Option<f64> {
    measures.throughput_per_s()
}

fn percentile(histogram: &Histogram) -> Option<f64> {
    Some(histogram.percentile(Percentile::new(99.0)?)?.0 as f64)
}

/// Returns the abscissa at which a rising curve first exceeds `limit`, interpolated linearly; `None` if it
/// stays below.
pub(super) fn exceeds(points: &[(f64, f64)], limit: f64) -> Option<f64> {
    let above = points.iter().position(|(_, y)| *y > limit)?;
    let Some(before) = above.checked_sub(1) else { return Some(points[0].0) };
    let (x0, y0) = points[before];
    let (x1, y1) = points[above];
    Some(x0 + (x1 - x0) * (limit - y0) / (y1 - y0))
}

#[cfg(test)]
mod tests {
    use super::exceeds;

    #[test]
    fn a_limit_is_exceeded_between_two_points() {
        let points = [(100.0, 1.0), (200.0, 2.0), (300.0, 4.0)];
        assert_eq!(exceeds(&points, 3.0), Some(250.0));
        assert_eq!((exceeds(&points, 0.5), exceeds(&points, 5.0)), (Some(100.0), None));
    }
}
