//! Limits of what clients take: sizes of bodies, streams, sessions and time.

use std::time::Duration;

/// Largest body of a request other than a trace, bytes.
pub const BODY_MAX: usize = 4 << 20;
/// Largest report of an agent, bytes; the counters of a workload take about 2 KiB.
pub const REPORT_MAX: usize = 64 << 20;
/// Largest trace, bytes as sent.
pub const TRACE_MAX: usize = 64 << 20;
/// Largest trace that was sent compressed, bytes of its text.
pub(crate) const TRACE_EXPANDED_MAX: u64 = 2 << 30;
/// Most requests of a trace.
pub(crate) const TRACE_REQUESTS_MAX: u64 = 50_000_000;
/// Traces that are read at a time. Reading one takes a CPU.
pub(crate) const TRACE_READERS_MAX: usize = 2;
/// Most bytes of a refused request that are received before it is answered, and the time for it.
pub(crate) const REFUSED_BODY_MAX: usize = 80 << 20;
pub(crate) const REFUSED_BODY_TIME: Duration = Duration::from_secs(10);
/// Time between two parts of a trace that is sent.
pub(crate) const TRACE_PART_MAX: Duration = Duration::from_secs(30);
/// Time in which a client has to take what was sent to it. Then its connection is closed.
pub(crate) const UNREAD_MAX: Duration = Duration::from_secs(30);
/// Streams of events at a time, and sessions of browsers, of one token.
pub(crate) const VISITS_MAX: usize = 32;
/// Time after which a session of a browser ends.
pub(crate) const SESSION: Duration = Duration::from_secs(12 * 60 * 60);
/// Rows of a list on one page.
pub(crate) const ROWS_MAX: usize = 200;
/// Time for the handshake of TLS.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Time for the answer to a client that speaks HTTP without TLS.
pub(crate) const PLAIN_MAX: Duration = Duration::from_secs(1);
/// Time between two looks at the files of certificate and key.
pub(crate) const CERTIFICATE_LOOK: Duration = Duration::from_secs(5);
/// Time between two looks for silent agents.
pub(crate) const AGENT_LOOK: Duration = Duration::from_secs(5);
