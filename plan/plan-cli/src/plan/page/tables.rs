//! The numbers behind the charts.

use crate::plan::page::plan_view::PlanView;
use operation::text::percent;
use plan::planning::{MethodComparison, PlannedCluster, describe_refusal};
use plot::{Block, Cell, Column, Status, Table, Unit};
use std::ops::Range;
use units::plural;

/// Limits of all workloads, those of a server together, by priority.
pub(super) fn limits(view: &PlanView) -> Table {
    let mut columns = vec![
        Column::name("workload"),
        Column::name("server"),
        Column::number("prio"),
        Column::number("SLO"),
        Column::number("bound"),
        Column::number("slack"),
    ];
    for stage in ["in", "storage", "out"] {
        columns.extend([Column::number(format!("{stage} rate")), Column::number(format!("{stage} burst"))]);
    }
    let mut table = Table::new(columns);
    let mut order = view.tightest.clone();
    order.sort_by_key(|&w| (view.place(w).server, view.place(w).guarantee.priority, w));
    order.into_iter().for_each(|w| table.push(row(view, w)));
    table
}

fn row(view: &PlanView, workload: usize) -> Vec<Cell> {
    let place = view.place(workload);
    let slo = view.planned.instance.workloads[workload].slo;
    let slack = 1.0 - view.used(workload);
    let mut cells = vec![
        Cell::text(view.name(workload)),
        Cell::keyed(&view.planned.names[place.server], place.server as f64),
        Cell::number(place.guarantee.priority as f64, Unit::Plain),
        Cell::keyed(slo.to_string(), slo.latency.0),
        Cell::number(place.guarantee.total, Unit::Seconds),
        Cell::keyed(percent(slack), slack),
    ];
    for (_, limit) in view.planned.placement.servers[place.server].limits_of(workload).iter() {
        cells
            .extend([Cell::keyed(percent(limit.rate), limit.rate), Cell::number(limit.burst, Unit::Seconds)]);
    }
    cells
}

/// Refused workloads that stand open; the others are behind a fold.
const REFUSED_OPEN: usize = 12;

/// Workloads without a guarantee, why, and what would admit them.
pub(super) fn refused(planned: &PlannedCluster) -> Vec<Block> {
    let count = planned.placement.refused.len();
    let open = count.min(REFUSED_OPEN);
    let mut blocks = vec![refused_some(planned, 0..open).into()];
    if open < count {
        let summary = plural(count - open, "more workload");
        blocks.push(Block::fold(summary, [refused_some(planned, open..count).into()]));
    }
    blocks
}

fn refused_some(planned: &PlannedCluster, numbers: Range<usize>) -> Table {
    let why = Column::text("why, and what would admit it");
    let mut table = Table::new([Column::name("workload"), Column::name("SLO"), why]);
    for number in numbers {
        let workload = &planned.instance.workloads[planned.placement.refused[number].workload];
        table.push([
            Cell::text(&workload.name).status(Status::Bad),
            Cell::keyed(workload.slo.to_string(), workload.slo.latency.0),
            Cell::text(describe_refusal(planned, number)),
        ]);
    }
    table
}

/// Shows the results of other methods, in both orders.
pub(super) fn compared(rows: &[MethodComparison], workloads: usize) -> Table {
    let mut table = Table::new([
        Column::name("policy"),
        Column::number("first fit"),
        Column::number("admitted"),
        Column::number("best order"),
        Column::number("admitted"),
    ]);
    for row in rows {
        let mut cells = vec![Cell::text(&row.policy_name)];
        for one in [row.first_fit, row.best_order] {
            let Some(one) = one else {
                cells.extend([Cell::text("–"), Cell::text("–")]);
                continue;
            };
            let status = if one.workloads_admitted == workloads { Status::Good } else { Status::Bad };
            let admitted = format!("{} of {workloads}", one.workloads_admitted);
            cells.push(Cell::number(one.servers_used as f64, Unit::Plain));
            cells.push(Cell::keyed(admitted, one.workloads_admitted as f64).status(status));
        }
        table.push(cells);
    }
    table
}
