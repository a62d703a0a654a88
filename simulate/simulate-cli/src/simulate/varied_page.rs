//! A page for a varied scenario: the tail against the varied values, and the figures.

use crate::simulate::page::{FIGURES, table};
use crate::simulate::varied::{VariedView, lead, rows, workload_rows};
use crate::simulate::workloads;
use plot::{Axis, Block, Chart, Page, Series, Unit};
use simulate::simulation::SimulatedVariant;
use units::Percentile;

/// The page of all variants.
pub(crate) fn html(view: &VariedView) -> String {
    let (headings, figures) = rows(view);
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut page = Page::new(name(view)).lead(lead(view));
    if let Some(axis) = numeric(view) {
        page = page.section("99th percentile", [chart(view, axis).into()]);
    }
    let of_workloads = workload_rows(view);
    if !of_workloads.is_empty() {
        let headings: Vec<&str> = view.axes().chain(workloads::HEADINGS).collect();
        page = page.section("Workloads", [table(&headings, of_workloads).into()]);
    }
    page = page.section("All figures", [table(&headings, figures).into()]);
    cli::page::document(page.section("How to read this page", [FIGURES, VARIANTS].map(Block::paragraph)))
}

/// Explanation of the other figures of variants.
const VARIANTS: &str = "Busiest is the load of the busiest station: the work that came divided by what its workers can do. The p99 change is relative \
     to the first variant that differs in the last of the varied values only. A remark in the last column says why figures are missing or mean something else.";

fn name<'a>(view: &VariedView<'a>) -> &'a str {
    view.variants.first().map_or("", |first| first.run.case.name.as_str())
}

/// Returns the axis with numeric values that has the most of them.
fn numeric(view: &VariedView) -> Option<usize> {
    let values = |axis: usize| {
        let mut values: Vec<&str> = view.variants.iter().map(|played| value(played, axis)).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let is_number =
        |axis: &usize| view.variants.iter().all(|played| value(played, *axis).parse::<f64>().is_ok());
    (0..view.axes().count()).filter(is_number).max_by_key(|axis| values(*axis))
}

fn value(played: &SimulatedVariant, axis: usize) -> &str {
    &played.run.choices[axis].value
}

/// A line for each combination of the other axes.
fn chart(view: &VariedView, axis: usize) -> Chart {
    let title = view.axes().nth(axis).unwrap_or_default().to_owned();
    let others = |played: &SimulatedVariant| {
        let others = played.run.choices.iter().enumerate().filter(|(index, _)| *index != axis);
        others.map(|(_, choice)| choice.value.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for played in view.variants {
        let p99 = Percentile::new(99.0).and_then(|percentile| played.run.report.percentile(percentile));
        let (Some(p99), Ok(at), true) = (p99, value(played, axis).parse::<f64>(), played.run.is_stable())
        else {
            continue;
        };
        let line = others(played);
        let point = (at, p99.value / 1e9);
        match lines.iter_mut().find(|(name, _)| *name == line) {
            Some((_, points)) => points.push(point),
            None => lines.push((line, vec![point])),
        }
    }
    let chart = Chart::new("p99", Axis::linear(title, Unit::Plain), Axis::log("p99", Unit::Seconds));
    let chart = chart.note(
        "The latency that 99 % of the requests do not exceed, against what is varied: lower is better. Systems that do not \
         keep up have no point.",
    );
    chart.all(lines.into_iter().map(|(name, points)| Series::line(name, points)))
}
