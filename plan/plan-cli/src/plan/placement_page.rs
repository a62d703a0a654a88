//! A placement by a model, as a page.

use crate::bound::text as bounds;
use crate::plan::page::{footer, tables};
use crate::plan::placement::{answer, risks};
use operation::text::time;
use plan::prediction::{ModelPlacement, PredictionProblem, WorkloadForecast, by_priority, server_name};
use plot::{Axis, Block, Cell, Column, Dots, Page, Status, Table, Unit};

/// The page about a placement.
pub(crate) fn html(problem: &PredictionProblem, placed: &ModelPlacement) -> String {
    let mut page = Page::new(answer(problem, placed)).lead(format!("Placed by {}.", placed.model.name()));
    let mut risks: Vec<Block> = risks(problem, placed).into_iter().map(Block::paragraph).collect();
    let forecasts = || placed.servers.iter().flatten();
    if forecasts().any(|forecast| forecast.bound.latency.is_ok_and(|found| found.estimate.is_some())) {
        risks.push(Block::paragraph(crate::bound::page::MEDIAN));
    }
    page = page.section("What the predictions assume", risks);
    if !placed.packing.refused.is_empty() {
        page = page.section("Not admitted", tables::refused(&placed.refused(problem), "why"));
    }
    for (number, forecasts) in placed.servers.iter().enumerate() {
        let forecasts = by_priority(forecasts);
        let name = server_name(problem, number);
        page = page.section(
            format!("{name}: latency against SLO"),
            [
                dots(problem, placed, &forecasts).into(),
                Block::fold("As a table", [table(problem, &forecasts).into()]),
            ],
        );
    }
    let footer = footer(&problem.cluster, &format!("model {} · ", placed.model.name()));
    cli::page::document(page.footer(footer))
}

fn dots(problem: &PredictionProblem, placed: &ModelPlacement, forecasts: &[WorkloadForecast]) -> Dots {
    let series = [placed.model.name(), "bursts together", "worst case"];
    let chart = Dots::new("Latency, by priority", Axis::log("latency", Unit::Seconds), series, "SLO").note(
        "A point left of the bar keeps the SLO. Bursts together: the longest of the replays, one of which lets every worst \
         burst end at the same moment. Worst case: whatever happens within the burst curves. A latency without a bound has no point.",
    )
    .missing("");
    forecasts.iter().fold(chart, |chart, forecast| {
        let spec = problem.spec(forecast.bound.workload);
        let finite = |seconds: f64| Some(seconds).filter(|s| s.is_finite());
        let points = [
            finite(forecast.bound.seconds()),
            forecast.bursts_together,
            forecast.worst_case_s().and_then(finite),
        ];
        chart.row(&spec.name, points, spec.slo.latency.0)
    })
}

fn table(problem: &PredictionProblem, forecasts: &[WorkloadForecast]) -> Table {
    let mut table = Table::new(vec![
        Column::name("workload"),
        Column::number("priority"),
        Column::number("SLO"),
        Column::number("predicted"),
        Column::number("bursts together"),
        Column::number("worst case"),
    ]);
    for forecast in forecasts {
        let spec = problem.spec(forecast.bound.workload);
        let judged = |text: String, seconds: f64| {
            let status = if seconds <= spec.slo.latency.0 { Status::Good } else { Status::Bad };
            Cell::keyed(text, seconds).status(status)
        };
        let plain = |seconds: f64| {
            judged(if seconds.is_finite() { time(seconds) } else { "none".to_owned() }, seconds)
        };
        table.push([
            Cell::text(&spec.name),
            Cell::number(f64::from(forecast.bound.priority), Unit::Plain),
            Cell::keyed(spec.slo.to_string(), spec.slo.latency.0),
            judged(bounds::latency(&forecast.bound), forecast.bound.seconds()),
            plain(forecast.bursts_together.unwrap_or(f64::INFINITY)),
            plain(forecast.worst_case_s().unwrap_or(f64::INFINITY)),
        ]);
    }
    table
}
