//! Figure 1: the mean latency over mean and variance of the service time at 100 requests/s, with the points A, B and C.

use super::pollaczek_khinchin::mean_latency;
use crate::claim::{Claim, Expected, format_change, format_share, format_time, to_seconds};
use crate::context::{Context, FigureError, embedded_scenario};
use crate::figure::{AxisQuantity, FigureAxis, FigurePlot, FigureSeries, ReproducedFigure};
use scenario::ScenarioRun;
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/variability-fig-1.toml");
/// The arrival rate, per second.
const RATE: f64 = 100.0;
/// The mean latency on the black line of the figure, seconds.
const LINE: f64 = 5e-3;
/// Share by which the latency of C is lower than that of A: "almost 30 %".
const LOWER: f64 = 0.3;

/// Mean and variance of the service time: a point of the map.
#[derive(Clone, Copy)]
struct ServiceMoments {
    mean_ms: f64,
    variance_ms2: f64,
}

impl ServiceMoments {
    /// Reads the value of a run on the axis `service`, such as `A: 2 ms, 44 ms²`, or the same without a letter.
    fn of_run(run: &ScenarioRun) -> Option<Self> {
        let name = run.choice("service");
        let numbers = name.split_once(": ").map_or(name, |(_, numbers)| numbers);
        let (mean, variance) = numbers.split_once(", ")?;
        let mean_ms = mean.strip_suffix(" ms")?.parse().ok()?;
        let variance_ms2 = variance.strip_suffix(" ms²")?.parse().ok()?;
        Some(Self { mean_ms, variance_ms2 })
    }

    /// The mean latency by Eq. 3, seconds.
    fn mean_latency(self) -> f64 {
        mean_latency(RATE, self.mean_ms / 1e3, self.variance_ms2 / 1e6)
    }
}

/// The variance, ms², at which Eq. 3 gives this mean latency, seconds. Eq. 3 is linear in the variance.
fn variance_for(latency: f64, mean_ms: f64) -> f64 {
    let without_variance = ServiceMoments { mean_ms, variance_ms2: 0.0 }.mean_latency();
    let slope = ServiceMoments { mean_ms, variance_ms2: 1.0 }.mean_latency() - without_variance;
    (latency - without_variance) / slope
}

/// A point of the map, and the simulated mean latency there, seconds.
type SimulatedMean = (ServiceMoments, Estimate);

pub(super) fn run(context: &Context) -> Result<ReproducedFigure, FigureError> {
    let runs = context.run_variants(&embedded_scenario("variability-fig-1.toml", SCENARIO)?)?;
    let grid = grid_means(&runs);
    Ok(ReproducedFigure {
        reading: format!(
            "One worker, first come, first served, Poisson arrivals, service hyperexponential with two phases. The map is \
             drawn as lines of equal latency. The coordinates of A, B and C are not in the text. C has the mean of A, \
             and 30 % less than 5 ms is possible for every mean up to {:.2} ms, where the variance of C would be \
             that of an exponential law, the least that such a law has. Read as A at 2 ms and 44 ms² and B at 3 ms \
             and 19 ms², both on the line by Eq. 3; C at 2 ms and the variance that makes it 30 % lower, 20 ms².",
            largest_mean()
        ),
        plots: vec![plot(&runs, &grid)],
        claims: claims(&runs, &grid).unwrap_or_default(),
    })
}

/// The simulated means at the points of the grid, which have no letter.
fn grid_means(runs: &[ScenarioRun]) -> Vec<SimulatedMean> {
    let mut means = Vec::new();
    for run in runs.iter().filter(|run| !run.choice("service").contains(':')) {
        if let (Some(point), Some(mean)) = (ServiceMoments::of_run(run), run.report.mean()) {
            means.push((point, to_seconds(mean)));
        }
    }
    means
}

/// The largest mean service time, ms, with which the latency can be 30 % below the line when the squared coefficient of
/// variation is at least 1. The least latency is that of exponential service, for a mean of m: 1/(1/m − λ).
fn largest_mean() -> f64 {
    1e3 / (RATE + 1.0 / (LINE * (1.0 - LOWER)))
}

