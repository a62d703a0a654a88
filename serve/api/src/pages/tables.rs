//! Rows of servers, workloads, agents and decisions.

use crate::documents::{DecisionDocument, standing_word};
use crate::pages::requests::verdict_cell;
use crate::pages::text::{escaped, percent};
use crate::utc::utc;
use crate::viewer::Viewer;
use agent::AgentMode;
use controller::{ClusterState, HostState, ServerView, Standing, WorkloadState};
use model::{PerStage, Policy, Stage};
use plot::{Cell, Column, Status, Table, Unit};

/// A workload with its identity.
pub(super) type NumberedWorkload<'a> = (u64, &'a WorkloadState);

pub(super) fn workload_address(tenant: &str, name: &str) -> String {
    format!("/workload?tenant={}&name={}", escaped(tenant), escaped(name))
}

pub(super) fn server_address(name: &str) -> String {
    format!("/server?name={}", escaped(name))
}

/// Returns the share of the SLO's latency that the bound leaves.
pub(super) fn margin(workload: &WorkloadState) -> f64 {
    1.0 - workload.bound_s / workload.slo.latency.0
}

pub(super) fn standing_status(standing: Standing) -> Status {
    match standing {
        Standing::Enforced => Status::Good,
        Standing::Pending | Standing::Advised => Status::Warn,
        Standing::Gone => Status::Bad,
    }
}

/// Returns the share of each stage that a policy promises to workloads.
pub(super) fn promised(policy: &Policy) -> PerStage<f64> {
    let mut shares = PerStage::<f64>::default();
    for limit in policy.workloads.iter().flat_map(|workload| &workload.limits) {
        shares[limit.stage] += limit.limit.rate;
    }
    shares
}

/// Returns the share of the stage of which most is promised.
pub(super) fn busiest(policy: &Policy) -> f64 {
    promised(policy).into_array().into_iter().fold(0.0, f64::max)
}

pub(super) fn workloads<'a>(
    state: &ClusterState,
    viewer: &Viewer,
    rows: impl IntoIterator<Item = NumberedWorkload<'a>>,
) -> Table {
    let mut table = Table::new([
        Column::name("workload"),
        Column::name("server"),
        Column::number("SLO"),
        Column::number("bound"),
        Column::number("margin"),
        Column::name("standing"),
        Column::name("SLO met"),
    ]);
    for (id, workload) in rows {
        let request = &workload.request;
        let standing = state.standing(id);
        let name = if viewer.is_operator() { request.full_name() } else { request.name.clone() };
        let server = Cell::text(&workload.server);
        let margin = margin(workload);
        table.push([
            Cell::text(name).link(workload_address(&request.tenant, &request.name)),
            if viewer.is_operator() { server.link(server_address(&workload.server)) } else { server },
            Cell::keyed(workload.slo.to_string(), workload.slo.latency.0),
            Cell::number(workload.bound_s, Unit::Seconds),
            Cell::keyed(percent(margin), margin),
            Cell::text(standing_word(standing)).status(standing_status(standing)),
            verdict_cell(workload.verdict),
        ]);
    }
    table
}

pub(super) fn servers<'a>(rows: impl IntoIterator<Item = ServerView<'a>>) -> Table {
    let mut table = Table::new([
        Column::name("server"),
        Column::name("class"),
        Column::name("host"),
        Column::number("workloads"),
        Column::number("link in"),
        Column::number("storage"),
        Column::number("link out"),
        Column::name("policy"),
    ]);
    for server in rows {
        let shares = promised(server.decided);
        let of = |stage: Stage| Cell::keyed(percent(shares[stage]), shares[stage]);
        let policy = match (server.decided.workloads.is_empty(), server.is_settled) {
            (true, true) => Cell::text("none"),
            (false, true) => Cell::text("in force").status(Status::Good),
            (_, false) => Cell::text("changing").status(Status::Warn),
        };
        table.push([
            Cell::text(server.name).link(server_address(server.name)),
            Cell::text(server.class),
            Cell::text(server.host),
            Cell::number(server.decided.workloads.len() as f64, Unit::Count),
            of(Stage::NetworkIn),
            of(Stage::Storage),
            of(Stage::NetworkOut),
            policy,
        ]);
    }
    table
}

pub(super) fn agents<'a>(
    state: &ClusterState,
    rows: impl IntoIterator<Item = (&'a str, &'a HostState)>,
) -> Table {
    let mut table = Table::new([
        Column::name("host"),
        Column::name("agent"),
        Column::number("applied"),
        Column::number("wanted"),
        Column::text("servers with a proxy"),
        Column::text("remarks"),
    ]);
    for (name, host) in rows {
        let wanted = state.wanted_epoch(name);
        let applied = whole(host.applied);
        let applied = match &host.agent {
            Some(_) if host.applied == wanted => applied.status(Status::Good),
            Some(_) => applied.status(Status::Warn),
            None => applied,
        };
        let mode = match &host.agent {
            None => Cell::text("has not reported").status(Status::Warn),
            Some((AgentMode::Advising, _)) => Cell::text("advises").status(Status::Warn),
            Some((AgentMode::Applying, _)) => Cell::text("applies").status(Status::Good),
        };
        let storage = host.agent.iter().flat_map(|(_, abilities)| &abilities.storage);
        let storage: Vec<&str> = storage.map(String::as_str).collect();
        let advice = host.advice.as_ref().filter(|advice| advice.epoch == wanted);
        let remarks = host.warnings.iter().chain(advice.map(|advice| &advice.text));
        let remarks = remarks.map(String::as_str).collect::<Vec<_>>().join("; ");
        table.push([
            Cell::text(name),
            mode,
            applied,
            whole(wanted),
            Cell::text(if storage.is_empty() { "none".to_owned() } else { storage.join(", ") }),
            if host.warnings.is_empty() {
                Cell::text(remarks)
            } else {
                Cell::text(remarks).status(Status::Bad)
            },
        ]);
    }
    table
}

pub(super) fn decisions(viewer: &Viewer, rows: impl IntoIterator<Item = DecisionDocument>) -> Table {
    let mut table = Table::new([
        Column::number("event"),
        Column::name("time"),
        Column::name("workload"),
        Column::name("answer"),
        Column::text("reason"),
    ]);
    for decision in rows {
        let status = match decision.answer.as_str() {
            "admitted" | "renewed" => Some(Status::Good),
            "refused" | "withdrawn" | "renewal-withdrawn" => Some(Status::Bad),
            "kept" => Some(Status::Warn),
            _ => None,
        };
        let answer = Cell::text(&decision.answer);
        let DecisionDocument { tenant, name, .. } = &decision;
        let shown = if viewer.is_operator() { format!("{tenant}/{name}") } else { name.clone() };
        table.push([
            whole(decision.seq.unwrap_or(0)),
            Cell::keyed(utc(decision.at_ns.unwrap_or(0)), decision.at_ns.unwrap_or(0) as f64),
            Cell::text(shown).link(workload_address(tenant, name)),
            status.map_or(answer.clone(), |status| answer.status(status)),
            Cell::text(decision.reason.unwrap_or_default()),
        ]);
    }
    table
}

/// A cell with all digits of a number, such as a position in the history.
pub(super) fn whole(number: u64) -> Cell {
    Cell::keyed(number.to_string(), number as f64)
}
