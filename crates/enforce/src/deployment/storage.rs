//! The device of a server, and how a proxy stands before it.

use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use units::Bytes;

/// The device of a server, and the proxy before it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// File of its device profile; relative to the hosts file.
    pub profile: PathBuf,
    /// Where the proxy listens and what it passes requests on to.
    pub front: Vec<Front>,
    /// What becomes of requests beyond their workload's limits.
    #[serde(default)]
    pub over: Over,
    /// Most requests at the device at once; from the profile without it, or 16.
    #[serde(default)]
    pub outstanding: Option<u32>,
    /// Most bytes of them; from the profile without it, or unbounded.
    #[serde(default, deserialize_with = "bytes")]
    pub outstanding_bytes: Option<Bytes>,
    /// Most reads among them; without it from the profile, unless `outstanding` is said.
    #[serde(default)]
    pub reads: Option<u32>,
    /// Most writes; as `reads`.
    #[serde(default)]
    pub writes: Option<u32>,
    /// Most bytes of reads; without it from the profile, unless `outstanding_bytes` is said.
    #[serde(default, deserialize_with = "bytes")]
    pub reads_bytes: Option<Bytes>,
    /// Most bytes of writes; as `reads_bytes`.
    #[serde(default, deserialize_with = "bytes")]
    pub writes_bytes: Option<Bytes>,
    /// Most requests of lower priority at the device while one of higher priority is there; half of `outstanding`
    /// without it.
    #[serde(default)]
    pub beside: Option<u32>,
    /// Most bytes of them; unbounded without it.
    #[serde(default, deserialize_with = "bytes")]
    pub beside_bytes: Option<Bytes>,
    /// How many of `outstanding` best effort leaves to the workloads of the policy; without it one of eight and more.
    #[serde(default)]
    pub reserve: Option<u32>,
    /// Most sequential writes that are sent to the device together; 1 for SSDs and 8 for disks without it.
    #[serde(default)]
    pub batch: Option<u32>,
}

impl Storage {
    /// What is wrong with it, as far as that can be said without a device profile.
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

/// What becomes of requests beyond their workload's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// They are served when nobody else wants the device.
    #[default]
    Demote,
    /// They wait until the limits allow them.
    Queue,
}

/// One listening address of a proxy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// What is spoken there.
    pub protocol: FrontProtocol,
    /// Address and port; without a port those of the protocol.
    pub listen: String,
    /// The server behind it; without a port the one that is listened on.
    pub forward: String,
}

/// Storage protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrontProtocol {
    /// NFS with MOUNT and the portmapper, over TCP.
    Nfs,
    /// Network block devices.
    Nbd,
    /// memcached.
    Memcached,
}

impl FrontProtocol {
    /// The ports on which it is spoken by default.
    fn ports(self) -> &'static [u16] {
        match self {
            // Of the server, of MOUNT by custom.
            Self::Nfs => &[2049, 20048],
            Self::Nbd => &[10809],
            Self::Memcached => &[11211],
        }
    }
}

impl Front {
    /// Pairs of where to listen and where to pass on to.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub fn pairs(&self) -> Result<Vec<(SocketAddr, SocketAddr)>, String> {
        let (listen, port) = address("listen", &self.listen)?;
        let (forward, to) = address("forward", &self.forward)?;
        let ports = port.as_ref().map_or(self.protocol.ports(), std::slice::from_ref);
        let pair =
            |port: &u16| (SocketAddr::new(listen, *port), SocketAddr::new(forward, to.unwrap_or(*port)));
        match (ports, to) {
            ([_, _, ..], Some(_)) => Err("forward: a port there needs a port in listen".to_owned()),
            _ => Ok(ports.iter().map(pair).collect()),
        }
    }
}

fn address(field: &str, text: &str) -> Result<(IpAddr, Option<u16>), String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip(), Some(address.port())));
    }
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let expected =
        || format!("{field}: '{text}' is not an address such as 10.0.0.9, 10.0.0.9:10809 or [fd00::9]:10809");
    plain.parse().map(|address| (address, None)).map_err(|_| expected())
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
