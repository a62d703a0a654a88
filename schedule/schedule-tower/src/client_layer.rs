//! The layer before a client: it decides which calls carry the tag of their request.

use crate::tag_headers;
use crate::task_tag::current_tag;
use gat::{RequestTag, TagCodec, TagDomain};
use http::Request;
use http::header::HOST;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Adds the tag of the current request to calls to hosts of the system, and removes tags from all others.
///
/// The tag is the one among the call's extensions, or else [`current_tag`]. The host is that of the URI,
/// or else of the `Host` header. The layer belongs below redirection handling, so that each hop is
/// checked.
#[derive(Debug, Clone, Default)]
pub struct TagClientLayer {
    domain: TagDomain,
    codec: TagCodec,
    host: Option<String>,
}

impl TagClientLayer {
    /// Creates a layer for calls to any host; only hosts in this domain may see tags.
    pub fn new(domain: TagDomain) -> Self {
        Self { domain, ..Self::default() }
    }

    /// Sets the place of tags.
    #[must_use]
    pub fn with_codec(self, codec: TagCodec) -> Self {
        Self { codec, ..self }
    }

    /// Sets the host of all calls, for a client such as a channel of tonic, which adds the host to the
    /// URI itself.
    #[must_use]
    pub fn to_host(self, host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..self }
    }

    fn may_see_tag<B>(&self, request: &Request<B>) -> bool {
        let named = || request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let host = self.host.as_deref().or_else(|| request.uri().host()).or_else(named);
        host.is_some_and(|host| self.domain.contains(host))
    }

    /// Writes or removes the tag. A call within the domain without a request stays unchanged.
    fn prepare<B>(&self, request: &mut Request<B>) {
        if !self.may_see_tag(request) {
            return tag_headers::strip(&self.codec, request.headers_mut());
        }
        let own = request.extensions().get::<RequestTag>().copied();
        if let Some(tag) = own.or_else(current_tag) {
            tag_headers::write(&self.codec, request.headers_mut(), tag);
        }
    }
}

impl<S> Layer<S> for TagClientLayer {
    type Service = TagClientService<S>;

    fn layer(&self, inner: S) -> TagClientService<S> {
        TagClientService { inner, layer: self.clone() }
    }
}

/// A client whose calls carry tags, created by [`TagClientLayer`].
#[derive(Debug, Clone)]
pub struct TagClientService<S> {
    inner: S,
    layer: TagClientLayer,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for TagClientService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        self.layer.prepare(&mut request);
        self.inner.call(request)
    }
}
