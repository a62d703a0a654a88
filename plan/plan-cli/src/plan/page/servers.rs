//! Load of the servers.

use crate::plan::page::plan_view::PlanView;
use model::Stage;
use operation::text::percent;
use plot::{Bars, Block, Cell, Column, Table, Unit};

pub(super) fn blocks(view: &PlanView) -> Vec<Block> {
    vec![load(view).into(), burst(view).into(), Block::fold("Servers as a table", [table(view).into()])]
}

fn stage_names() -> [&'static str; 3] {
    Stage::ALL.map(Stage::name)
}

fn load(view: &PlanView) -> Bars {
    let chart = Bars::grouped("Mean load by stage", ("mean load", Unit::Percent), stage_names())
        .limit(1.0, "capacity")
        .note("Mean work of all workloads of a server, as a fraction of what the stage can do.");
    view.planned
        .placement
        .servers
        .iter()
        .zip(&view.planned.names)
        .fold(chart, |chart, (server, name)| chart.row(name, view.planned.mean_load(server).into_array()))
}

/// Shows the bursts that meet at a stage, which use up the slack of the SLOs.
fn burst(view: &PlanView) -> Bars {
    let chart = Bars::grouped("Bursts that may meet, by stage", ("sum of bursts", Unit::Seconds), stage_names())
        .note("Sum of the burst limits of all workloads of a server: how long the stage needs for all at once. This, with the SLOs, decides who fits together.");
    view.planned.placement.servers.iter().zip(&view.planned.names).fold(chart, |chart, (server, name)| {
        let sum = |stage: Stage| server.limits.iter().map(|limits| limits[stage].burst).sum::<f64>();
        chart.row(name, Stage::ALL.map(sum))
    })
}

fn table(view: &PlanView) -> Table {
    let mut columns =
        vec![Column::name("server"), Column::number("workloads"), Column::number("worst bound / SLO")];
    columns.extend(["in", "storage", "out"].map(|stage| Column::number(format!("load {stage}"))));
    let mut table = Table::new(columns);
    for (number, server) in view.planned.placement.servers.iter().enumerate() {
        let tightest = server.members.iter().map(|&w| view.used(w)).fold(0.0, f64::max);
        let mut cells = vec![
            Cell::text(&view.planned.names[number]),
            Cell::number(server.members.len() as f64, Unit::Plain),
            Cell::keyed(percent(tightest), tightest),
        ];
        let loads = view.planned.mean_load(server);
        cells.extend(loads.iter().map(|(_, load)| Cell::keyed(percent(*load), *load)));
        table.push(cells);
    }
    table
}
