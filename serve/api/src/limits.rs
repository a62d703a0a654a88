//! Limits of what clients take: sizes of bodies, streams, sessions and time.

use std::time::Duration;

/// Largest body of a request other than a trace, bytes.
pub const BODY_MAX: usize = 4 << 20;
/// Largest report of an agent, bytes; the counters of a workload take about 2 KiB.
pub const REPORT_MAX: usize = 64 << 20;
/// Largest trace, bytes as sent.
pub const TRACE_MAX: usize = 64 << 20;
/// Time in which a client has to take what was sent to it. Then its connection is closed.
pub(crate) const UNREAD_MAX: Duration = Duration::from_secs(30);
/// Streams of events at a time, and sessions of browsers, of one token.
pub(crate) const VISITS_MAX: usize = 32;
/// Time after which a session of a browser ends.
pub(crate) const SESSION: Duration = Duration::from_secs(12 * 60 * 60);
/// Rows of a list on one page.
pub(crate) const ROWS_MAX: usize = 200;
