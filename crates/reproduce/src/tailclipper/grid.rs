//! All variants of a scenario, found by what they have on the axes.

use crate::context::{Context, FigureError, embedded};
use crate::figure::Line;
use scenario::ScenarioRun;
use sim::engine::{Estimate, Histogram, Measures, SLOWDOWN_UNIT, SimulationReport};
use units::Percentile;

/// A figure of a replication, in the unit of its axis.
pub(super) type Measure = fn(&Measures) -> Option<f64>;

/// What a variant has on some axes.
pub(super) type At<'a> = [(&'a str, &'a str)];

/// All variants that were run.
pub(super) struct Grid(Vec<ScenarioRun>);

impl Grid {
    /// Runs a scenario that is part of the program.
    pub(super) fn play(context: &Context, name: &str, text: &str) -> Result<Self, FigureError> {
        context.play(&embedded(name, text)?).map(Self)
    }

    /// The first variant with all of these.
    fn run(&self, at: &At) -> Option<&ScenarioRun> {
        self.0.iter().find(|run| at.iter().all(|(axis, value)| run.choice(axis) == *value))
    }

    /// The report of a variant, if its figures mean anything.
    fn report(&self, at: &At) -> Option<&SimulationReport> {
        self.run(at).filter(|run| run.is_stable()).map(|run| &run.report)
    }

    /// What an axis has, in the order of the file.
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

    /// A figure of a variant.
    pub(super) fn estimate(&self, at: &At, measure: Measure) -> Option<Estimate> {
        self.report(at)?.estimate(measure)
    }

    /// How much larger a figure is with `of` than with `base` on an axis, all else as `at`.
    pub(super) fn change(
        &self,
        at: &At,
        axis: &str,
        [of, base]: [&str; 2],
        measure: Measure,
    ) -> Option<Estimate> {
        let with = |value| self.report(&[at, &[(axis, value)]].concat());
        with(of)?.change(with(base)?, measure)
    }

    /// A line for each value of an axis, against another whose values are numbers.
    pub(super) fn lines(&self, at: &At, x: &str, series: &str, measure: Measure) -> Vec<Line> {
        let line = |name: &str| Line::new(name, self.points(&[at, &[(series, name)]].concat(), x, measure));
        self.values(series).into_iter().map(line).collect()
    }

    /// A figure against an axis whose values are numbers.
    pub(super) fn points(&self, at: &At, x: &str, measure: Measure) -> Vec<(f64, f64)> {
        let point = |value: &str| {
            let estimate = self.estimate(&[at, &[(x, value)]].concat(), measure)?;
            Some((value.parse().ok()?, estimate.value))
        };
        self.values(x).into_iter().filter_map(point).collect()
    }

    /// The change of a figure against an axis whose values are numbers.
    pub(super) fn changes(
        &self,
        at: &At,
        x: &str,
        axis: &str,
        pair: [&str; 2],
        measure: Measure,
    ) -> Vec<(f64, f64)> {
        let point = |value: &str| {
            let change = self.change(&[at, &[(x, value)]].concat(), axis, pair, measure)?;
            Some((value.parse().ok()?, change.value))
        };
        self.values(x).into_iter().filter_map(point).collect()
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

/// Mean latency, seconds.
pub(super) fn mean(measures: &Measures) -> Option<f64> {
    measures.response.mean().map(|ns| ns / 1e9)
}

/// Share of requests that are complete in another position than in the ideal order.
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

/// Where a rising line first exceeds `limit`, on straight lines between its points; none when it stays below.
pub(super) fn exceeds(points: &[(f64, f64)], limit: f64) -> Option<f64> {
    let above = points.iter().position(|(_, y)| *y > limit)?;
    let Some(before) = above.checked_sub(1) else { return Some(points[0].0) };
    let ((x0, y0), (x1, y1)) = (points[before], points[above]);
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
