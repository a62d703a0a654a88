//! Errors as HTTP answers: a status, and a sentence with what to do.

use axum::Json;
use axum::body::to_bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use controller::CommandError;
use model::OperationError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::StoreError;

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    status: StatusCode,
    document: ErrorDocument,
}

/// The body of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ErrorDocument {
    /// A sentence.
    error: String,
    /// Advice.
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

/// Longest text of an error that becomes a document, bytes.
const TEXT_MAX: usize = 64 << 10;

/// Gives errors that no handler saw, such as a body that is not JSON, the form of all others.
pub(crate) async fn errors_as_json(response: Response) -> Response {
    let status = response.status();
    let media_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_document = media_type.is_some_and(|media_type| !media_type.starts_with(b"text/plain"));
    if !status.is_client_error() || is_document {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, TEXT_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let error = match (status, text.trim()) {
        (StatusCode::NOT_FOUND, "") => ApiError::unknown("there is nothing at this address"),
        (StatusCode::METHOD_NOT_ALLOWED, "") => {
            ApiError::new(status, "this address does not take this method")
        }
        (_, text) => ApiError::new(status, text),
    };
    let mut answer = error.into_response();
    // Such as `Allow`.
    for (name, value) in &parts.headers {
        answer.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    answer
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
