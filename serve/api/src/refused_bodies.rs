//! Bodies of refused requests, received to their end.
//!
//! A connection that is closed while its client still sends is reset, and the reset destroys the answer that says why. So
//! what is left of the body of a refused request is received first and forgotten, within limits.

use crate::limits::{REFUSED_BODY_MAX, REFUSED_BODY_TIME};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::timeout;

/// The body of a request: the handler's, and ours after it.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<BodyDataStream>>);

impl SharedBody {
    fn lock(&self) -> MutexGuard<'_, BodyDataStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for SharedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lock().poll_next_unpin(context)
    }
}

/// Lets a request be answered. If the answer is an error, what the handler left of the body is received before it is sent.
pub(crate) async fn receive_refused_bodies(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let shared = SharedBody(Arc::new(Mutex::new(body.into_data_stream())));
    let mut rest = shared.clone();
    let response = next.run(Request::from_parts(parts, Body::from_stream(shared))).await;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        let receive = async {
            let mut received = 0;
            while let Some(Ok(part)) = rest.next().await {
                received += part.len();
                if received > REFUSED_BODY_MAX {
                    break;
                }
            }
        };
        // A client that sends more, or takes longer, may lose the answer.
        let _ = timeout(REFUSED_BODY_TIME, receive).await;
    }
    response
}
