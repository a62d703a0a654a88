//! Propagation of the instant at which a request entered the system (its global arrival time, GAT; TailClipper §3.1), so
//! that every service on its way can serve the oldest first: pure functions of header bytes and instants.
//!
//! - [`Edge`] stamps what comes from outside, and [`EntryWindow`] lets a limited number inside.
//! - [`TagCodec`] reads, writes and strips the tag in a W3C `baggage` header, or in a header of its own.
//! - [`InnerTier`] decides what a service accepts of a tag that it receives.
//! - [`TagDomain`] says which hosts may see it.
//! - [`ClassSlos`] has the SLOs of classes by name, from which edges make deadlines; [`TagOrder`] says what orders requests.
//!
//! ```
//! use gat::{Edge, InnerTier, TagCodec};
//!
//! let codec = TagCodec::baggage();
//! let now_ns = 1_700_000_000_000_000_000;
//! // The edge replaces what the client claims.
//! let client: &[u8] = b"user=7,tailwright-start=1";
//! let tag = Edge::default().enter(now_ns);
//! let sent = codec.write([client], tag).value;
//! assert_eq!(sent, b"tailwright-start=1700000000000000000,user=7");
//! // A service inside reads it a millisecond later.
//! let received = codec.read([&sent[..]]);
//! assert_eq!(InnerTier::default().receive(received, now_ns + 1_000_000), tag);
//! ```
//!
//! Instants are nanoseconds of `CLOCK_REALTIME` since 1970. Whoever calls reads the clock.
#![warn(missing_docs)]

mod baggage;
mod class_slos;
mod codec;
mod domain;
mod edge;
mod inner_tier;
mod slo;
mod tag;
mod window;

pub use class_slos::ClassSlos;
pub use codec::{HeaderChange, TagCodec, TagNameError, WrittenHeader};
pub use domain::{HostPatternError, TagDomain};
pub use edge::{Edge, EdgeClock};
pub use inner_tier::{InnerTier, ReceivedTagCounts, TagCase, TagTolerance};
pub use slo::{RequestSlo, SloError};
pub use tag::{ReceivedTag, RequestTag, TagFault, TagOrder};
pub use window::{EntryDecision, EntryWindow};
