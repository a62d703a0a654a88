//! The first page: for an operator the cluster, for a tenant its workloads.

use crate::cluster::Cluster;
use crate::documents::DecisionDocument;
use crate::error::ApiError;
use crate::pages::frame::{Reader, Refused, page};
use crate::pages::tables::{self, NumberedWorkload, busiest, margin, promised};
use crate::privacy::decision_for;
use crate::viewer::Viewer;
use agent::AgentMode;
use axum::extract::State;
use axum::response::Response;
use controller::{ClusterState, HostState, ServerView, Standing};
use plot::{Bars, Block, KeyFigure, Link, Page, Status, Unit};
use std::sync::Arc;
use units::plural;

/// Rows of a list on the first page.
const FIRST: usize = 20;

pub(super) async fn show(reader: Reader, State(cluster): State<Arc<Cluster>>) -> Result<Response, Refused> {
    page(reader, cluster, "/", |_, state, viewer| {
        Ok(match viewer.sees() {
            Some(tenant) => tenant_page(state, viewer, tenant),
            None => cluster_page(state, viewer),
        })
    })
    .await
}

fn cluster_page(state: &ClusterState, viewer: &Viewer) -> Page {
    let workloads: Vec<NumberedWorkload<'_>> = state.workloads().collect();
    let mut servers: Vec<ServerView<'_>> = state.servers().collect();
    let hosts: Vec<(&str, &HostState)> = state.hosts().collect();
    let in_use = servers.iter().filter(|server| !server.decided.workloads.is_empty()).count();
    servers.sort_by(|a, b| busiest(b.decided).total_cmp(&busiest(a.decided)));
    let facts = vec![
        KeyFigure::new(format!("{in_use} of {}", servers.len()), "servers in use"),
        KeyFigure::new(workloads.len().to_string(), "workloads"),
        promised_figure(state, &workloads),
        agents_figure(state, &hosts),
    ];
    let mut page = Page::new("Cluster").lead(lead(state, &workloads)).section("", [facts.into()]);
    if servers.is_empty() {
        let how = "There are no servers yet. An operator describes them: `tailwright ctl describe --class-file cluster.toml --hosts \
                   hosts.toml`.";
        return page.section("", [Block::paragraph(how)]);
    }
    let drawn = servers.iter().filter(|server| !server.decided.workloads.is_empty()).take(FIRST);
    let mut chart = Bars::grouped(
        "Share of each server that is promised",
        ("share of the stage's capacity", Unit::Percent),
        ["network in", "storage", "network out"],
    )
    .limit(1.0, "all of it")
    .note(
        "The sum of the rates of all limits of a server. Limits are chosen again whenever a workload comes: this does not say how \
         much room is left.",
    );
    for server in drawn {
        chart = chart.row(server.name, promised(server.decided).into_array());
    }
    let mut blocks = if in_use > 0 { vec![chart.into()] } else { Vec::new() };
    blocks.push(tables::servers(servers.iter().take(FIRST).copied()).into());
    blocks.extend(more(servers.len(), "server", "/servers"));
    page = page.section("Servers", blocks);

    let mut shown = workloads.clone();
    // Workloads that are not enforced come first, and then those with the least room.
    let is_kept = |id: u64| state.standing(id) == Standing::Enforced;
    shown.sort_by(|(a, one), (b, other)| {
        is_kept(*a).cmp(&is_kept(*b)).then(margin(one).total_cmp(&margin(other)))
    });
    let mut blocks = vec![tables::workloads(state, viewer, shown.into_iter().take(FIRST)).into()];
    blocks.extend(more(workloads.len(), "workload", "/workloads"));
    page = page.section("Workloads", blocks);

    let count = hosts.len();
    let mut hosts = hosts;
    // Agents that need a look come first.
    hosts.sort_by_key(|(name, host)| host.agent.is_some() && host.applied == state.wanted_epoch(name));
    let mut blocks = vec![tables::agents(state, hosts.into_iter().take(FIRST)).into()];
    blocks.extend(more(count, "host", "/agents"));
    page.section("Agents", blocks).section("Latest decisions", latest(state, viewer))
}

fn tenant_page(state: &ClusterState, viewer: &Viewer, tenant: &str) -> Page {
    let workloads: Vec<NumberedWorkload<'_>> = state.workloads_of(tenant).collect();
    let facts =
        vec![KeyFigure::new(workloads.len().to_string(), "workloads"), promised_figure(state, &workloads)];
    let count = workloads.len();
    let mut blocks = vec![tables::workloads(state, viewer, workloads.iter().copied().take(FIRST)).into()];
    blocks.extend(more(count, "workload", "/workloads"));
    Page::new(format!("Workloads of {tenant}"))
        .lead(lead(state, &workloads))
        .section("", [facts.into()])
        .section("Workloads", blocks)
        .section("Latest decisions", latest(state, viewer))
}

fn lead(state: &ClusterState, workloads: &[NumberedWorkload<'_>]) -> String {
    let open = workloads.iter().filter(|(id, _)| state.standing(*id) != Standing::Enforced).count();
    match (workloads.len(), open) {
        (0, _) => "Nothing is promised yet.".to_owned(),
        (count, 0) => format!("{} with a bound, all enforced.", plural(count as u64, "workload")),
        (count, open) => {
            format!(
                "{} with a bound, {open} of which {} not enforced.",
                plural(count as u64, "workload"),
                is_or_are(open)
            )
        }
    }
}

fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn promised_figure(state: &ClusterState, workloads: &[NumberedWorkload<'_>]) -> KeyFigure {
    let kept = workloads.iter().filter(|(id, _)| state.standing(*id) == Standing::Enforced).count();
    let figure = KeyFigure::new(kept.to_string(), "enforced");
    match workloads.len() {
        0 => figure,
        all if all == kept => figure.status(Status::Good),
        _ => figure.status(Status::Warn),
    }
}

fn agents_figure(state: &ClusterState, hosts: &[(&str, &HostState)]) -> KeyFigure {
    let is_settled = |(name, host): &&(&str, &HostState)| {
        let applies = host.agent.as_ref().is_some_and(|(mode, _)| *mode == AgentMode::Applying);
        applies && host.applied == state.wanted_epoch(name)
    };
    let settled = hosts.iter().filter(is_settled).count();
    let figure = KeyFigure::new(format!("{settled} of {}", hosts.len()), "hosts apply what is wanted");
    match hosts.len() {
        0 => figure,
        all if all == settled => figure.status(Status::Good),
        _ => figure.status(Status::Warn),
    }
}

/// A link to all rows where the first page has some.
fn more(count: usize, noun: &str, address: &str) -> Option<Block> {
    let text = format!("All {}", plural(count as u64, noun));
    (count > FIRST).then(|| Block::Links(vec![Link::new(text, address)]))
}

fn latest(state: &ClusterState, viewer: &Viewer) -> Vec<Block> {
    let all = state.decisions_after(0).iter().rev();
    let own = all.filter(|decision| viewer.may_see(&decision.tenant)).take(10);
    let documents = own.map(|decision| decision_for(viewer.sees(), DecisionDocument::new(state, decision)));
    vec![
        tables::decisions(viewer, documents).into(),
        Block::Links(vec![Link::new("All decisions", "/decisions")]),
    ]
}

/// Refuses readers other than operators.
pub(super) fn operates(viewer: &Viewer) -> Result<(), ApiError> {
    if viewer.is_operator() {
        Ok(())
    } else {
        Err(ApiError::forbidden("this needs the token of an operator"))
    }
}
