//! Page about the models' bounds for the workloads of one server.

use crate::bound::text::{BoundsView, latency};
use crate::plan::page::footer;
use plot::{Axis, Block, Cell, Column, Dots, KeyFigure, Page, Status, Table, Unit};
use units::plural;

/// The page about workloads that share a server.
pub(crate) fn html(view: &BoundsView) -> String {
    let count = view.problem.cluster.workloads.len();
    let page = Page::new(format!("Tail latency of {}", plural(count, "workload")))
        .lead(view.lead())
        .section("", [facts(view)])
        .section("Predicted latency against SLO", [dots(view).into()])
        .section("All figures", [table(view).into()])
        .section("How to read this page", how_to_read(view))
        .footer(footer(&view.problem.cluster, ""));
    cli::page::document(page)
}

fn facts(view: &BoundsView) -> Block {
    let count = view.problem.cluster.workloads.len();
    let fact = |&model: &plan::prediction::ModelName| {
        let kept = view.kept(model);
        let status = if kept == count { Status::Good } else { Status::Bad };
        KeyFigure::new(format!("{kept} of {count}"), format!("within their SLO, {}", model.name()))
            .status(status)
    };
    view.models.iter().map(fact).collect::<Vec<_>>().into()
}

/// The bound of each model beside the SLO, by workload.
pub(crate) fn dots(view: &BoundsView) -> Dots {
    let names = view.models.iter().map(|model| model.name());
    let chart = Dots::new("Latency by model, by priority", Axis::log("latency", Unit::Seconds), names, "SLO")
        .note("A point left of the bar keeps the SLO. For replayed latencies the point is the upper end of the confidence interval. A model without a bound has no point.").missing("");
    view.rows().into_iter().fold(chart, |chart, (tenant, bounds)| {
        let points = bounds.iter().map(|bound| Some(bound.seconds()).filter(|s| s.is_finite()));
        chart.row(&tenant.spec.name, points, tenant.spec.slo.latency.0)
    })
}

fn table(view: &BoundsView) -> Table {
    let mut columns = vec![Column::name("workload"), Column::number("priority"), Column::number("SLO")];
    columns.extend(view.models.iter().map(|model| Column::number(model.name())));
    let mut table = Table::new(columns);
    for (tenant, bounds) in view.rows() {
        let slo = tenant.spec.slo;
        let mut cells = vec![
            Cell::text(&tenant.spec.name),
            Cell::number(f64::from(bounds[0].priority), Unit::Plain),
            Cell::keyed(slo.to_string(), slo.latency.0),
        ];
        cells.extend(bounds.iter().map(|bound| {
            let status = if bound.seconds() <= slo.latency.0 { Status::Good } else { Status::Bad };
            Cell::keyed(latency(bound), bound.seconds()).status(status)
        }));
        table.push(cells);
    }
    table
}

fn how_to_read(view: &BoundsView) -> Vec<Block> {
    let assumption = |model: &plan::prediction::ModelName| {
        Block::paragraph(format!("{}: {}.", model.name(), model.row().assumption))
    };
    let mut blocks: Vec<Block> = view.models.iter().map(assumption).collect();
    if view.bounds.iter().any(|bound| bound.latency.is_ok_and(|found| found.estimate.is_some())) {
        blocks.push(Block::paragraph(MEDIAN));
    }
    blocks
}

/// Text around ≤ for replayed latencies.
pub(crate) const MEDIAN: &str =
    "Two latencies with ≤ between them: the median over the alignments, and the predicted latency.";
