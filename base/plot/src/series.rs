//! The series of a chart: named points and the way in which they are joined.

/// Way of joining neighbouring points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    None,
    Straight,
    /// Neighbours are joined horizontally up to the next x, and then vertically.
    Step,
}

/// A point of a series; the filled area below it ends at `base`, or at the baseline for `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DataPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) base: Option<f64>,
}

/// A named series of points. Values are in the base units of the chart's axes.
#[derive(Debug, Clone)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<DataPoint>,
    pub(crate) join: Join,
    pub(crate) filled: bool,
    pub(crate) slot: Option<usize>,
}

impl Series {
    /// Creates points that are joined by straight lines in the given order. Up to 40 points are also marked.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| DataPoint { x, y, base: None }).collect();
        Self { name: name.into(), points, join: Join::Straight, filled: false, slot: None }
    }

    /// Creates steps: each value is valid until the next x, as in distributions and queue lengths.
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { join: Join::Step, ..Self::line(name, points) }
    }

    /// Creates marks that are not joined.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { join: Join::None, ..Self::line(name, points) }
    }

    /// Creates a line above a filled area down to zero.
    pub fn area(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { filled: true, ..Self::line(name, points) }
    }

    /// Creates a filled area between (x, low, high), such as a confidence band or a layer of a stack.
    pub fn band(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let points =
            points.into_iter().map(|(x, low, high)| DataPoint { x, y: high, base: Some(low) }).collect();
        Self { name: name.into(), points, join: Join::Straight, filled: true, slot: None }
    }

    /// Creates filled steps from bins as [`Distribution::histogram`](crate::Distribution::histogram) returns them.
    pub fn histogram(name: impl Into<String>, bins: &[(f64, f64, u64)]) -> Self {
        let end = bins.last().map(|&(_, upper, count)| (upper, count as f64));
        let points = bins.iter().map(|&(lower, _, count)| (lower, count as f64)).chain(end);
        Self { filled: true, ..Self::steps(name, points) }
    }

    /// Uses the colour, dash and mark of the `slot`-th series instead of those of its own position, so
    /// that a series looks the same in several charts.
    #[must_use]
    pub fn styled_as(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }
}

/// Creates the layers of a stacked area chart: `layers` are names with one value for each x, stacked from the bottom in
/// the given order. Layers shorter than `xs` end early.
pub fn stack(xs: &[f64], layers: impl IntoIterator<Item = (String, Vec<f64>)>) -> Vec<Series> {
    let mut floor = vec![0.0; xs.len()];
    let mut bands = Vec::new();
    for (name, values) in layers {
        let mut points = Vec::new();
        for ((&x, floor), value) in xs.iter().zip(&mut floor).zip(values) {
            let low = *floor;
            *floor += if value.is_finite() { value } else { 0.0 };
            points.push((x, low, *floor));
        }
        bands.push(Series::band(name, points));
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stand_on_each_other() {
        let bands = stack(&[0.0, 1.0], [("a".into(), vec![1.0, 2.0]), ("b".into(), vec![10.0, f64::NAN])]);
        let tops: Vec<Vec<(Option<f64>, f64)>> =
            bands.iter().map(|s| s.points.iter().map(|p| (p.base, p.y)).collect()).collect();
        assert_eq!(tops[0], [(Some(0.0), 1.0), (Some(0.0), 2.0)]);
        assert_eq!(tops[1], [(Some(1.0), 11.0), (Some(2.0), 2.0)]);
    }

    #[test]
    fn a_histogram_ends_at_its_last_edge() {
        let series = Series::histogram("h", &[(0.0, 1.0, 3), (1.0, 2.0, 5)]);
        let points: Vec<_> = series.points.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(points, [(0.0, 3.0), (1.0, 5.0), (2.0, 5.0)]);
    }
}
