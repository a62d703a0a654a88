//! The service behind the layers that stamp or read tags: it tags a request and lets it wait for its turn
//! before the inner service.

use crate::gate_rules::GateRules;
use crate::gated_body::GatedBody;
use crate::gated_response::GatedResponse;
use http::{Request, Response};
use http_body::Body;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// A service whose requests are tagged and wait for their turn, created by
/// [`EdgeLayer`](crate::EdgeLayer) or [`GateLayer`](crate::GateLayer).
#[derive(Debug, Clone)]
pub struct GateService<S> {
    pub(crate) inner: S,
    pub(crate) rules: Arc<GateRules>,
}

impl<S, B, R> Service<Request<B>> for GateService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body,
{
    type Response = Response<GatedBody<R>>;
    type Error = S::Error;
    type Future = GatedResponse<S, B>;

    /// Always ready: requests wait at the gate, where their age is known.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (tag, request) = self.rules.tag(request);
        let entry = self.rules.entry(tag);
        let service = self.inner.clone();
        let rules = Arc::clone(&self.rules);
        GatedResponse::new(entry, service, request, tag, rules)
    }
}
