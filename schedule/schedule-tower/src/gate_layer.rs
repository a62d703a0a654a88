//! The layer before a service inside the system: it accepts tags within limits, and admits the oldest first.

use crate::gate_rules::{GateRules, TagSource};
use crate::gate_service::GateService;
use gat::{InnerTier, ReceivedTagCounts, TagCodec, TagOrder};
use schedule::AsyncGate;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tower_layer::Layer;

/// Admits the c oldest requests to a service, by the tags that they carry. Clones have the same gate.
#[derive(Debug, Clone)]
pub struct GateLayer {
    gate: AsyncGate,
    source: Arc<TagSource>,
    codec: TagCodec,
    order: TagOrder,
    wait_max: Option<Duration>,
}

impl GateLayer {
    /// A layer with this gate, for tags in `baggage` under the default keys, oldest first, with waits of any length.
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

    /// The same layer for tags in another place.
    #[must_use]
    pub fn with_codec(self, codec: TagCodec) -> Self {
        Self { codec, ..self }
    }

    /// The same layer with what it accepts of tags; its counts begin anew.
    #[must_use]
    pub fn with_tier(self, tier: InnerTier) -> Self {
        Self { source: Arc::new(TagSource::Received(Mutex::new(tier))), ..self }
    }

    /// The same layer, which serves in another order.
    #[must_use]
    pub fn ordered_by(self, order: TagOrder) -> Self {
        Self { order, ..self }
    }

    /// The same layer, which answers that the service is overloaded after a wait of so long: 503, or UNAVAILABLE of gRPC.
    /// How many may wait is a setting of the gate.
    #[must_use]
    pub fn wait_at_most(self, limit: Duration) -> Self {
        Self { wait_max: Some(limit), ..self }
    }

    /// What was done with the tags of requests so far, for a log and for metrics. Requests that a layer before this one has tagged
    /// do not count.
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
