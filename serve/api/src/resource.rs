//! Descriptions that operators replace as a whole, with entity tags (RFC 9110, 8.8.3 and 13.1.1).
//!
//! A client that changes a description sends the tag of the one that it read as `If-Match`. If another operator was
//! faster, nothing is replaced.

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::handler::blocking;
use axum::Json;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use controller::{ClusterState, Command, WorkloadState};
use std::sync::Arc;

/// A description that is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resource {
    Classes,
    Hosts,
}

impl Resource {
    /// Answers with the present description and its tag.
    pub(crate) fn show(self, state: &ClusterState) -> Response {
        let tag = [(ETAG, self.tag(state))];
        match self {
            Self::Classes => (tag, Json(state.classes_description().cloned())).into_response(),
            Self::Hosts => {
                let text = state.hosts_description().map_or("", |described| &described.text);
                (tag, text.to_owned()).into_response()
            }
        }
    }

    /// Returns the tag of the present description, or of having none.
    fn tag(self, state: &ClusterState) -> String {
        let content = match self {
            Self::Classes => serde_json::to_vec(&state.classes_description()),
            Self::Hosts => serde_json::to_vec(&state.hosts_description()),
        };
        let hash = blake3::hash(&content.expect("a description is plain data"));
        format!("\"{}\"", &hash.to_hex()[..32])
    }

    fn exists(self, state: &ClusterState) -> bool {
        match self {
            Self::Classes => state.classes_description().is_some(),
            Self::Hosts => state.hosts_description().is_some(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Classes => "the classes",
            Self::Hosts => "the hosts",
        }
    }

    /// Refuses a change of another description than the one that the client read.
    fn check(self, state: &ClusterState, headers: &HeaderMap) -> Result<(), ApiError> {
        if matches(headers, &self.tag(state), self.exists(state)) {
            return Ok(());
        }
        let message = format!("{} have changed since they were read; nothing was replaced", self.name());
        Err(ApiError::new(StatusCode::PRECONDITION_FAILED, message)
            .hint("another operator was faster: read them again, and repeat the change"))
    }
}

/// Returns the entity tag of the promise of a workload: each admission and renewal begins another.
pub(crate) fn promise_tag(id: u64, workload: &WorkloadState) -> String {
    format!("\"{id}-{}\"", workload.covered.renewed_by.unwrap_or(id))
}

/// Returns true unless a client wants a thing with another tag than this one, or one that exists.
pub(crate) fn matches(headers: &HeaderMap, tag: &str, exists: bool) -> bool {
    let mut wanted = headers.get_all(IF_MATCH).into_iter().peekable();
    if wanted.peek().is_none() {
        return true;
    }
    let mut tags = wanted.filter_map(|value| value.to_str().ok()).flat_map(|tags| tags.split(','));
    tags.any(|wanted| wanted.trim() == tag || wanted.trim() == "*" && exists)
}

/// Replaces a description by a command, if it is the one that the client read. Answers with the new tag.
pub(crate) async fn replace(
    cluster: Arc<Cluster>,
    headers: HeaderMap,
    resource: Resource,
    command: Command,
) -> Result<Response, ApiError> {
    blocking(move || {
        let mut core = cluster.lock();
        resource.check(core.controller.state(), &headers)?;
        let event = core.controller.decide(&command)?;
        cluster.commit(&mut core, [event])?;
        let tag = resource.tag(core.controller.state());
        Ok((StatusCode::NO_CONTENT, [(ETAG, tag)]).into_response())
    })
    .await
}
