//! The storage device of a server, and the addresses at which a proxy stands before it.

use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use units::Bytes;

/// The storage device of a server, and the proxy before it.
///
/// Bounds on what is outstanding (at the device) that are absent come from the device profile.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStorage {
    /// The file of the device profile, relative to the hosts file.
    pub profile: PathBuf,
    /// The addresses that the proxy listens at, and those that it forwards requests to.
    pub front: Vec<Front>,
    /// What happens to requests beyond the limits of their workload.
    #[serde(default)]
    pub over: OverLimitRule,
    /// The most requests outstanding; where the profile does not say either, 16.
    #[serde(default)]
    pub outstanding: Option<u32>,
    /// The most bytes of outstanding requests; where the profile does not say either, unbounded.
    #[serde(default, deserialize_with = "bytes")]
    pub outstanding_bytes: Option<Bytes>,
    /// The most reads outstanding; the profile's bound is not used where `outstanding` is given.
    #[serde(default)]
    pub reads: Option<u32>,
    /// The most writes outstanding; the profile's bound is not used where `outstanding` is given.
    #[serde(default)]
    pub writes: Option<u32>,
    /// The most bytes of outstanding reads; the profile's bound is not used where `outstanding_bytes` is given.
    #[serde(default, deserialize_with = "bytes")]
    pub reads_bytes: Option<Bytes>,
    /// The most bytes of outstanding writes; the profile's bound is not used where `outstanding_bytes` is given.
    #[serde(default, deserialize_with = "bytes")]
    pub writes_bytes: Option<Bytes>,
    /// The most requests of lower priority outstanding while one of higher priority is; half of `outstanding` when
    /// absent.
    #[serde(default)]
    pub beside: Option<u32>,
    /// The most bytes of such requests; unbounded when absent.
    #[serde(default, deserialize_with = "bytes")]
    pub beside_bytes: Option<Bytes>,
    /// How many of the `outstanding` requests best effort leaves to the workloads of the policy; when absent 1 of 8 or
    /// more, and 0 of fewer.
    #[serde(default)]
    pub reserve: Option<u32>,
    /// The most sequential writes that are sent to the device together; when absent 1 for SSDs and 8 for disks.
    #[serde(default)]
    pub batch: Option<u32>,
}

impl ServerStorage {
    /// Refuses what is wrong without knowing the device profile.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.front.is_empty() {
            return Err("front: it needs at least one".into());
        }
        if [self.outstanding, self.reads, self.writes, self.batch].contains(&Some(0)) {
            return Err("outstanding, reads, writes and batch: at least 1".into());
        }
        if self.outstanding.zip(self.reserve).is_some_and(|(outstanding, reserve)| reserve >= outstanding) {
            return Err("reserve: fewer than outstanding".into());
        }
        self.front.iter().try_for_each(|front| front.pairs().map(drop))
    }
}

/// What happens to requests beyond the limits of their workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverLimitRule {
    /// They are served as best effort, when nobody else wants the device.
    #[default]
    Demote,
    /// They wait until the limits allow them.
    Queue,
}

/// A front: an address that a proxy listens at, before a storage server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// The protocol of the clients that connect there.
    pub protocol: FrontProtocol,
    /// The address to listen at, with a port or else the default ports of the protocol.
    pub listen: String,
    /// The address of the server, with a port or else the one that is listened at.
    pub forward: String,
}

/// The storage protocols that a proxy understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontProtocol {
    /// NFS with MOUNT and the portmapper, over TCP.
    Nfs,
    /// The protocol of network block devices.
    Nbd,
    /// The protocol of memcached.
    Memcached,
}

impl FrontProtocol {
    /// The ports at which servers of the protocol listen by default.
    fn default_ports(self) -> &'static [u16] {
        match self {
            // NFS itself, and MOUNT at the port that Linux servers are usually given.
            Self::Nfs => &[2049, 20048],
            Self::Nbd => &[10809],
            Self::Memcached => &[11211],
        }
    }
}

impl Front {
    /// The pairs of an address to listen at and the server's address to forward to.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub fn pairs(&self) -> Result<Vec<(SocketAddr, SocketAddr)>, String> {
        let (listen, listen_port) = parse_address("listen", &self.listen)?;
        let (forward, forward_port) = parse_address("forward", &self.forward)?;
        let ports = listen_port.as_ref().map_or(self.protocol.default_ports(), std::slice::from_ref);
        if ports.len() > 1 && forward_port.is_some() {
            return Err("forward: a port there needs a port in listen".to_owned());
        }
        let mut pairs = Vec::new();
        for port in ports {
            let to = SocketAddr::new(forward, forward_port.unwrap_or(*port));
            pairs.push((SocketAddr::new(listen, *port), to));
        }
        Ok(pairs)
    }
}

fn parse_address(field: &str, text: &str) -> Result<(IpAddr, Option<u16>), String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip(), Some(address.port())));
    }
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    plain.parse().map(|address| (address, None)).map_err(|_| {
        format!("{field}: '{text}' is not an address such as 10.0.0.9, 10.0.0.9:10809 or [fd00::9]:10809")
    })
}

fn bytes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_have_the_ports_of_their_protocol() {
        let pairs = |protocol, listen: &str, forward: &str| {
            let front = Front { protocol, listen: listen.into(), forward: forward.into() };
            front.pairs().map(|pairs| {
                pairs.iter().map(|(from, to)| format!("{from} {to}")).collect::<Vec<_>>().join(", ")
            })
        };
        let nfs = pairs(FrontProtocol::Nfs, "10.0.0.9", "127.0.0.1");
        assert_eq!(nfs, Ok("10.0.0.9:2049 127.0.0.1:2049, 10.0.0.9:20048 127.0.0.1:20048".into()));
        let nbd = pairs(FrontProtocol::Nbd, "[fd00::9]:1", "::1");
        assert_eq!(nbd, Ok("[fd00::9]:1 [::1]:1".into()));
        assert_eq!(pairs(FrontProtocol::Nbd, "fd00::9", "[::1]:2"), Ok("[fd00::9]:10809 [::1]:2".into()));
        assert!(pairs(FrontProtocol::Nfs, "10.0.0.9", "127.0.0.1:2049").is_err());
    }
}
