//! Propagation of the time at which a request entered the system (its global arrival time, GAT;
//! TailClipper §3.1), so that every service on its way can serve the oldest first: pure functions of
//! header bytes and times.
//!
//! - [`Edge`] stamps requests from outside, and [`EntryWindow`] limits the number inside.
//! - [`TagCodec`] reads, writes and strips the tag in a W3C `baggage` header, or in a separate header.
//! - [`InnerTier`] decides which received tags a service accepts.
//! - [`TagDomain`] lists the hosts that may see tags.
//! - [`ClassSlos`] has the SLOs of classes by name, from which edges derive deadlines; [`TagOrder`]
//!   determines the order of requests.
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
//! Times are nanoseconds of `CLOCK_REALTIME` since 1970. The caller reads the clock.
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
