//! Oldest Request First of TailClipper in services of tower: hyper, axum, tonic.
//!
//! - [`EdgeLayer`] stands where requests enter the system. It stamps them, whatever they claim, and lets 200 inside.
//! - [`GateLayer`] stands before a service. It accepts the tag of a request within limits, and admits the c oldest.
//! - [`TagClientLayer`] stands before a client. Calls to hosts that may see the tag carry it, and others do not.
//!
//! ```
//! use schedule_tower::{EdgeLayer, GateLayer, TagClientLayer};
//! use schedule::{AsyncGate, AsyncGateSettings};
//!
//! let service = GateLayer::new(AsyncGate::new(AsyncGateSettings::default()));
//! let entry_point = EdgeLayer::default();
//! let calls = TagClientLayer::new("store,*.svc.cluster.local".parse()?);
//! # let _ = (service, entry_point, calls);
//! # Ok::<(), gat::HostPatternError>(())
//! ```
//!
//! **What a permit covers.** The request counts from its admission until the body of its response has ended or is dropped, and
//! with it until the handler's future is dropped, by an error, a panic, or the end of the connection. What is handed to
//! the server and still in its buffers, and a connection after an upgrade, does not count.
//!
//! **Readiness.** [`poll_ready`](tower_service::Service::poll_ready) of these services before others is always ready, because the
//! age of a request is not known before it is there: requests wait at the gate, and an inner service that is not ready is waited for
//! while inside. Those that wait too long, or are too many, get the answer that the service is overloaded.
//!
//! **Tags of tasks.** [`current_tag`] is the tag of the request whose future is being polled, set before and taken back after
//! each poll, as TailClipper (§6) has it for coroutines. So a client deep inside finds it under any runtime, without an
//! argument through all functions in between; a task that is spawned takes it along by [`with_tag`]. Handlers find it among the
//! request's extensions as well.
#![warn(missing_docs)]

mod client_layer;
mod edge_layer;
mod gate_layer;
mod gate_rules;
mod gate_service;
mod gated_body;
mod gated_response;
mod overload;
mod tag_headers;
mod task_tag;

pub use client_layer::{TagClientLayer, TagClientService};
pub use edge_layer::EdgeLayer;
pub use gate_layer::GateLayer;
pub use gate_service::GateService;
pub use gated_body::GatedBody;
pub use gated_response::GatedResponse;
pub use task_tag::{TaggedFuture, current_tag, with_tag};

/// The code of the page for readers, held to what it says.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/gate-layers.md")]
struct ServicesPage;
