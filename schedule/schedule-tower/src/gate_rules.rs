//! Tagging and ordering of a request by a service before it calls the inner one.

use crate::tag_headers;
use gat::{Edge, EdgeClock, InnerTier, RequestSlo, RequestTag, TagCodec, TagOrder};
use http::Request;
use http::request::Parts;
use machine::clock;
use schedule::{AsyncGate, EntryFuture, RequestKey};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Source of a request's tag.
#[derive(Debug)]
pub(crate) enum TagSource {
    /// Stamped here; the request's claims are ignored.
    Stamp(Mutex<Edge>),
    /// Received from an edge, and validated.
    Received(Mutex<InnerTier>),
}

/// Returns the SLO of a request by its content.
type SloFunction = dyn Fn(&Parts) -> Option<RequestSlo> + Send + Sync;

/// The SLO of a request by its content.
#[derive(Clone)]
pub(crate) struct SloOfRequest(pub(crate) Arc<SloFunction>);

impl fmt::Debug for SloOfRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SloOfRequest")
    }
}

/// Rules shared by all services of a layer.
#[derive(Debug)]
pub(crate) struct GateRules {
    pub(crate) gate: AsyncGate,
    pub(crate) source: Arc<TagSource>,
    pub(crate) codec: TagCodec,
    pub(crate) order: TagOrder,
    /// Only if tags are stamped.
    pub(crate) slo_of: Option<SloOfRequest>,
    pub(crate) wait_max: Option<Duration>,
}

impl GateRules {
    /// Determines the tag of a request, and attaches it as an extension.
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
        // An extension is from an earlier layer of this process, not from a client.
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

    /// Returns true if handlers may report that their request waits. At the edge, waiting requests still
    /// count as inside.
    pub(crate) fn lends_permit(&self) -> bool {
        matches!(&*self.source, TagSource::Received(_))
    }
}
