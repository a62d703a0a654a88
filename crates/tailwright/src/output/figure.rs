//! Figures with their confidence intervals as text.

use workflow::simulation::SimulatedFigure;
use workflow::text::time;

/// A number with one decimal, or a dash.
pub(crate) fn plain(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}{unit}"))
}

/// A time with its interval; without one where nothing varies, which says nothing about how sure it is.
pub(crate) fn interval(figure: SimulatedFigure) -> String {
    match figure {
        None => "-".to_owned(),
        // Equal values differ by the rounding of their mean.
        Some(estimate) if estimate.half_width <= 1e-12 * estimate.value.abs() => time(estimate.value),
        Some(estimate) if estimate.half_width.is_finite() => {
            format!("{} ± {}", time(estimate.value), time(estimate.half_width))
        }
        Some(estimate) => time(estimate.value),
    }
}
