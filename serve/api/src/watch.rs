//! The stream of what happens, as server-sent events (HTML Standard, 9.2).
//!
//! Operators get the history, event by event. Tenants get their own decisions, and their own workloads when bound or
//! standing changes. The stream is pulled: it reads the history from where the client is, so that one that reads slowly
//! holds one event in memory, and not all since. What the connection cannot send within
//! [`UNREAD_MAX`](crate::limits::UNREAD_MAX) closes it.

use crate::cluster::Cluster;
use crate::documents::{DecisionDocument, WorkloadDocument};
use crate::error::ApiError;
use crate::handler::blocking;
use crate::limits::VISITS_MAX;
use crate::privacy::decision_for;
use crate::viewer::Viewer;
use crate::visits::StreamPermit;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Comments are sent in this interval, so that both sides notice a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time after which a client connects again.
const RETRY: Duration = Duration::from_secs(1);
/// Decisions of a tenant that are read at a time.
const DECISIONS_MAX: usize = 64;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WatchQuery {
    /// Position in the history after which the stream begins; the present one by default.
    after: Option<u64>,
}

pub(crate) async fn watch(
    viewer: Viewer,
    State(cluster): State<Arc<Cluster>>,
    Query(query): Query<WatchQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let permit = cluster.visits.stream(&viewer.token).ok_or_else(|| {
        let message = format!("this token has {VISITS_MAX} streams open; close some");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let resumed = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let news = cluster.watch();
    let present = cluster.lock().controller.state().seq;
    // A history that was restored is shorter than one that a client saw.
    let after: u64 = resumed.or(query.after).unwrap_or(present).min(present);
    let mut watcher = Watcher {
        after,
        news,
        viewer,
        waiting: VecDeque::from([Event::default().retry(RETRY)]),
        known: BTreeMap::new(),
        cluster,
        _permit: permit,
    };
    if after == present {
        // Nothing was missed: only changes from now on are news.
        watcher.changed_workloads();
    }
    let stream = unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok(event), watcher))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// A client of the stream.
struct Watcher {
    /// Position in the history up to which everything was read.
    after: u64,
    news: watch::Receiver<u64>,
    viewer: Viewer,
    /// Events that were read and not sent.
    waiting: VecDeque<Event>,
    /// A tenant's workloads as they were sent, by identity.
    known: BTreeMap<u64, WorkloadDocument>,
    cluster: Arc<Cluster>,
    _permit: StreamPermit,
}

impl Watcher {
    /// Waits for the next event; `None` at the end of the service or of the viewer's rights.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let is_over =
                *self.news.borrow_and_update() == u64::MAX || !self.viewer.is_welcome(&self.cluster);
            if is_over {
                return None;
            }
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let is_behind = match self.viewer.sees() {
                None => self.read_event().await,
                Some(_) => self.read_decisions(),
            };
            if !is_behind && self.waiting.is_empty() {
                self.news.changed().await.ok()?;
            }
        }
    }

    /// Reads the next event of the history. Returns false if there is none.
    async fn read_event(&mut self) -> bool {
        let cluster = Arc::clone(&self.cluster);
        let after = self.after;
        let read = blocking(move || Ok(cluster.lock().store.events_after(after, 1)?)).await;
        // A history that cannot be read has no news; commands say what is wrong with it.
        let Some(recorded) = read.ok().and_then(|events| events.into_iter().next()) else { return false };
        self.after = recorded.seq;
        self.waiting.push_back(event_of("event", recorded.seq, &recorded));
        true
    }

    /// Reads the next decisions on a tenant's workloads, and then what has changed about these. Returns false if nothing
    /// is left to read.
    fn read_decisions(&mut self) -> bool {
        {
            let cluster = Arc::clone(&self.cluster);
            let core = cluster.lock();
            let state = core.controller.state();
            for decision in state.decisions_after(self.after) {
                // Decisions of one event are sent together: a client that resumes names the event.
                if self.waiting.len() >= DECISIONS_MAX && decision.seq != self.after {
                    return true;
                }
                self.after = decision.seq;
                if self.viewer.may_see(&decision.tenant) {
                    let document = DecisionDocument::new(state, decision);
                    let document = decision_for(self.viewer.sees(), document);
                    self.waiting.push_back(event_of("decision", decision.seq, &document));
                }
            }
            self.after = state.seq;
        }
        let changed = self.changed_workloads();
        self.waiting.extend(changed);
        false
    }

    /// Returns events of a tenant's workloads that differ from what was sent.
    fn changed_workloads(&mut self) -> Vec<Event> {
        let cluster = Arc::clone(&self.cluster);
        let Some(tenant) = self.viewer.sees() else { return Vec::new() };
        let core = cluster.lock();
        let state = core.controller.state();
        let own = state.workloads_of(tenant);
        let present: BTreeMap<u64, WorkloadDocument> =
            own.map(|(id, workload)| (id, WorkloadDocument::new(state, id, workload))).collect();
        let changed = present.iter().filter(|(id, workload)| self.known.get(id) != Some(workload));
        let events = changed.map(|(_, workload)| event_of("workload", state.seq, workload)).collect();
        self.known = present;
        events
    }
}

fn event_of(kind: &str, seq: u64, document: &impl Serialize) -> Event {
    let data = serde_json::to_string(document).expect("a document is plain data");
    Event::default().event(kind).id(seq.to_string()).data(data)
}
