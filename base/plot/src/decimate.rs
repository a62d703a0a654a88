//! Thins points without a visible difference.
//!
//! Of every run of points that fall into one pixel column, a line keeps the first, the lowest, the highest and the
//! last (the M4 reduction of Jugel et al., "M4: a visualization-oriented time series data aggregation", VLDB 2014).
//! The lower edge of a band keeps the points that its upper edge keeps. Marks keep one point of every grid cell, and
//! the four extremes. Both work on pixels, so that log axes need no special treatment.

use crate::figure::PixelPosition;
use std::collections::BTreeSet;

/// The largest number of points of a series in a drawing.
pub(crate) const POINTS_MAX: usize = 1500;

/// The ascending indices of the points of a line to keep: all if there are at most [`POINTS_MAX`], otherwise at most
/// that many.
pub(crate) fn line_indices(positions: &[PixelPosition]) -> Vec<usize> {
    if positions.len() <= POINTS_MAX {
        return (0..positions.len()).collect();
    }
    let (lo, hi) = extent(positions.iter().map(|p| p.0));
    let column_px = ((hi - lo) / (POINTS_MAX / 4 - 1) as f64).max(f64::MIN_POSITIVE);
    let columns: Vec<f64> = positions.iter().map(|p| ((p.0 - lo) / column_px).floor()).collect();
    let by_column = runs(positions.len(), |i, j| columns[i] == columns[j]);
    let kept: Vec<usize> = by_column.flat_map(|run| corners(positions, run)).collect();
    if kept.len() <= POINTS_MAX {
        return kept;
    }
    // The line goes back and forth: use equal shares of the indices instead of columns.
    let share = positions.len().div_ceil(POINTS_MAX / 4 - 1);
    let by_share =
        runs(positions.len(), |i, j| i / share == j / share).flat_map(|run| corners(positions, run));
    by_share.chain(extremes(positions)).collect::<BTreeSet<usize>>().into_iter().collect()
}

/// The ascending indices of the marks to keep: all if there are at most [`POINTS_MAX`], otherwise at most that many.
pub(crate) fn mark_indices(positions: &[PixelPosition]) -> Vec<usize> {
    if positions.len() <= POINTS_MAX {
        return (0..positions.len()).collect();
    }
    let mut cell_px = 1.5;
    loop {
        let mut taken = BTreeSet::new();
        let one_each = (0..positions.len()).filter(|&i| taken.insert(grid_cell(positions[i], cell_px)));
        let kept: BTreeSet<usize> = one_each.chain(extremes(positions)).collect();
        if kept.len() <= POINTS_MAX {
            return kept.into_iter().collect();
        }
        cell_px *= 1.5;
    }
}

#[allow(clippy::cast_possible_truncation, reason = "`as` saturates, and positions are within a drawing")]
fn grid_cell(position: PixelPosition, cell_px: f64) -> (i64, i64) {
    ((position.0 / cell_px).floor() as i64, (position.1 / cell_px).floor() as i64)
}

/// The longest runs of neighbours that are the `same` as their first.
fn runs(len: usize, same: impl Fn(usize, usize) -> bool) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = start;
        if first >= len {
            return None;
        }
        start = (first + 1..len).find(|&i| !same(first, i)).unwrap_or(len);
        Some(first..start)
    })
}

/// The first, lowest, highest and last point of a non-empty run, ascending and without repetition.
fn corners(positions: &[PixelPosition], run: std::ops::Range<usize>) -> BTreeSet<usize> {
    let mut low = run.start;
    let mut high = run.start;
    for i in run.clone() {
        if positions[i].1 < positions[low].1 {
            low = i;
        }
        if positions[i].1 > positions[high].1 {
            high = i;
        }
    }
    BTreeSet::from([run.start, low, high, run.end - 1])
}

/// The first index of the lowest and the highest x and y.
fn extremes(positions: &[PixelPosition]) -> [usize; 4] {
    let best = |better: fn(PixelPosition, PixelPosition) -> bool| {
        (1..positions.len()).fold(0, |best, i| if better(positions[i], positions[best]) { i } else { best })
    };
    [best(|a, b| a.0 < b.0), best(|a, b| a.0 > b.0), best(|a, b| a.1 < b.1), best(|a, b| a.1 > b.1)]
}

fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_extremes_kept(places: &[PixelPosition], kept: &[usize]) {
        assert!(kept.len() <= POINTS_MAX && kept.windows(2).all(|w| w[0] < w[1]));
        let of = |axis: fn(&PixelPosition) -> f64| {
            (extent(places.iter().map(axis)), extent(kept.iter().map(|&i| axis(&places[i]))))
        };
        let (all_x, kept_x) = of(|p| p.0);
        let (all_y, kept_y) = of(|p| p.1);
        assert_eq!((all_x, all_y), (kept_x, kept_y));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn extremes_survive_in_few_points(ys in proptest::collection::vec(0.0f64..300.0, 1..5000), back in 1usize..900) {
            let sorted: Vec<PixelPosition> = ys.iter().enumerate().map(|(i, &y)| (i as f64 * 0.2, y)).collect();
            let wild: Vec<PixelPosition> = ys.iter().enumerate().map(|(i, &y)| ((i * 7919 % back) as f64, y)).collect();
            for places in [sorted, wild] {
                assert_extremes_kept(&places, &line_indices(&places));
                assert_extremes_kept(&places, &mark_indices(&places));
                let kept = line_indices(&places);
                prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, places.len() - 1));
            }
        }
    }

    #[test]
    fn a_single_spike_in_100_000_points_survives() {
        let mut places: Vec<PixelPosition> = (0..100_000).map(|i| (f64::from(i) * 0.008, 100.0)).collect();
        places[77_777].1 = 3.0;
        let kept = line_indices(&places);
        assert!(kept.contains(&77_777) && kept.len() <= POINTS_MAX, "{}", kept.len());
    }
}
