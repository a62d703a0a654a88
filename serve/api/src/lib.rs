//! The HTTP interface of the controller: commands and questions as JSON, a stream of events, and pages.
//!
//! A handler takes the lock of the one [`Cluster`], decides, stores, applies, and answers; long work (reading a trace)
//! is done before. Tokens have one of four roles, and are stored as hashes. With
//! [`Tls`] the service speaks TLS; without it, it belongs on loopback, or behind a proxy that does.
//!
//! A browser signs in with a token and gets a session, which opens `pages` and the stream and changes nothing:
//! commands need the token itself in a header, which no other site can make a browser send.

mod caller;
mod cluster;
mod description;
mod documents;
mod error;
mod handler;
mod idempotency;
mod limits;
mod metrics_page;
mod observations;
mod operation;
mod operations;
mod pages;
mod privacy;
mod refused_bodies;
mod renewals;
mod resource;
mod routes;
mod secret;
mod service;
mod tls;
mod tls_stream;
mod turns;
mod uploads;
mod utc;
mod viewer;
mod visits;
mod watch;

pub use cluster::Cluster;
pub use documents::{
    AgentDocument, AlertPost, ClientRequest, DecisionDocument, DecisionPage, EventPage, IssuedToken,
    ObservationPage, RenewalQuestion, ServerDocument, TokenDocument, TokenRequest, TraceDocument,
    WorkloadDocument, WorkloadPage, WorkloadQuestion,
};
pub use error::ApiError;
pub use limits::{BODY_MAX, REPORT_MAX, TRACE_MAX};
pub use operations::description;
pub use secret::{hash_of_secret, new_secret, random_number};
pub use service::{ServiceNews, ServiceSettings, serve};
pub use tls::{CertificateNews, Tls, TlsFiles};
