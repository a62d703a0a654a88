//! Common parts of the handlers of requests.

use crate::cluster::Cluster;
use crate::error::ApiError;
use axum::extract::State;
use axum::http::StatusCode;
use std::sync::Arc;

pub(crate) type Shared = State<Arc<Cluster>>;

/// Runs work that holds a thread, such as a decision.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| {
        Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "the request failed in the middle"))
    })
}
