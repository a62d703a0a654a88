//! Observations of the requests of workloads: as JSON, and as metrics.

use crate::caller::Caller;
use crate::documents::ObservationPage;
use crate::error::ApiError;
use crate::handler::{Shared, blocking};
use crate::metrics_page::ClusterMetrics;
use crate::routes::NameQuery;
use crate::turns::each_workload;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// Observations of one page.
const PAGE_MAX: usize = 100;

pub(crate) async fn list_observations(
    caller: Caller,
    State(cluster): Shared,
    Query(query): Query<NameQuery>,
) -> Result<Json<ObservationPage>, ApiError> {
    let seen = caller.sees()?;
    blocking(move || {
        let now = cluster.instant();
        let limit = query.limit.clamp(1, PAGE_MAX);
        let mut observations = Vec::new();
        let next =
            each_workload(&cluster, seen.as_deref(), query.after, limit, |controller, id, workload| {
                observations.push(controller.observations().of(controller.state(), id, workload, now));
            });
        Ok(Json(ObservationPage { observations, next }))
    })
    .await
}

pub(crate) async fn show_metrics(
    caller: Caller,
    State(cluster): Shared,
) -> Result<impl IntoResponse, ApiError> {
    caller.scrapes()?;
    let page = blocking(move || Ok(metrics::exposition(ClusterMetrics::collect(&cluster))));
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page.await?))
}
