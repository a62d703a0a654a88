//! What a service before others does with a request before it calls them: where its tag comes from, and what orders it.

use crate::tag_headers;
use gat::{Edge, EdgeClock, InnerTier, RequestSlo, RequestTag, TagCodec, TagOrder};
use http::Request;
use http::request::Parts;
use machine::clock;
use schedule::{AsyncGate, EntryFuture, RequestKey};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where the tag of a request comes from.
#[derive(Debug)]
pub(crate) enum TagSource {
    /// It is made here, whatever the request claims.
    Stamp(Mutex<Edge>),
    /// It is what an edge stamped, within limits.
    Received(Mutex<InnerTier>),
}

/// Says which SLO a request has by what it asks for.
type SloFunction = dyn Fn(&Parts) -> Option<RequestSlo> + Send + Sync;

/// The SLO of a request by what it asks for.
#[derive(Clone)]
pub(crate) struct SloOfRequest(pub(crate) Arc<SloFunction>);

impl fmt::Debug for SloOfRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SloOfRequest")
    }
}

/// What all services of a layer do with requests.
#[derive(Debug)]
pub(crate) struct GateRules {
    pub(crate) gate: AsyncGate,
    pub(crate) source: Arc<TagSource>,
    pub(crate) codec: TagCodec,
    pub(crate) order: TagOrder,
    /// Only where tags are stamped.
    pub(crate) slo_of: Option<SloOfRequest>,
    pub(crate) wait_max: Option<Duration>,
}

impl GateRules {
    /// Decides on the tag of a request, which gets it as an extension.
    pub(crate) fn tag<B>(&self, request: Request<B>) -> (RequestTag, Request<B>) {
        let (mut parts, body) = request.into_parts();
        let tag = match &*self.source {
            TagSource::Stamp(edge) => self.stamp(edge, &mut parts),
            TagSource::Received(tier) => self.accept(tier, &parts),
        };
        parts.extensions.insert(tag);
        (tag, Request::from_parts(parts, body))
    }

    fn stamp(&self, edge: &Mutex<Edge>, parts: &mut Parts) -> RequestTag {
        let (stamped, clock) = {
            let mut edge = edge.lock().unwrap_or_else(PoisonError::into_inner);
            (edge.enter(clock::real_time()), edge.clock())
        };
        let slo =
            self.slo_of.as_ref().filter(|_| clock == EdgeClock::Real).and_then(|slo_of| slo_of.0(parts));
        let tag = slo.map_or(stamped, |slo| stamped.with_slo(slo));
        tag_headers::write(&self.codec, &mut parts.headers, tag);
        tag
    }

    fn accept(&self, tier: &Mutex<InnerTier>, parts: &Parts) -> RequestTag {
        // An extension is from a layer of this process before this one, and not from a client.
        if let Some(tag) = parts.extensions.get::<RequestTag>() {
            return *tag;
        }
        let received = tag_headers::read(&self.codec, &parts.headers);
        tier.lock().unwrap_or_else(PoisonError::into_inner).receive(received, clock::real_time())
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
        matches!(&*self.source, TagSource::Received(_))
    }
}
