//! The numbers behind the charts.

use crate::plan::page::plan_view::PlanView;
use crate::plan::survival;
use operation::text::percent;
use plan::RefusedWorkload;
use plan::planning::{HostUse, MethodComparison, ObjectiveBound, PlanSurvival};
use plot::{Block, Cell, Column, Status, Table, Unit};
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
    for workload in order {
        table.push(row(view, workload));
        let further = view.further(workload);
        further.iter().for_each(|objective| table.push(objective_row(view, workload, objective)));
    }
    table
}

fn row(view: &PlanView, workload: usize) -> Vec<Cell> {
    let place = view.place(workload);
    let slo = view.planned.instance.workloads[workload].slo;
    let slack = 1.0 - place.guarantee.total / slo.latency.0;
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

/// An SLO of a workload beside the first. Name and server are repeated because readers may sort the table.
fn objective_row(view: &PlanView, workload: usize, objective: &ObjectiveBound) -> Vec<Cell> {
    let ObjectiveBound { slo, bound_s, slack_s } = *objective;
    let place = view.place(workload);
    let slack = slack_s / slo.slo.latency.0;
    let mut cells = vec![
        Cell::text(view.name(workload)),
        Cell::keyed(&view.planned.names[place.server], place.server as f64),
        Cell::number(place.guarantee.priority as f64, Unit::Plain),
        Cell::keyed(slo.to_string(), slo.slo.latency.0),
        Cell::number(bound_s, Unit::Seconds),
        Cell::keyed(percent(slack), slack),
    ];
    cells.extend((0..6).map(|_| Cell::text("")));
    cells
}

/// The links of client hosts.
pub(super) fn hosts(hosts: Vec<HostUse>) -> Table {
    let mut columns = vec![Column::name("client host"), Column::number("links"), Column::number("workloads")];
    columns.extend(["load out", "load in", "longest wait out", "longest wait in"].map(Column::number));
    let mut table = Table::new(columns);
    for host in hosts {
        let mut cells = vec![
            Cell::text(host.name),
            Cell::number(host.network_bytes_per_s, Unit::BytesPerSec),
            Cell::number(host.workloads as f64, Unit::Plain),
        ];
        cells.extend(host.mean_load.map(|load| Cell::keyed(percent(load), load)));
        cells.extend(host.delay_s.map(|delay| Cell::number(delay, Unit::Seconds)));
        table.push(cells);
    }
    table
}

/// Refused workloads that stand open; the others are behind a fold.
const REFUSED_OPEN: usize = 12;

/// Workloads without a guarantee, and why, under a heading of its own.
pub(crate) fn refused(refused: &[RefusedWorkload], why: &str) -> Vec<Block> {
    let (open, folded) = refused.split_at(refused.len().min(REFUSED_OPEN));
    let mut blocks = vec![refused_some(open, why).into()];
    if !folded.is_empty() {
        let summary = plural(folded.len(), "more workload");
        blocks.push(Block::fold(summary, [refused_some(folded, why).into()]));
    }
    blocks
}

fn refused_some(refused: &[RefusedWorkload], why: &str) -> Table {
    let mut table = Table::new([Column::name("workload"), Column::name("SLO"), Column::text(why)]);
    for RefusedWorkload { workload, slo, reason, .. } in refused {
        table.push([
            Cell::text(workload).status(Status::Bad),
            Cell::keyed(slo.to_string(), slo.latency.0),
            Cell::text(reason),
        ]);
    }
    table
}

/// Failures of servers: who goes where, and what is not survived.
pub(super) fn failures(survival: &PlanSurvival) -> Vec<Block> {
    let headings = ["if this fails", "goes to", "worst slack", "of", "workloads"];
    let mut table = Table::new(headings.map(Column::text));
    for failure in &survival.failures {
        survival::rows(failure, true).into_iter().for_each(|row| table.push(row.map(Cell::text)));
    }
    let idle = match survival.idle.as_slice() {
        [] => "No server is kept idle for failures.".to_owned(),
        idle => format!("Kept idle for failures: {}.", idle.join(", ")),
    };
    let mut blocks = vec![Block::paragraph(idle), table.into()];
    for failure in &survival.failures {
        let reasons = survival::not_survived(failure, true);
        blocks.extend(reasons.into_iter().map(|it| Block::paragraph(format!("Not survived: {it}."))));
    }
    blocks
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
