//! The history, newest first: decisions on workloads, and for operators all events.

use crate::cluster::Cluster;
use crate::documents::DecisionDocument;
use crate::pages::cluster::operates;
use crate::pages::describe::described;
use crate::pages::frame::{Reader, Refused, page};
use crate::pages::tables::{self, whole};
use crate::privacy::decision_for;
use crate::utc::utc;
use axum::extract::{Query, State};
use axum::response::Response;
use plot::{Block, Cell, Column, Link, Page, Table};
use serde::Deserialize;
use std::sync::Arc;

/// Decisions and events of one page.
const PAGE: usize = 100;

#[derive(Deserialize)]
pub(super) struct HistoryQuery {
    /// Position in the history before which the page ends; absent for the latest.
    before: Option<u64>,
}

pub(super) async fn decisions(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/decisions", move |_, state, viewer| {
        let mut shown: Vec<DecisionDocument> = Vec::new();
        let mut older = None;
        for decision in state.decisions_after(0).iter().rev() {
            let is_here = query.before.is_none_or(|before| decision.seq < before);
            if !is_here || !viewer.may_see(&decision.tenant) {
                continue;
            }
            let last = shown.last().and_then(|last| last.seq);
            // Decisions of one event stay on one page.
            if shown.len() >= PAGE && last != Some(decision.seq) {
                older = last;
                break;
            }
            shown.push(decision_for(viewer.sees(), DecisionDocument::new(state, decision)));
        }
        let table = tables::decisions(viewer, shown);
        let page = Page::new("Decisions").lead("What was asked for and decided, newest first.");
        Ok(page.section("", with_links(table, "/decisions", query.before, older)))
    })
    .await
}

pub(super) async fn events(
    reader: Reader,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<HistoryQuery>,
) -> Result<Response, Refused> {
    page(reader, cluster, "/events", move |core, state, viewer| {
        operates(viewer)?;
        let end = query.before.unwrap_or(u64::MAX).min(state.seq + 1);
        let after = end.saturating_sub(1 + PAGE as u64);
        let count = usize::try_from(end.saturating_sub(1) - after).unwrap_or(PAGE);
        let mut table =
            Table::new([Column::number("event"), Column::name("time"), Column::text("what happened")]);
        for recorded in core.store.events_after(after, count)?.iter().rev() {
            table.push([
                whole(recorded.seq),
                Cell::keyed(utc(recorded.at_ns), recorded.at_ns as f64),
                Cell::text(described(&recorded.event)),
            ]);
        }
        let older = (after > 0).then_some(after + 1);
        let page = Page::new("Events").lead("The history of the cluster, newest first.");
        Ok(page.section("", with_links(table, "/events", query.before, older)))
    })
    .await
}

fn with_links(table: Table, address: &str, before: Option<u64>, older: Option<u64>) -> Vec<Block> {
    let mut links = Vec::new();
    if before.is_some() {
        links.push(Link::new("Newest", address));
    }
    if let Some(older) = older {
        links.push(Link::new("Older", format!("{address}?before={older}")));
    }
    let mut blocks = vec![table.into()];
    if !links.is_empty() {
        blocks.push(Block::Links(links));
    }
    blocks
}
