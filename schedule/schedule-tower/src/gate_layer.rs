//! The layer before an inner service: it accepts tags within limits, and admits the oldest first.

use crate::gate_rules::{GateRules, TagSource};
use crate::gate_service::GateService;
use gat::{InnerTier, ReceivedTagCounts, TagCodec, TagOrder};
use schedule::AsyncGate;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tower_layer::Layer;

/// Admits the c oldest requests to a service, by their tags. Clones share the gate.
#[derive(Debug, Clone)]
pub struct GateLayer {
    gate: AsyncGate,
    source: Arc<TagSource>,
    codec: TagCodec,
    order: TagOrder,
    wait_max: Option<Duration>,
}

impl GateLayer {
    /// Creates a layer with this gate, for tags in `baggage` under the default keys, oldest first, with
    /// waits of any length.
    pub fn new(gate: AsyncGate) -> Self {
        let source = TagSource::Received(Mutex::new(InnerTier::default()));
        Self {
            gate,
            source: Arc::new(source),
            codec: TagCodec::default(),
            order: TagOrder::Start,
            wait_max: None,
        }
    }

    /// Sets the place of tags.
    #[must_use]
    pub fn with_codec(self, codec: TagCodec) -> Self {
        Self { codec, ..self }
    }

    /// Sets the validation of tags; its counts start at zero.
    #[must_use]
    pub fn with_tier(self, tier: InnerTier) -> Self {
        Self { source: Arc::new(TagSource::Received(Mutex::new(tier))), ..self }
    }

    /// Sets the order of service.
    #[must_use]
    pub fn ordered_by(self, order: TagOrder) -> Self {
        Self { order, ..self }
    }

    /// Limits the wait; after it, a request is answered as overloaded: 503, or UNAVAILABLE of gRPC. The
    /// number of waiting requests is limited by the gate's settings.
    #[must_use]
    pub fn wait_at_most(self, limit: Duration) -> Self {
        Self { wait_max: Some(limit), ..self }
    }

    /// Returns the counts of received tags by case, for a log and for metrics. Requests tagged by an
    /// earlier layer are not counted.
    pub fn tag_counts(&self) -> ReceivedTagCounts {
        match &*self.source {
            TagSource::Received(tier) => tier.lock().unwrap_or_else(PoisonError::into_inner).counts(),
            TagSource::Stamp(_) => ReceivedTagCounts::default(),
        }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = GateService<S>;

    fn layer(&self, inner: S) -> GateService<S> {
        let Self { gate, source, codec, order, wait_max } = self.clone();
        GateService {
            inner,
            rules: Arc::new(GateRules { gate, source, codec, order, slo_of: None, wait_max }),
        }
    }
}
