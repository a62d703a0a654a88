//! Pages of the controller for browsers: what the cluster promises, to whom, and what was decided.
//!
//! They are made as reports of other verbs are, by `plot`: one document, complete without scripts, which loads nothing.
//! A script renews the content when the stream of events has news. Readers see what their token shows; a tenant's pages
//! have nothing of other tenants. All of them only read.

mod cluster;
mod describe;
mod frame;
mod history;
mod lists;
mod live;
mod requests;
mod server;
mod sign_in;
mod tables;
mod text;
mod what_if;
mod workload;

use crate::cluster::Cluster;
use axum::Router;
use axum::routing::{get, post};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Cluster>> {
    Router::new()
        .route("/", get(cluster::show))
        .route("/workloads", get(lists::workloads))
        .route("/servers", get(lists::servers))
        .route("/agents", get(lists::agents))
        .route("/workload", get(workload::show))
        .route("/server", get(server::show))
        .route("/decisions", get(history::decisions))
        .route("/events", get(history::events))
        .route("/what-if", get(what_if::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
}
