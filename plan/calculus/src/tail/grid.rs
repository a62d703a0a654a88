//! The grid that all tables of an analysis share.

/// The windows and exponents for which sources are tabulated; sources that meet share one.
#[derive(Debug, Clone, PartialEq)]
pub struct TailGrid {
    windows: Vec<f64>,
    thetas: Vec<f64>,
}

impl TailGrid {
    /// A grid of these windows in seconds and exponents per second, both ascending and positive.
    ///
    /// # Panics
    /// If they are not, or there are none.
    pub fn new(windows: Vec<f64>, thetas: Vec<f64>) -> Self {
        for axis in [&windows, &thetas] {
            assert!(axis.first().is_some_and(|first| *first > 0.0), "a positive first point");
            assert!(axis.is_sorted_by(|a, b| a < b) && axis[axis.len() - 1].is_finite(), "ascending");
        }
        Self { windows, thetas }
    }

    /// The windows in seconds, ascending.
    pub fn windows(&self) -> &[f64] {
        &self.windows
    }

    /// The exponents per second, ascending.
    pub(crate) fn thetas(&self) -> &[f64] {
        &self.thetas
    }

    /// The index of the first window of at least `length` seconds; `None` beyond the last.
    pub(super) fn window_from(&self, length: f64) -> Option<usize> {
        let index = self.windows.partition_point(|window| *window < length);
        (index < self.windows.len()).then_some(index)
    }
}
