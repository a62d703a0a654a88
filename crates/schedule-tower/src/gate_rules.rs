//! What a service before others does with a request before it calls them: where its tag comes from, and what orders it.

use crate::tag_headers;
use gat::{Edge, InnerTier, RequestTag, TagCodec, TagOrder};
use http::Request;
use machine::clock;
use schedule::{AsyncGate, EntryFuture, RequestKey};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where the tag of a request comes from.
#[derive(Debug)]
pub(crate) enum TagSource {
    /// It is made here, whatever the request claims.
    Stamp(Mutex<Edge>),
    /// It is what an edge stamped, within limits.
    Believe(Mutex<InnerTier>),
}

/// What all services of a layer do with requests.
#[derive(Debug)]
pub(crate) struct GateRules {
    pub(crate) gate: AsyncGate,
    pub(crate) source: Arc<TagSource>,
    pub(crate) codec: TagCodec,
    pub(crate) order: TagOrder,
    pub(crate) wait_max: Option<Duration>,
}

impl GateRules {
    /// Decides on the tag of a request, which gets it as an extension.
    pub(crate) fn tag<B>(&self, request: &mut Request<B>) -> RequestTag {
        let now_ns = clock::real_time();
        let tag = match &*self.source {
            TagSource::Stamp(edge) => {
                let tag = edge.lock().unwrap_or_else(PoisonError::into_inner).enter(now_ns);
                tag_headers::write(&self.codec, request.headers_mut(), tag);
                tag
            }
            TagSource::Believe(tier) => {
                // An extension is from a layer of this process before this one, and not from a client.
                let stamped = request.extensions().get::<RequestTag>().copied();
                stamped.unwrap_or_else(|| {
                    let received = tag_headers::read(&self.codec, request.headers());
                    tier.lock().unwrap_or_else(PoisonError::into_inner).receive(received, now_ns)
                })
            }
        };
        request.extensions_mut().insert(tag);
        tag
    }

    pub(crate) fn entry(&self, tag: RequestTag) -> EntryFuture {
        let key = RequestKey(tag.key(self.order));
        match self.wait_max {
            Some(limit) => self.gate.enter_within(key, limit),
            None => self.gate.enter(key),
        }
    }

    /// Whether handlers may say that their request waits. At the edge those that wait are inside as well.
    pub(crate) fn lends_permit(&self) -> bool {
        matches!(&*self.source, TagSource::Believe(_))
    }
}
