//! All workloads, servers and agents, in pages by name.

use crate::cluster::Cluster;
use crate::limits::ROWS_MAX;
use crate::pages::cluster::operates;
use crate::pages::frame::{Reader, Refused, page};
use crate::pages::tables::{self, NumberedWorkload};
use axum::extract::{Query, State};
use axum::response::Response;
use controller::{HostState, ServerView};
use plot::{Block, Link, Page};
use serde::Deserialize;
use std::sync::Arc;
use units::plural;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    /// Number of rows before the page.
    #[serde(default)]
    skip: usize,
}

pub(super) async fn workloads(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/workloads", move |_, state, viewer| {
        let all: Vec<NumberedWorkload<'_>> = match viewer.sees() {
            Some(tenant) => state.workloads_of(tenant).collect(),
            None => state.workloads().collect(),
        };
        let table = tables::workloads(state, viewer, on_page(&all, &query));
        Ok(list("Workloads", all.len(), "workload", table.into(), "/workloads", &query))
    })
    .await
}

pub(super) async fn servers(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/servers", move |_, state, viewer| {
        operates(viewer)?;
        let all: Vec<ServerView<'_>> = state.servers().collect();
        let table = tables::servers(on_page(&all, &query));
        Ok(list("Servers", all.len(), "server", table.into(), "/servers", &query))
    })
    .await
}

pub(super) async fn agents(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/agents", move |_, state, viewer| {
        operates(viewer)?;
        let all: Vec<(&str, &HostState)> = state.hosts().collect();
        let table = tables::agents(state, on_page(&all, &query));
        Ok(list("Agents", all.len(), "host", table.into(), "/agents", &query))
    })
    .await
}

fn on_page<T: Copy>(all: &[T], query: &ListQuery) -> impl Iterator<Item = T> {
    all.iter().copied().skip(query.skip).take(ROWS_MAX)
}

fn list(title: &str, count: usize, noun: &str, table: Block, address: &str, query: &ListQuery) -> Page {
    let mut links = Vec::new();
    if query.skip > 0 {
        let before = query.skip.saturating_sub(ROWS_MAX);
        links.push(Link::new("Rows before", format!("{address}?skip={before}")));
    }
    if count.saturating_sub(query.skip) > ROWS_MAX {
        let after = query.skip + ROWS_MAX;
        links.push(Link::new("Rows after", format!("{address}?skip={after}")));
    }
    let mut blocks = vec![table];
    if !links.is_empty() {
        blocks.push(Block::Links(links));
    }
    Page::new(title).lead(format!("{}, by name.", plural(count as u64, noun))).section("", blocks)
}
