//! Keys by which a repeated request is told from a new one.

use crate::error::ApiError;
use axum::http::{HeaderMap, StatusCode};

/// Returns the key by which a repeated request is told from a new one.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let key = headers.get("idempotency-key").map(|key| key.to_str().map(str::to_owned));
    let key = key.transpose().map_err(|_| ApiError::invalid("idempotency-key: expected ASCII characters"))?;
    match key {
        Some(key) if key.is_empty() || key.len() > 200 => {
            Err(ApiError::invalid("idempotency-key: expected 1 to 200 characters"))
        }
        key => Ok(key),
    }
}

pub(crate) fn used_key() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "idempotency-key: it was used for another request")
}
