//! The layer where requests enter the system: each gets a start, and the number inside is limited.

use crate::gate_rules::{GateRules, SloOfRequest, TagSource};
use crate::gate_service::GateService;
use gat::{Edge, RequestSlo, TagCodec, TagOrder};
use http::request::Parts;
use schedule::{AsyncGate, AsyncGateSettings, ConcurrencyLimit, GateStatistics, PoolOrder};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower_layer::Layer;

/// TailClipper's limit of requests inside (§5.1).
const WINDOW: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// Stamps requests, strips their own claims, and limits the number inside, so that others wait before the
/// system and not in it (TailClipper §5.1). Clones share the clock and the window.
#[derive(Debug, Clone)]
pub struct EdgeLayer {
    window: AsyncGate,
    source: Arc<TagSource>,
    codec: TagCodec,
    order: TagOrder,
    slo_of: Option<SloOfRequest>,
    wait_max: Option<Duration>,
}

impl Default for EdgeLayer {
    /// Real time, tags in `baggage`, the paper's window of 200 requests, and an unlimited queue before
    /// it.
    fn default() -> Self {
        Self::new(Edge::default(), Some(WINDOW), None)
    }
}

impl EdgeLayer {
    /// Creates a layer that stamps by this edge and admits `inside_max` requests, any number for `None`.
    /// Of more than `queued_max` requests before the window, the last in order are answered as
    /// overloaded. The window has no patience: a request keeps its place until the body of its response
    /// has ended, however long that takes.
    pub fn new(edge: Edge, inside_max: Option<NonZeroU32>, queued_max: Option<usize>) -> Self {
        let window = AsyncGate::new(AsyncGateSettings {
            limit: inside_max.map_or(ConcurrencyLimit::Unlimited, ConcurrencyLimit::Fixed),
            order: PoolOrder::Age,
            patience: None,
            waiting_max: queued_max,
            ..AsyncGateSettings::default()
        });
        let source = Arc::new(TagSource::Stamp(Mutex::new(edge)));
        Self {
            window,
            source,
            codec: TagCodec::default(),
            order: TagOrder::Start,
            slo_of: None,
            wait_max: None,
        }
    }

    /// Sets the deadline of a request by its content: its start plus the SLO of its class
    /// ([`gat::ClassSlos`]). Requests for which `slo_of` returns `None` have the edge's deadline, if it
    /// gives any; those of a logical clock have none.
    #[must_use]
    pub fn with_slo_of(self, slo_of: impl Fn(&Parts) -> Option<RequestSlo> + Send + Sync + 'static) -> Self {
        Self { slo_of: Some(SloOfRequest(Arc::new(slo_of))), ..self }
    }

    /// Sets the order in which the window admits requests.
    #[must_use]
    pub fn ordered_by(self, order: TagOrder) -> Self {
        Self { order, ..self }
    }

    /// Sets the place of tags.
    #[must_use]
    pub fn with_codec(self, codec: TagCodec) -> Self {
        Self { codec, ..self }
    }

    /// Limits the wait before the window; after it, a request is answered as overloaded.
    #[must_use]
    pub fn wait_at_most(self, limit: Duration) -> Self {
        Self { wait_max: Some(limit), ..self }
    }

    /// Returns the numbers of requests before the window (waiting) and inside (serving), and totals.
    pub fn statistics(&self) -> GateStatistics {
        self.window.statistics()
    }
}

impl<S> Layer<S> for EdgeLayer {
    type Service = GateService<S>;

    fn layer(&self, inner: S) -> GateService<S> {
        let Self { window: gate, source, codec, order, slo_of, wait_max } = self.clone();
        let rules = GateRules { gate, source, codec, order, slo_of, wait_max };
        GateService { inner, rules: Arc::new(rules) }
    }
}
