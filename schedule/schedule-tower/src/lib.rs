//! TailClipper's Oldest Request First in services of tower: hyper, axum, tonic.
//!
//! - [`EdgeLayer`] belongs where requests enter the system. It stamps them, ignoring their claims, and
//!   admits 200.
//! - [`GateLayer`] stands before a service. It accepts the tag of a request within limits, and admits the c oldest.
//! - [`TagClientLayer`] stands before a client. Calls to hosts that may see tags carry one; others do
//!   not.
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
//! **Extent of a permit.** The request counts from its admission until the body of its response has ended
//! or is dropped, or until the handler's future is dropped, by an error, a panic, or the end of the
//! connection. Data handed to the server but still in its buffers, and a connection after an upgrade, do
//! not count.
//!
//! **Readiness.** [`poll_ready`](tower_service::Service::poll_ready) of these services before others is
//! always ready, because the age of a request is unknown before it arrives. Requests wait at the gate,
//! and wait for an inner service that is not ready while inside. Those that wait too long, or are too
//! many, are answered as overloaded.
//!
//! **Tags of tasks.** [`current_tag`] is the tag of the request whose future is being polled, set before
//! and reset after each poll, like TailClipper's (§6) for coroutines. So a client deep inside finds it
//! under any runtime, without an argument through all functions in between. A spawned task inherits it by
//! [`with_tag`]. Handlers also find it among the request's extensions.
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

/// Compiles the code of the readers' page as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reference/gate-layers.md")]
struct ServicesPage;
