//! The desired state of a network as plain data: what every device should do with the packets that leave by it.
//!
//! `translate` makes it from a policy; `configuration` says it in the words of tc and nftables.

use super::packet_match::PacketMatch;
use crate::deployment::DeploymentHost;

/// The desired state of every host of a deployment, and what the person who asked for it should know.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredNetwork {
    /// One entry for each host, in the order of the deployment.
    pub hosts: Vec<DesiredHost>,
    /// Where the network cannot do all that the policy says, one sentence each.
    pub warnings: Vec<String>,
}

/// What a host should do.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredHost {
    /// The host as the deployment describes it.
    pub host: DeploymentHost,
    /// The devices that are to be shaped, in the order of their names; a device that is absent is left alone.
    pub devices: Vec<DesiredDevice>,
}

/// What a device should do with the packets that leave by it.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredDevice {
    /// The name of the device on its host, such as `eth0`.
    pub name: String,
    /// The rate of the link in bytes per second, which the root class is limited to.
    pub link_bytes_per_s: f64,
    /// The traffic that has queues of its own, in the order of the policy; everything else is served last.
    pub classes: Vec<TrafficClass>,
}

/// Traffic with a queue of its own on a device: the requests or the replies of a workload, or one level on a switch.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficClass {
    /// A name that is unique on the device: `mail network-in`, or `level 3` on a switch.
    pub name: String,
    /// The priority level: 0 is served first, and all are below [`PRIORITY_LEVELS`](crate::deployment::PRIORITY_LEVELS).
    pub level: usize,
    /// The token buckets, all of which hold at once; without any the class is not limited.
    pub buckets: Vec<FrameBucket>,
    /// The packets that belong to the class: those that fit one of these matches.
    pub matches: Vec<PacketMatch>,
    /// The differentiated services code point that its packets get; `None` leaves them as they are.
    pub mark: Option<u8>,
}

/// A token bucket whose tokens are bytes of frames, with the Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameBucket {
    /// The fill rate in bytes per second.
    pub rate_bytes_per_s: f64,
    /// The size of the bucket in bytes.
    pub burst_bytes: f64,
}