fn plot(runs: &[ScenarioRun], grid: &[SimulatedMean]) -> FigurePlot {
    let mut lines: Vec<FigureSeries> = [3.0, 4.0, 5.0, 6.0, 8.0].into_iter().map(equal_latency).collect();
    lines.push(FigureSeries::new("5 ms, simulated", simulated_line(grid)));
    for run in runs {
        if let (Some((name, _)), Some(point)) =
            (run.choice("service").split_once(':'), ServiceMoments::of_run(run))
        {
            lines.push(FigureSeries::new(name, [(point.mean_ms / 1e3, point.variance_ms2)]));
        }
    }
    FigurePlot {
        title: "Lines of equal mean latency by Eq. 3".to_owned(),
        x: FigureAxis::linear("mean of the service time", AxisQuantity::Seconds),
        y: FigureAxis::linear("variance of the service time, ms²", AxisQuantity::Number),
        lines,
    }
}

/// Returns the curve of a mean latency by Eq. 3: means from 0.5 ms to where the variance is zero.
fn equal_latency(latency_ms: f64) -> FigureSeries {
    let points = (10..=100).map(|step| 0.05 * f64::from(step));
    let points = points.map(|mean_ms| (mean_ms / 1e3, variance_for(latency_ms / 1e3, mean_ms)));
    FigureSeries::new(format!("{latency_ms} ms"), points.filter(|(_, variance)| *variance >= 0.0))
}

/// Returns the curve of a simulated mean latency of 5 ms, interpolated linearly between two variances of the
/// grid.
fn simulated_line(grid: &[SimulatedMean]) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for pair in grid.windows(2) {
        let [(a, low), (b, high)] = pair else { continue };
        if a.mean_ms.total_cmp(&b.mean_ms).is_eq() && low.value <= LINE && LINE < high.value {
            let share = (LINE - low.value) / (high.value - low.value);
            points.push((a.mean_ms / 1e3, a.variance_ms2 + share * (b.variance_ms2 - a.variance_ms2)));
        }
    }
    points
}

fn claims(runs: &[ScenarioRun], grid: &[SimulatedMean]) -> Option<Vec<Claim>> {
    let [a, b, c] = ['A', 'B', 'C'].map(|letter| run_with_letter(runs, letter));
    let a = a?;
    let b = b?;
    let c = c?;
    let on_the_line = Expected::About { value: LINE, within: 0.01 };
    let almost = Expected::About { value: -LOWER, within: 0.1 };
    let mean_a = to_seconds(a.report.mean()?);
    let mean_b = to_seconds(b.report.mean()?);
    let change = c.report.change(&a.report, |run| run.response.mean())?;
    let higher_mean = "B is on it with a higher mean and a lower variance";
    let lower = "C, with the mean of A and less variance, is almost 30 % lower";
    let open = "the coordinates of A, B and C are not in the text: these are one reading of many";
    Some(vec![
        formula_claim(grid)?,
        Claim::new("A is on the line of 5 ms", on_the_line, mean_a, format_time).underspecified(open),
        Claim::new(higher_mean, on_the_line, mean_b, format_time).underspecified(open),
        Claim::new(lower, almost, change, format_change).underspecified(open),
    ])
}

fn run_with_letter(runs: &[ScenarioRun], letter: char) -> Option<&ScenarioRun> {
    runs.iter().find(|run| run.choice("service").starts_with(letter))
}

/// The claim that Eq. 3 holds, at the point of the grid where it is farthest from the simulation.
fn formula_claim(grid: &[SimulatedMean]) -> Option<Claim> {
    let errors = grid.iter().map(|(point, found)| {
        let formula = point.mean_latency();
        Estimate { value: (found.value / formula - 1.0).abs(), half_width: found.half_width / formula }
    });
    let worst = errors.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let statement = format!("Eq. 3 gives the mean at each of {} points of the map, to 2 %", grid.len());
    Some(Claim::new(&statement, Expected::AtMost(0.02), worst, format_share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_where_the_reading_says() {
        for (mean, variance) in [(2.0, 44.0), (3.0, 19.0)] {
            assert!(
                (variance_for(LINE, mean) / variance - 1.0).abs() < 0.001,
                "{}",
                variance_for(LINE, mean)
            );
        }
        assert!((variance_for(LINE * (1.0 - LOWER), 2.0) - 20.0).abs() < 0.01);
        let most = largest_mean();
        let exponential = ServiceMoments { mean_ms: most, variance_ms2: most * most };
        assert!((exponential.mean_latency() / (LINE * (1.0 - LOWER)) - 1.0).abs() < 1e-9);
    }
}
