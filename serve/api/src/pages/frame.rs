//! Common parts of pages: links, the button to sign out, headers of HTTP, and the way to the form where a session is missing.

use crate::cluster::{Cluster, ClusterCore};
use crate::error::ApiError;
use crate::handler::blocking;
use crate::pages::text::escaped;
use crate::secret::new_secret;
use crate::viewer::Viewer;
use axum::extract::FromRequestParts;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{StatusCode, request::Parts};
use axum::response::{IntoResponse, Response};
use controller::ClusterState;
use plot::{Block, Form, Link, Page, Site};
use std::sync::Arc;

/// The reader of a page; without a session the answer is the form to sign in.
pub(super) struct Reader(Viewer);

impl Reader {
    pub(super) fn viewer(&self) -> &Viewer {
        &self.0
    }
}

/// Refusal of a page.
pub(super) enum Refused {
    /// There is no session; the page that was wanted.
    SignIn(String),
    Error(ApiError),
}

impl FromRequestParts<Arc<Cluster>> for Reader {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, cluster: &Arc<Cluster>) -> Result<Self, Refused> {
        match Viewer::from_request_parts(parts, cluster).await {
            Ok(viewer) => Ok(Self(viewer)),
            Err(error) if error.status() == StatusCode::UNAUTHORIZED => {
                let wanted = parts.uri.path_and_query().map_or("/", |wanted| wanted.as_str());
                Err(Refused::SignIn(wanted.to_owned()))
            }
            Err(error) => Err(Refused::Error(error)),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn(wanted) => see_other(&format!("/sign-in?next={}", escaped(&wanted))),
            Self::Error(error) => error_page(&error),
        }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

/// Makes a page of the present state, which the browser keeps up to date, and answers with it.
pub(super) async fn page(
    reader: Reader,
    cluster: Arc<Cluster>,
    here: &'static str,
    content: impl FnOnce(&ClusterCore, &ClusterState, &Viewer) -> Result<Page, ApiError> + Send + 'static,
) -> Result<Response, Refused> {
    made_page(reader, cluster, (here, true), content).await
}

/// Makes a page of the present state, which stays as it is, and answers with it.
pub(super) async fn still_page(
    reader: Reader,
    cluster: Arc<Cluster>,
    here: &'static str,
    content: impl FnOnce(&ClusterCore, &ClusterState, &Viewer) -> Result<Page, ApiError> + Send + 'static,
) -> Result<Response, Refused> {
    made_page(reader, cluster, (here, false), content).await
}

async fn made_page(
    Reader(viewer): Reader,
    cluster: Arc<Cluster>,
    (here, is_live): (&'static str, bool),
    content: impl FnOnce(&ClusterCore, &ClusterState, &Viewer) -> Result<Page, ApiError> + Send + 'static,
) -> Result<Response, Refused> {
    Ok(blocking(move || {
        let (page, seq) = {
            let core = cluster.lock();
            let state = core.controller.state();
            (content(&core, state, &viewer)?, state.seq)
        };
        let page = page.footer(format!("tailwright {}", env!("CARGO_PKG_VERSION")));
        let nonce = new_secret().map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
        let mut site = Site::new(&nonce).links(links(&viewer, here)).form(Form::new("/sign-out", "Sign out"));
        if is_live {
            site = site.stream(format!("/v1/watch?after={seq}"));
        }
        Ok(document(StatusCode::OK, &nonce, page.to_served_html(&site)))
    })
    .await?)
}

fn links(viewer: &Viewer, here: &str) -> Vec<Link> {
    let all = [
        ("Cluster", "/", true),
        ("Workloads", "/workloads", false),
        ("Servers", "/servers", true),
        ("Agents", "/agents", true),
        ("What if", "/what-if", false),
        ("Decisions", "/decisions", false),
        ("Events", "/events", true),
    ];
    let mut links = Vec::new();
    for (text, address, is_for_operators) in all {
        // The first page of a tenant has its workloads.
        let address = if viewer.is_operator() || address != "/workloads" { address } else { "/" };
        if viewer.is_operator() || !is_for_operators {
            links.push(Link::new(text, address).current(address == here));
        }
    }
    links
}

/// Answers with a page for readers without a session.
pub(super) fn public_page(status: StatusCode, page: &Page) -> Response {
    match new_secret() {
        Ok(nonce) => document(status, &nonce, page.to_served_html(&Site::new(&nonce))),
        Err(error) => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
    }
}

pub(super) fn error_page(error: &ApiError) -> Response {
    let (message, hint) = error.text();
    let blocks =
        hint.map(Block::paragraph).into_iter().chain([Block::Links(vec![Link::new("First page", "/")])]);
    public_page(error.status(), &Page::new("This page cannot be shown").lead(message).section("", blocks))
}

/// Answers with another address to look at.
pub(super) fn see_other(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, address.to_owned()), (CACHE_CONTROL, "no-store".to_owned())])
        .into_response()
}

fn document(status: StatusCode, nonce: &str, html: String) -> Response {
    // Besides escaping: a browser runs only the page's own script, and sends forms and asks for news only here.
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        // With `no-referrer` browsers would not say where forms come from.
        (REFERRER_POLICY, "same-origin".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    (status, headers, html).into_response()
}
