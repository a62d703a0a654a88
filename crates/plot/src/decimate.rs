//! Fewer points for the same picture.
//!
//! A line keeps, in every run of points that fall into one pixel column, the first, the lowest, the highest and the
//! last (the M4 reduction of Jugel et al., "M4: a visualization-oriented time series data aggregation", VLDB 2014).
//! The lower edge of a band keeps the points that its upper edge keeps. Marks keep one point per grid cell, and the four extremes. Both work on pixels, so log axes come out right.

use std::collections::BTreeSet;

/// No series has more points than this in a drawing.
pub(crate) const POINTS_MAX: usize = 1500;

/// A place in a drawing.
pub(crate) type Place = (f64, f64);

/// Indices, ascending, of the points of a line to keep: all of up to [`POINTS_MAX`], otherwise at most that many.
pub(crate) fn line(places: &[Place]) -> Vec<usize> {
    if places.len() <= POINTS_MAX {
        return (0..places.len()).collect();
    }
    let (lo, hi) = extent(places.iter().map(|p| p.0));
    let column_px = ((hi - lo) / (POINTS_MAX / 4 - 1) as f64).max(f64::MIN_POSITIVE);
    let column = |i: usize| ((places[i].0 - lo) / column_px).floor();
    let by_column = runs(places.len(), |i, j| column(i) == column(j));
    let kept: Vec<usize> = by_column.flat_map(|run| corners(places, run)).collect();
    if kept.len() <= POINTS_MAX {
        return kept;
    }
    // A line that goes back and forth: even shares of the indices instead of columns.
    let share = places.len().div_ceil(POINTS_MAX / 4 - 1);
    let by_share = runs(places.len(), |i, j| i / share == j / share).flat_map(|run| corners(places, run));
    by_share.chain(extremes(places)).collect::<BTreeSet<usize>>().into_iter().collect()
}

/// Indices, ascending, of the marks to keep: all of up to [`POINTS_MAX`], otherwise at most that many.
pub(crate) fn marks(places: &[Place]) -> Vec<usize> {
    if places.len() <= POINTS_MAX {
        return (0..places.len()).collect();
    }
    let mut cell_px = 1.5;
    loop {
        #[allow(clippy::cast_possible_truncation)] // Saturates; places are within a drawing.
        let cell = |p: &Place| ((p.0 / cell_px).floor() as i64, (p.1 / cell_px).floor() as i64);
        let mut taken = BTreeSet::new();
        let one_each = (0..places.len()).filter(|&i| taken.insert(cell(&places[i])));
        let kept: BTreeSet<usize> = one_each.chain(extremes(places)).collect();
        if kept.len() <= POINTS_MAX {
            return kept.into_iter().collect();
        }
        cell_px *= 1.5;
    }
}

/// Maximal runs of neighbours that are `same`.
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

/// First, lowest, highest and last of a non-empty run, ascending without repetition.
fn corners(places: &[Place], run: std::ops::Range<usize>) -> BTreeSet<usize> {
    let (mut low, mut high) = (run.start, run.start);
    for i in run.clone() {
        if places[i].1 < places[low].1 {
            low = i;
        }
        if places[i].1 > places[high].1 {
            high = i;
        }
    }
    BTreeSet::from([run.start, low, high, run.end - 1])
}

/// First index of the lowest and highest x and y.
fn extremes(places: &[Place]) -> [usize; 4] {
    let best = |better: fn(Place, Place) -> bool| {
        (1..places.len()).fold(0, |best, i| if better(places[i], places[best]) { i } else { best })
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

    fn law(places: &[Place], kept: &[usize]) {
        assert!(kept.len() <= POINTS_MAX && kept.windows(2).all(|w| w[0] < w[1]));
        let of = |axis: fn(&Place) -> f64| {
            (extent(places.iter().map(axis)), extent(kept.iter().map(|&i| axis(&places[i]))))
        };
        let ((all_x, kept_x), (all_y, kept_y)) = (of(|p| p.0), of(|p| p.1));
        assert_eq!((all_x, all_y), (kept_x, kept_y));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn extremes_survive_in_few_points(ys in proptest::collection::vec(0.0f64..300.0, 1..5000), back in 1usize..900) {
            let sorted: Vec<Place> = ys.iter().enumerate().map(|(i, &y)| (i as f64 * 0.2, y)).collect();
            let wild: Vec<Place> = ys.iter().enumerate().map(|(i, &y)| ((i * 7919 % back) as f64, y)).collect();
            for places in [sorted, wild] {
                law(&places, &line(&places));
                law(&places, &marks(&places));
                let kept = line(&places);
                prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, places.len() - 1));
            }
        }
    }

    #[test]
    fn a_single_spike_in_100_000_points_survives() {
        let mut places: Vec<Place> = (0..100_000).map(|i| (f64::from(i) * 0.008, 100.0)).collect();
        places[77_777].1 = 3.0;
        let kept = line(&places);
        assert!(kept.contains(&77_777) && kept.len() <= POINTS_MAX, "{}", kept.len());
    }
}
