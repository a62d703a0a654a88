//! The answer to a request that was not admitted.

use crate::gated_body::GatedBody;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use schedule::EntryRefusal;

/// Returns true for a gRPC request, whose client expects the status in a trailer.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    content.starts_with(b"application/grpc") && !content.starts_with(b"application/grpc-web")
}

/// Returns 503 without a body, or gRPC's UNAVAILABLE (14), which is a 200 with its own status.
pub(crate) fn refusal_response<B>(refusal: EntryRefusal, is_grpc: bool) -> Response<GatedBody<B>> {
    let mut response = Response::new(GatedBody::empty());
    if is_grpc {
        let message = match refusal {
            EntryRefusal::TimedOut => "not admitted in time",
            EntryRefusal::Cancelled => "cancelled before it was admitted",
            EntryRefusal::Overloaded => "too many requests wait",
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("grpc-status", HeaderValue::from_static("14"));
        headers.insert("grpc-message", HeaderValue::from_static(message));
    } else {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
