//! Figures with their confidence intervals as text.

use operation::text::time;
use sim::engine::Estimate;
use simulate::simulation::SimulatedFigure;

/// A number with one decimal, or a dash.
pub(crate) fn plain(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}{unit}"))
}

/// Formats a relative change as a percentage with its interval, with digits that suit the width.
pub(crate) fn change(figure: SimulatedFigure) -> String {
    let Some(estimate) = figure else { return "-".to_owned() };
    let value = 100.0 * estimate.value;
    let half = 100.0 * estimate.half_width;
    if !estimate.has_interval() {
        return format!("{value:+.1} %");
    }
    let decimals = decimals_of(half);
    format!("{value:+.decimals$} ± {half:.decimals$} %")
}

/// Returns the number of decimals that show the width of an interval: at least one.
fn decimals_of(half_width: f64) -> usize {
    const DECIMALS_MAX: usize = 6;
    let shows = |decimals: &usize| half_width * 10f64.powi(i32::try_from(*decimals).unwrap_or(0)) >= 0.5;
    (1..DECIMALS_MAX).find(shows).unwrap_or(DECIMALS_MAX)
}

/// Formats a time with its interval; without one if nothing varies, because the precision is then
/// unknown. An interval that would reach below zero is shown by its ends, from zero.
pub(crate) fn interval(figure: SimulatedFigure) -> String {
    match figure {
        None => "-".to_owned(),
        Some(estimate) if estimate.has_interval() && estimate.half_width > estimate.value => {
            format!("{} (0s to {})", time(estimate.value), time(estimate.value + estimate.half_width))
        }
        Some(estimate) if estimate.has_interval() => {
            format!("{} ± {}", time(estimate.value), time(estimate.half_width))
        }
        Some(estimate) => time(estimate.value),
    }
}

/// Formats a percentage with its interval, with digits that suit the width.
pub(crate) fn percent_interval(figure: SimulatedFigure) -> String {
    let Some(estimate) = figure.filter(Estimate::has_interval) else {
        return plain(figure.map(|estimate| estimate.value), " %");
    };
    let decimals = decimals_of(estimate.half_width);
    let Estimate { value, half_width } = estimate;
    if half_width > value {
        let high = (value + half_width).min(100.0);
        return format!("{value:.decimals$} (0 to {high:.decimals$}) %");
    }
    format!("{value:.decimals$} ± {half_width:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::engine::Estimate;

    #[test]
    fn no_interval_has_zero_width() {
        let figure = |value, half_width| Some(Estimate { value, half_width });
        for (shown, expected) in [
            (interval(figure(0.002, 0.0001)), "2ms ± 100us"),
            (interval(figure(0.02576, 0.03641)), "25.76ms (0s to 62.17ms)"),
            (percent_interval(figure(1.0, 3.0)), "1.0 (0 to 4.0) %"),
            (interval(figure(0.002, 0.0)), "2ms"),
            (interval(figure(0.002, 1e-19)), "2ms"),
            (interval(figure(0.002, f64::INFINITY)), "2ms"),
            (change(figure(-0.25, 0.031)), "-25.0 ± 3.1 %"),
            (change(figure(-0.25, 0.0001)), "-25.00 ± 0.01 %"),
            (change(figure(-0.25, 0.0)), "-25.0 %"),
            (change(None), "-"),
        ] {
            assert_eq!(shown, expected);
        }
    }
}
