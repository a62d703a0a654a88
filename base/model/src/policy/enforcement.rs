//! Terms of use of a server, which bounds assume and enforcers keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More requests than any device serves at a time.
pub const CHANNELS_MAX: u32 = 4096;
/// Time of a link that its shaper may send at once, seconds, unless the largest packet takes longer.
///
/// The shaper's timer may be late by as much without losing rate. Beside builds on two cores, HTB with 100 µs
/// reached the rate that it reached with 500 µs, and with one packet at 1 Gbit/s half of it.
pub const LINK_BURST_S: f64 = 100e-6;

/// Concurrency at a server that its enforcers permit, and the work of others that a request may find in
/// its way: the terms of a bound beside the limits of the workloads.
///
/// Bounds hold while the server is used within these terms. A proxy keeps `outstanding`, `beside` and
/// `reserve`. The sizes of best-effort requests and packets are assumptions about clients and links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEnforcement {
    /// Number of requests that the device serves at a time, each with an equal part of its capacity; 1 to
    /// [`CHANNELS_MAX`].
    pub channels: u32,
    /// Maximum number of requests at the device, including those in service; at least `channels`.
    pub outstanding: u32,
    /// Maximum number of lower-priority requests at the device while one of higher priority is there.
    pub beside: u32,
    /// Number of the `outstanding` places that best effort leaves free for workloads with a priority;
    /// fewer than `outstanding`.
    pub reserve: u32,
    /// Device time of the largest best-effort request that bounds account for, seconds; 0 without best
    /// effort.
    pub best_effort_request_s: f64,
    /// Maximum number of bytes that a link has begun to send when a packet of higher priority comes.
    pub packet_bytes: f64,
    /// Time of a link that its shaper may send at once after it was idle, seconds; absent in older policies, whose
    /// bounds did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_burst_s: Option<f64>,
    /// Time of a request in the proxy beyond waiting for its turn, seconds.
    pub proxy_s: f64,
}
