//! Errors as HTTP answers: a status, and a sentence with what to do.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use controller::CommandError;
use model::OperationError;
use serde::{Deserialize, Serialize};
use store::StoreError;

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    document: ErrorDocument,
}

/// The body of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ErrorDocument {
    error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl ApiError {
    #[expect(clippy::needless_pass_by_value, reason = "callers pass format_args!")]
    pub(crate) fn new(status: StatusCode, error: impl ToString) -> Self {
        Self { status, document: ErrorDocument { error: error.to_string(), hint: None } }
    }

    pub(crate) fn invalid(error: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(crate) fn unknown(error: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(crate) fn forbidden(error: impl ToString) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the message and the hint.
    pub(crate) fn text(&self) -> (&str, Option<&str>) {
        (&self.document.error, self.document.hint.as_deref())
    }

    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass format_args!")]
    pub(crate) fn hint(mut self, hint: impl ToString) -> Self {
        self.document.hint = Some(hint.to_string());
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.document)).into_response()
    }
}

impl From<CommandError> for ApiError {
    fn from(error: CommandError) -> Self {
        let status = match error {
            CommandError::Invalid(_) => StatusCode::BAD_REQUEST,
            CommandError::Conflict(_) => StatusCode::CONFLICT,
            CommandError::Unknown(_) => StatusCode::NOT_FOUND,
        };
        Self::new(status, error)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let hint = error.hint.clone();
        let answer = Self::new(StatusCode::INSUFFICIENT_STORAGE, error);
        match hint {
            Some(hint) => answer.hint(hint),
            None => answer,
        }
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        let answer = Self::invalid(&error.message);
        match error.hint {
            Some(hint) => answer.hint(hint),
            None => answer,
        }
    }
}
