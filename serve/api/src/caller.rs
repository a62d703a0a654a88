//! The caller of a request: the role of its token.

use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::secret::hash_of_secret;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode, request::Parts};
use controller::Role;
use std::sync::Arc;

/// A caller with a token of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Role);

impl Caller {
    /// Refuses callers other than operators.
    pub(crate) fn operates(&self) -> Result<(), ApiError> {
        match self.0 {
            Role::Operator => Ok(()),
            _ => Err(ApiError::forbidden("this needs the token of an operator")),
        }
    }

    /// Refuses callers that may not read metrics, which name all tenants.
    pub(crate) fn scrapes(&self) -> Result<(), ApiError> {
        match self.0 {
            Role::Operator | Role::Metrics => Ok(()),
            _ => Err(ApiError::forbidden("this needs a token for metrics, or that of an operator")),
        }
    }

    /// Returns the tenant that the caller acts for: its own, or for an operator the one that is named.
    pub(crate) fn tenant(&self, named: Option<&str>) -> Result<String, ApiError> {
        match (&self.0, named) {
            (Role::Tenant { tenant }, None) => Ok(tenant.clone()),
            (Role::Tenant { tenant }, Some(named)) if tenant == named => Ok(tenant.clone()),
            (Role::Tenant { tenant }, Some(_)) => {
                Err(ApiError::forbidden(format_args!("this token is of tenant '{tenant}'")))
            }
            (Role::Operator, Some(named)) => Ok(named.to_owned()),
            (Role::Operator, None) => Err(ApiError::invalid("tenant: expected the name of one")),
            (Role::Agent { .. } | Role::Metrics, _) => {
                Err(ApiError::forbidden("this needs the token of a tenant"))
            }
        }
    }

    /// Returns the tenant whose things the caller may see; `None` for all.
    pub(crate) fn sees(&self) -> Result<Option<String>, ApiError> {
        match &self.0 {
            Role::Operator => Ok(None),
            Role::Tenant { tenant } => Ok(Some(tenant.clone())),
            Role::Agent { .. } | Role::Metrics => {
                Err(ApiError::forbidden("this needs the token of a tenant"))
            }
        }
    }

    /// Returns the host that the caller reports for.
    pub(crate) fn host(&self) -> Result<&str, ApiError> {
        match &self.0 {
            Role::Agent { host } => Ok(host),
            _ => Err(ApiError::forbidden("this needs the token of an agent")),
        }
    }
}

impl FromRequestParts<Arc<Cluster>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, cluster: &Arc<Cluster>) -> Result<Self, ApiError> {
        let hash = hash_of_bearer(&parts.headers).ok_or_else(|| refused("there is no token"))?;
        let role = role_of(cluster, &hash);
        role.map(Self).ok_or_else(|| refused("the token is unknown"))
    }
}

/// Returns the hash of the token in the header of a request.
pub(crate) fn hash_of_bearer(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
    secret.map(hash_of_secret)
}

/// Returns the role of the token with this hash; `None` if it is unknown or revoked.
pub(crate) fn role_of(cluster: &Cluster, hash: &str) -> Option<Role> {
    let core = cluster.lock();
    let token = core.controller.state().tokens().find(|token| token.hash == hash);
    token.map(|token| token.role.clone())
}

pub(crate) fn refused(error: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, error).hint("send a token: Authorization: Bearer TOKEN")
}
