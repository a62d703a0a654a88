//! How a server is used, as bounds count it and enforcers keep it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More requests than any device serves at a time.
pub const CHANNELS_MAX: u32 = 4096;

/// What the enforcers of a server let happen at once, and what of others a request may find in its way: the terms of a
/// bound beside the limits of the workloads.
///
/// Bounds hold while the server is used as this says. A proxy keeps `outstanding`, `beside` and `reserve`. That no
/// best-effort request and no packet is larger is an assumption about clients and links.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerEnforcement {
    /// How many requests the device serves at a time, each with an equal part of its capacity; 1 to [`CHANNELS_MAX`].
    pub channels: u32,
    /// The most requests at the device, those that it serves included; at least `channels`.
    pub outstanding: u32,
    /// The most requests of lower priority at the device while one of higher priority is there.
    pub beside: u32,
    /// How many of `outstanding` best effort leaves to workloads with a level; fewer than `outstanding`.
    pub reserve: u32,
    /// The device time of the largest best-effort request that bounds count, seconds; 0 where there is no best effort.
    pub best_effort_request_s: f64,
    /// The bytes that a link has begun to send at most when a packet of higher priority comes.
    pub packet_bytes: f64,
    /// What a request takes in the proxy itself beyond waiting for its turn, seconds.
    pub proxy_s: f64,
}
