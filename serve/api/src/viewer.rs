//! The reader of a page or of the stream: a token in the header, or the session of a browser.
//!
//! A session reads and changes nothing: [`Caller`](crate::caller::Caller), which commands ask for, does not know it.

use crate::caller::{hash_of_bearer, refused, role_of};
use crate::cluster::Cluster;
use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::header::COOKIE;
use axum::http::{HeaderMap, request::Parts};
use controller::Role;
use std::sync::Arc;

/// Name of the cookie with the secret of a session.
pub(crate) const SESSION_COOKIE: &str = "tailwright-session";
/// Name of the header by which proxies say how their client speaks.
pub(crate) const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// A reader with the rights of an operator or a tenant.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// Tenant whose things it may see; `None` for all.
    seen: Option<String>,
    /// Hash of its token.
    pub(crate) token: String,
    /// Secret of the session that stands for the token.
    session: Option<String>,
}

impl Viewer {
    /// Returns the tenant whose things the viewer may see; `None` for all.
    pub(crate) fn sees(&self) -> Option<&str> {
        self.seen.as_deref()
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.seen.is_none()
    }

    /// Returns true if the viewer may see what is a tenant's.
    pub(crate) fn may_see(&self, tenant: &str) -> bool {
        self.sees().is_none_or(|seen| seen == tenant)
    }

    /// Returns true while its token has the same rights, and its session has not ended.
    pub(crate) fn is_welcome(&self, cluster: &Cluster) -> bool {
        if let Some(session) = &self.session
            && cluster.visits.token_of(session).as_ref() != Some(&self.token)
        {
            return false;
        }
        Self::of_token(cluster, self.token.clone()).is_ok_and(|present| present.seen == self.seen)
    }

    /// Returns the viewer with the token of this hash.
    ///
    /// # Errors
    /// If the token is unknown, or that of an agent.
    pub(crate) fn of_token(cluster: &Cluster, token: String) -> Result<Self, ApiError> {
        match role_of(cluster, &token) {
            Some(Role::Operator) => Ok(Self { seen: None, token, session: None }),
            Some(Role::Tenant { tenant }) => Ok(Self { seen: Some(tenant), token, session: None }),
            Some(Role::Agent { .. } | Role::Metrics) => {
                Err(ApiError::forbidden("this needs the token of a tenant or an operator"))
            }
            None => Err(refused("the token is unknown")),
        }
    }
}

/// Returns the secret of the session of a browser.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == SESSION_COOKIE).map(|(_, secret)| secret)
}

impl FromRequestParts<Arc<Cluster>> for Viewer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, cluster: &Arc<Cluster>) -> Result<Self, ApiError> {
        if let Some(token) = hash_of_bearer(&parts.headers) {
            return Self::of_token(cluster, token);
        }
        let session = session_of(&parts.headers).ok_or_else(|| refused("there is no token"))?;
        let token = cluster.visits.token_of(session).ok_or_else(|| refused("the session has ended"))?;
        let viewer = Self::of_token(cluster, token)?;
        Ok(Self { session: Some(session.to_owned()), ..viewer })
    }
}
