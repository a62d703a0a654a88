//! A server: what of it is promised to which workload, and whether its hosts enforce it.

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::pages::cluster::operates;
use crate::pages::frame::{Reader, Refused, page};
use crate::pages::tables::{self, promised, whole, workload_address};
use crate::pages::text::{percent, time};
use axum::extract::{Query, State};
use axum::response::Response;
use controller::{ClusterState, ServerView};
use model::{PerStage, PolicyWorkload, Stage};
use plot::{Bars, Block, Cell, Column, KeyFigure, Page, Status, Table, Unit};
use serde::Deserialize;
use std::sync::Arc;
use units::plural;

#[derive(Deserialize)]
pub(super) struct ServerQuery {
    #[serde(default)]
    name: String,
}

pub(super) async fn show(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<ServerQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/server", move |_, state, viewer| {
        operates(viewer)?;
        let server = state.server(&query.name);
        let server =
            server.ok_or_else(|| ApiError::unknown(format_args!("there is no server '{}'", query.name)))?;
        Ok(server_page(state, &server))
    })
    .await
}

fn server_page(state: &ClusterState, server: &ServerView<'_>) -> Page {
    let policy = server.decided;
    let shares = promised(policy);
    let mut facts = vec![KeyFigure::new(policy.workloads.len().to_string(), "workloads")];
    for (stage, share) in shares.iter() {
        facts.push(KeyFigure::new(percent(*share), format!("of {} promised", words(stage))));
    }
    let agents = state.hosts().filter(|(name, _)| *name == server.host);
    let page = Page::new(format!("Server {}", server.name))
        .lead(lead(server))
        .section("", [facts.into()])
        .section("Host", [tables::agents(state, agents).into()]);
    if policy.workloads.is_empty() {
        return page;
    }
    let mut chart = Bars::grouped(
        "Share of the server by workload",
        ("share of the stage's capacity", Unit::Percent),
        ["network in", "storage", "network out"],
    )
    .note("The rates of the limits. A workload may use more while others leave room, where its enforcer allows it.");
    for workload in &policy.workloads {
        chart = chart.row(&workload.name, PerStage::from_fn(|stage| rate(workload, stage)).into_array());
    }
    let json = serde_json::to_string_pretty(policy).expect("a policy is plain data");
    page.section("Workloads", [chart.into(), limits(server).into()])
        .section("Policy", [Block::fold("The policy as hosts get it", [Block::Preformatted(json)])])
}

fn lead(server: &ServerView<'_>) -> String {
    let place = format!("Class {}, on host {}.", server.class, server.host);
    let decided = plural(server.decided.workloads.len() as u64, "workload");
    if server.is_settled {
        return format!("{place} Its hosts enforce the latest policy.");
    }
    let confirmed = plural(server.confirmed.workloads.len() as u64, "workload");
    format!("{place} Its hosts change from a policy for {confirmed} to one for {decided}.")
}

fn limits(server: &ServerView<'_>) -> Table {
    let mut columns = vec![
        Column::name("workload"),
        Column::number("priority"),
        Column::number("SLO"),
        Column::number("bound"),
        Column::number("margin"),
    ];
    for stage in ["in", "storage", "out"] {
        columns.extend([Column::number(format!("{stage} rate")), Column::number(format!("{stage} burst"))]);
    }
    let mut table = Table::new(columns);
    for workload in &server.decided.workloads {
        let bound = workload.bound_s.unwrap_or(f64::NAN);
        let margin = 1.0 - bound / workload.slo.latency.0;
        // A tenant's name has no '/'.
        let (tenant, name) = workload.name.split_once('/').unwrap_or(("", &workload.name));
        let bound_cell = Cell::number(bound, Unit::Seconds);
        let mut cells = vec![
            Cell::text(&workload.name).link(workload_address(tenant, name)),
            workload.priority.map_or(Cell::text("–"), |priority| whole(priority.into())),
            Cell::keyed(workload.slo.to_string(), workload.slo.latency.0),
            if margin >= 0.0 { bound_cell } else { bound_cell.status(Status::Bad) },
            Cell::keyed(percent(margin), margin),
        ];
        for stage in Stage::ALL {
            let burst =
                workload.limits.iter().find(|limit| limit.stage == stage).map(|limit| limit.limit.burst);
            let rate = rate(workload, stage);
            cells.push(Cell::keyed(percent(rate), rate));
            cells.push(burst.map_or(Cell::text("–"), |burst| Cell::keyed(time(burst), burst)));
        }
        table.push(cells);
    }
    table
}

fn rate(workload: &PolicyWorkload, stage: Stage) -> f64 {
    workload.limits.iter().filter(|limit| limit.stage == stage).map(|limit| limit.limit.rate).sum()
}

/// The name of a stage in a sentence.
pub(super) fn words(stage: Stage) -> &'static str {
    match stage {
        Stage::NetworkIn => "the link in",
        Stage::Storage => "storage",
        Stage::NetworkOut => "the link out",
    }
}
