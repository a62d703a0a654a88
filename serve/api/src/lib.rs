//! The HTTP interface of the controller: commands and questions as JSON, a stream of events, and pages.
//!
//! A handler takes the lock of the one [`Cluster`], decides, stores, applies, and answers; long work (reading a trace)
//! is done before. Tokens have one of four roles, and are stored as hashes. There is no TLS: listen on loopback or on a
//! network that is trusted, or put a proxy in front.
//!
//! A browser signs in with a token and gets a session, which opens `pages` and the stream and changes nothing:
//! commands need the token itself in a header, which no other site can make a browser send.

mod caller;
mod cluster;
mod documents;
mod error;
mod handler;
mod limits;
mod metrics_page;
mod observations;
mod pages;
mod privacy;
mod resource;
mod routes;
mod secret;
mod service;
mod uploads;
mod viewer;
mod visits;
mod watch;

pub use cluster::Cluster;
pub use documents::{
    AgentDocument, ClientRequest, DecisionDocument, DecisionPage, EventPage, IssuedToken, ServerDocument,
    TokenDocument, TokenRequest, TraceDocument, WorkloadDocument, WorkloadQuestion,
};
pub use error::ApiError;
pub use limits::{BODY_MAX, REPORT_MAX, TRACE_MAX};
pub use secret::{hash_of_secret, new_secret, random_number};
pub use service::serve;
