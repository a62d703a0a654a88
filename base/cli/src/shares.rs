//! Charts of the share of requests that take longer than a latency (complementary distribution functions).

use plot::{Axis, Unit};

/// Reading instructions below such a chart.
pub const READING: &str = "Each line says which share of the requests takes at least as long: the further right a line is at 1%, the larger \
     the p99. The fastest 2 % of each line may be left of the chart.";

/// Share of requests from which an axis of latencies may begin: the lines are flat before.
const FLAT_SHARE: f64 = 0.98;

/// Returns a logarithmic axis of latencies. It begins where the first of these lines leaves the top, or
/// at `also` if that is less. Lines are pairs of seconds and shares; shares never rise.
pub fn latency_axis<'a>(
    label: &str,
    lines: impl IntoIterator<Item = &'a [(f64, f64)]>,
    also: Option<f64>,
) -> Axis {
    let axis = Axis::log(label, Unit::Seconds);
    let starts = lines.into_iter().filter_map(start).chain(also);
    match round_below(starts.fold(f64::INFINITY, f64::min)) {
        Some(least) => axis.min(least),
        None => axis,
    }
}

/// The largest positive latency before the share falls below [`FLAT_SHARE`], and at least a tenth of the next one;
/// otherwise the least one.
fn start(line: &[(f64, f64)]) -> Option<f64> {
    let positive = || line.iter().filter(|(latency, _)| *latency > 0.0);
    let flat = positive().take_while(|(_, share)| *share >= FLAT_SHARE).last();
    let next = positive().find(|(_, share)| *share < FLAT_SHARE);
    match (flat, next) {
        (Some((flat, _)), Some((next, _))) => Some(flat.max(next / 10.0)),
        (one, other) => one.or(other).map(|(latency, _)| *latency),
    }
}

/// Returns the largest 1, 2 or 5 times a power of ten at or below a latency; `None` if it is not
/// positive.
fn round_below(latency: f64) -> Option<f64> {
    if !(latency > 0.0 && latency.is_finite()) {
        return None;
    }
    let power = 10f64.powf(latency.log10().floor());
    // The tolerance keeps 50 µs from falling below 5 times 10 µs by rounding.
    let round =
        [5.0, 2.0, 1.0].map(|digit| digit * power).into_iter().find(|at| *at <= latency * (1.0 + 1e-9));
    round.map(|round| round.min(latency))
}

/// Merges lines that look the same into one, under all of their names.
pub fn without_duplicates(
    lines: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>,
) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut different: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (name, points) in lines {
        match different.iter_mut().find(|(_, others)| look_alike(others, &points)) {
            Some((names, others)) => {
                let sign = if *others == points { '=' } else { '≈' };
                *names = format!("{names} {sign} {name}");
            }
            None => different.push((name, points)),
        }
    }
    different
}

/// Largest relative difference of values that is invisible in a chart.
const INVISIBLE: f64 = 0.01;

fn look_alike(a: &[(f64, f64)], b: &[(f64, f64)]) -> bool {
    let is_near = |a: f64, b: f64| a == b || (a - b).abs() <= INVISIBLE * a.abs().max(b.abs());
    let mut pairs = a.iter().zip(b);
    !a.is_empty() && a.len() == b.len() && pairs.all(|(a, b)| is_near(a.0, b.0) && is_near(a.1, b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_where_the_first_line_leaves_the_top() {
        let slow = [(1e-9, 1.0), (1e-6, 0.999), (3e-4, 0.985), (1e-3, 0.5), (1e-2, 0.001)];
        let fast = [(1e-9, 1.0), (6e-5, 0.99), (1e-4, 0.2)];
        assert_eq!((start(&slow), start(&fast), start(&[])), (Some(3e-4), Some(6e-5), None));
        assert_eq!(
            (round_below(6e-5), round_below(3e-4), round_below(f64::INFINITY)),
            (Some(5e-5), Some(2e-4), None)
        );
        // All at once: the line begins with its first point.
        assert_eq!(start(&[(0.0, 1.0), (0.001, 0.5)]), Some(0.001));
        // A line of few points is flat for a decade at most.
        assert_eq!(start(&[(1e-9, 1.0), (1e-3, 0.9), (1e-2, 0.1)]), Some(1e-4));
    }

    #[test]
    fn a_line_is_drawn_once_under_all_of_its_names() {
        let line = |name: &str, x: f64| (name.to_owned(), vec![(x, 1.0)]);
        let found = without_duplicates([line("end to end", 1.0), line("b", 2.0), line("disk", 1.0)]);
        assert_eq!(found, [line("end to end = disk", 1.0), line("b", 2.0)]);
        let found = without_duplicates([line("p99", 1.0), line("longest", 1.004), line("b", 1.02)]);
        assert_eq!(found, [line("p99 ≈ longest", 1.0), line("b", 1.02)]);
        assert_eq!(without_duplicates([line("a", 0.0), line("b", 0.0)]).len(), 1);
    }
}
