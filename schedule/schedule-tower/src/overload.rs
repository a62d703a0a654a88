//! The answer to a request that was not admitted.

use crate::gated_body::GatedBody;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use schedule::EntryRefusal;

/// Whether the request is one of gRPC, whose clients want to know in a trailer what happened.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    content.starts_with(b"application/grpc") && !content.starts_with(b"application/grpc-web")
}

/// 503 without a body, or UNAVAILABLE (14) of gRPC, which is 200 with a status of its own.
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
