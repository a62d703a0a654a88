//! Observations of the requests of workloads: as JSON, and as metrics.

use crate::caller::Caller;
use crate::error::ApiError;
use crate::handler::{Shared, blocking};
use crate::metrics_page::metrics_page;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use controller::WorkloadObservation;

pub(crate) async fn list_observations(
    caller: Caller,
    State(cluster): Shared,
) -> Result<Json<Vec<WorkloadObservation>>, ApiError> {
    let seen = caller.sees()?;
    blocking(move || {
        let core = cluster.lock();
        let state = core.controller.state();
        let now = cluster.instant();
        let is_seen = |tenant: &str| seen.as_ref().is_none_or(|seen| seen == tenant);
        let own = state.workloads().filter(|(_, workload)| is_seen(&workload.request.tenant));
        let observations = core.controller.observations();
        Ok(Json(own.map(|(id, workload)| observations.of(id, workload, now)).collect()))
    })
    .await
}

pub(crate) async fn show_metrics(
    caller: Caller,
    State(cluster): Shared,
) -> Result<impl IntoResponse, ApiError> {
    caller.scrapes()?;
    let page = blocking(move || {
        let collected = metrics_page(&cluster.lock().controller, cluster.instant());
        Ok(metrics::exposition(collected))
    });
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page.await?))
}
