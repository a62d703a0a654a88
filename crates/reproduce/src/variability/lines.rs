//! Figure 1: mean latency over mean and variance of the service time, at 100 requests/s; A, B and C on it.

use super::mean_latency;
use crate::claim::{Claim, Expected, change, seconds, time};
use crate::context::{Context, FigureError, embedded};
use crate::figure::{Axis, Figure, Line, Plot, Quantity};
use scenario::ScenarioRun;
use sim::engine::Estimate;

const SCENARIO: &str = include_str!("../../../../examples/scenarios/variability-fig-1.toml");
const RATE: f64 = 100.0;
/// The latency of the black line, seconds.
const LINE: f64 = 5e-3;
/// How much lower C is than A: "almost 30 %".
const LOWER: f64 = 0.3;

/// Mean of the service time, ms, and its variance, ms².
#[derive(Clone, Copy)]
struct Point {
    mean_ms: f64,
    variance_ms2: f64,
}

impl Point {
    /// From the name of a run: `A: 2 ms, 44 ms²`, or without the letter.
    fn of(run: &ScenarioRun) -> Option<Self> {
        let name = run.choice("service");
        let numbers = name.split_once(": ").map_or(name, |(_, numbers)| numbers);
        let (mean, variance) = numbers.split_once(", ")?;
        let number = |text: &str, unit| text.strip_suffix(unit)?.parse().ok();
        Some(Self { mean_ms: number(mean, " ms")?, variance_ms2: number(variance, " ms²")? })
    }

    fn formula(self) -> f64 {
        mean_latency(RATE, self.mean_ms / 1e3, self.variance_ms2 / 1e6)
    }
}

/// The variance, ms², at which Eq. 3 gives this latency, seconds; linear in it.
fn variance_of(latency: f64, mean_ms: f64) -> f64 {
    let without = Point { mean_ms, variance_ms2: 0.0 }.formula();
    let slope = Point { mean_ms, variance_ms2: 1.0 }.formula() - without;
    (latency - without) / slope
}

/// A simulated mean with where it is.
type Found = (Point, Estimate);

pub(super) fn run(context: &Context) -> Result<Figure, FigureError> {
    let runs = context.play(&embedded("variability-fig-1.toml", SCENARIO)?)?;
    let found = |run: &ScenarioRun| Some((Point::of(run)?, seconds(run.report.mean()?)));
    let grid: Vec<Found> =
        runs.iter().filter(|run| !run.choice("service").contains(':')).filter_map(found).collect();
    Ok(Figure {
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

/// The largest mean, ms, at which a latency can be 30 % below the line with a squared variation of 1 or more: an
/// exponential service of mean m takes 1/(1/m − λ).
fn largest_mean() -> f64 {
    1e3 / (RATE + 1.0 / (LINE * (1.0 - LOWER)))
}

fn plot(runs: &[ScenarioRun], grid: &[Found]) -> Plot {
    let mut lines: Vec<Line> = [3.0, 4.0, 5.0, 6.0, 8.0].into_iter().map(equal).collect();
    lines.push(Line::new("5 ms, simulated", simulated(grid)));
    for run in runs {
        if let (Some((name, _)), Some(point)) = (run.choice("service").split_once(':'), Point::of(run)) {
            lines.push(Line::new(name, [(point.mean_ms / 1e3, point.variance_ms2)]));
        }
    }
    Plot {
        title: "Lines of equal mean latency by Eq. 3".to_owned(),
        x: Axis::linear("mean of the service time", Quantity::Seconds),
        y: Axis::linear("variance of the service time, ms²", Quantity::Number),
        lines,
    }
}

/// Where the latency is this by the formula, from 0.5 ms to where the variance is zero.
fn equal(latency_ms: f64) -> Line {
    let points = (10..=100).map(|step| 0.05 * f64::from(step));
    let points = points.map(|mean_ms| (mean_ms / 1e3, variance_of(latency_ms / 1e3, mean_ms)));
    Line::new(format!("{latency_ms} ms"), points.filter(|(_, variance)| *variance >= 0.0))
}

/// Where the simulated latency is 5 ms: between two variances of the grid, on a straight line.
fn simulated(grid: &[Found]) -> Vec<(f64, f64)> {
    let pair = |pair: &[Found]| {
        let [(a, low), (b, high)] = pair else { return None };
        let between = a.mean_ms.total_cmp(&b.mean_ms).is_eq() && low.value <= LINE && LINE < high.value;
        let share = (LINE - low.value) / (high.value - low.value);
        between.then(|| (a.mean_ms / 1e3, a.variance_ms2 + share * (b.variance_ms2 - a.variance_ms2)))
    };
    grid.windows(2).filter_map(pair).collect()
}

fn claims(runs: &[ScenarioRun], grid: &[Found]) -> Option<Vec<Claim>> {
    let of = |letter: char| runs.iter().find(|run| run.choice("service").starts_with(letter));
    let (a, b, c) = (of('A')?, of('B')?, of('C')?);
    let on_the_line = Expected::About { value: LINE, within: 0.01 };
    let mean = |run: &ScenarioRun| run.report.mean().map(seconds);
    let open = "the coordinates of A, B and C are not in the text: these are one reading of many";
    let lower = c.report.change(&a.report, |run| run.response.mean())?;
    let almost = Expected::About { value: -LOWER, within: 0.1 };
    Some(vec![
        worst(grid)?,
        Claim::new("A is on the line of 5 ms", on_the_line, mean(a)?, time).underspecified(open),
        Claim::new("B is on it with a higher mean and a lower variance", on_the_line, mean(b)?, time)
            .underspecified(open),
        Claim::new("C, with the mean of A and less variance, is almost 30 % lower", almost, lower, change)
            .underspecified(open),
    ])
}

/// The grid point that is farthest from the formula.
fn worst(grid: &[Found]) -> Option<Claim> {
    let off = |(point, found): &Found| {
        let formula = point.formula();
        Estimate { value: (found.value / formula - 1.0).abs(), half_width: found.half_width / formula }
    };
    let worst = grid.iter().map(off).max_by(|a, b| a.value.total_cmp(&b.value))?;
    let said = format!("Eq. 3 gives the mean at each of {} points of the map, to 2 %", grid.len());
    Some(Claim::new(&said, Expected::AtMost(0.02), worst, |off| format!("{:.1} %", 100.0 * off)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_where_the_reading_says() {
        for (mean, variance) in [(2.0, 44.0), (3.0, 19.0)] {
            assert!((variance_of(LINE, mean) / variance - 1.0).abs() < 0.001, "{}", variance_of(LINE, mean));
        }
        assert!((variance_of(LINE * (1.0 - LOWER), 2.0) - 20.0).abs() < 0.01);
        let most = largest_mean();
        let exponential = Point { mean_ms: most, variance_ms2: most * most };
        assert!((exponential.formula() / (LINE * (1.0 - LOWER)) - 1.0).abs() < 1e-9);
    }
}
