//! The storage device of a server, and the addresses of the proxy before it.

use crate::address::AddressPrefix;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use units::Bytes;
use wire::{PROTOCOLS, Protocol};

/// The storage device of a server, and the proxy before it.
///
/// Absent bounds on requests outstanding at the device come from the device profile.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerStorage {
    /// File of the device profile, relative to the hosts file.
    pub profile: PathBuf,
    /// Addresses at which the proxy listens, with the addresses to forward to.
    pub front: Vec<Front>,
    /// Treatment of requests beyond the limits of their workload.
    #[serde(default)]
    pub over: OverLimitRule,
    /// Number of requests that the device serves at a time; absent: from its profile.
    #[serde(default)]
    pub channels: Option<u32>,
    /// Maximum number of outstanding requests; absent: from the profile, else 16.
    #[serde(default)]
    pub outstanding: Option<u32>,
    /// Maximum number of bytes of outstanding requests; absent: from the profile, else unbounded.
    #[serde(default, deserialize_with = "bytes")]
    pub outstanding_bytes: Option<Bytes>,
    /// Maximum number of outstanding reads; the profile's bound is ignored if `outstanding` is given.
    #[serde(default)]
    pub reads: Option<u32>,
    /// Maximum number of outstanding writes; the profile's bound is ignored if `outstanding` is given.
    #[serde(default)]
    pub writes: Option<u32>,
    /// Maximum number of bytes of outstanding reads; the profile's bound is ignored if
    /// `outstanding_bytes` is given.
    #[serde(default, deserialize_with = "bytes")]
    pub reads_bytes: Option<Bytes>,
    /// Maximum number of bytes of outstanding writes; the profile's bound is ignored if
    /// `outstanding_bytes` is given.
    #[serde(default, deserialize_with = "bytes")]
    pub writes_bytes: Option<Bytes>,
    /// Maximum number of outstanding requests of lower priority beside one of higher priority; absent:
    /// half of `outstanding`.
    #[serde(default)]
    pub beside: Option<u32>,
    /// Maximum number of bytes of such requests; absent: unbounded.
    #[serde(default, deserialize_with = "bytes")]
    pub beside_bytes: Option<Bytes>,
    /// Number of the `outstanding` places that best effort leaves to the workloads of the policy; absent:
    /// 1 of 8 or more, and 0 of fewer.
    #[serde(default)]
    pub reserve: Option<u32>,
    /// Maximum number of sequential writes sent to the device together; absent: 1 for SSDs and 8 for
    /// disks.
    #[serde(default)]
    pub batch: Option<u32>,
}

impl ServerStorage {
    /// Refuses values that are wrong for any device profile.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.front.is_empty() {
            return Err("front: it needs at least one".into());
        }
        if [self.channels, self.outstanding, self.reads, self.writes, self.batch].contains(&Some(0)) {
            return Err("channels, outstanding, reads, writes and batch: at least 1".into());
        }
        if self.outstanding.zip(self.reserve).is_some_and(|(outstanding, reserve)| reserve >= outstanding) {
            return Err("reserve: fewer than outstanding".into());
        }
        self.front.iter().try_for_each(Front::check)
    }
}

/// Treatment of requests beyond the limits of their workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverLimitRule {
    /// They are served as best effort, when no other request wants the device.
    #[default]
    Demote,
    /// They wait until the limits allow them.
    Queue,
}

/// A front: an address that a proxy listens at, before a storage server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// The protocol of the clients that connect there.
    #[serde(deserialize_with = "front_protocol")]
    pub protocol: Protocol,
    /// Address to listen at, with a port, or with the default ports of the protocol.
    pub listen: String,
    /// Address of the server; its port defaults to the listened one.
    pub forward: String,
    /// Networks whose clients may connect; all when absent.
    #[serde(default)]
    pub allow: Option<Vec<AddressPrefix>>,
    /// Source address and port of connections, as seen by the server.
    #[serde(default)]
    pub source: SourceAddress,
    /// Announce the client's address to the server in a header of the PROXY protocol, version 2.
    #[serde(default)]
    pub announce: bool,
    /// Clients may share connections to the server, if their protocol allows it and the server does not see their
    /// addresses.
    #[serde(default = "yes")]
    pub share: bool,
    /// The server's address that clients know; new connections to it are redirected to `listen`. Its port
    /// defaults to that of the protocol.
    #[serde(default)]
    pub redirect: Option<String>,
}

fn yes() -> bool {
    true
}

/// Source address and port of a front's connections, as seen by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceAddress {
    /// The address of the proxy, and any port.
    #[default]
    Proxy,
    /// The address of the proxy, and a port below 1024, for servers that trust only root.
    Reserved,
    /// The address and port of the client. The host's routes must lead the server's answers to the proxy.
    Client,
}

impl Front {
    /// Refuses invalid or mismatched addresses.
    fn check(&self) -> Result<(), String> {
        let pairs = self.pairs()?;
        if self.allow.as_ref().is_some_and(Vec::is_empty) {
            return Err("allow: it needs at least one network; without it any client may connect".to_owned());
        }
        let is_mixed = pairs.iter().any(|(listen, forward)| listen.is_ipv6() != forward.is_ipv6());
        if self.source == SourceAddress::Client && is_mixed {
            return Err(
                "source: a client's address needs listen and forward both of IPv4, or of IPv6".to_owned()
            );
        }
        self.known_address().map(|_| ())
    }

    /// Returns the address of the server whose new connections are redirected to this front.
    ///
    /// # Errors
    /// When the address cannot be read, or connections to it cannot be redirected to `listen`.
    pub fn known_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.redirect else { return Ok(None) };
        let (address, port) = parse_address("redirect", text)?;
        let known = SocketAddr::new(address, port.unwrap_or_else(|| self.protocol.port()));
        let pairs = self.pairs()?;
        let [(listen, _)] = pairs.as_slice() else {
            return Err("redirect: it needs one port in listen".to_owned());
        };
        if known.ip().is_loopback() || listen.ip().is_loopback() {
            return Err("redirect: connections from other hosts are redirected, so neither it nor listen \
                        is a loopback address"
                .to_owned());
        }
        if known.ip().is_unspecified() {
            return Err("redirect: the address that clients connect to".to_owned());
        }
        if known.is_ipv6() != listen.is_ipv6() {
            return Err("redirect: it and listen are both of IPv4, or of IPv6".to_owned());
        }
        if listen.port() == 0 {
            return Err("redirect: listen needs a port that is known".to_owned());
        }
        if known == *listen || (listen.ip().is_unspecified() && known.port() == listen.port()) {
            return Err("redirect: listen needs another port, because the server has this one".to_owned());
        }
        Ok(Some(known))
    }

    /// Returns true if a proxy that serves `running` can serve this front without opening or closing
    /// sockets: they differ only in the clients that may connect.
    pub(crate) fn is_served_by(&self, running: &Self) -> bool {
        let without_clients = Self { allow: running.allow.clone(), ..self.clone() };
        without_clients == *running
    }

    /// Returns pairs of an address to listen at and the server's address to forward to.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub fn pairs(&self) -> Result<Vec<(SocketAddr, SocketAddr)>, String> {
        let (listen, listen_port) = parse_address("listen", &self.listen)?;
        let (forward, forward_port) = parse_address("forward", &self.forward)?;
        let ports = listen_port.as_ref().map_or(self.protocol.row().ports, std::slice::from_ref);
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

/// Names the protocols that a front can have, such as `memcached, nbd or nfs`.
pub(crate) fn front_protocols() -> String {
    let names: Vec<&str> = PROTOCOLS.iter().filter(|row| row.has_front).map(|row| row.name).collect();
    let (last, others) = names.split_last().expect("some protocol has fronts");
    format!("{} or {last}", others.join(", "))
}

fn front_protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    let name = String::deserialize(deserializer)?;
    Protocol::named(&name).filter(|protocol| protocol.row().has_front).ok_or_else(|| {
        D::Error::custom(format_args!("unknown protocol `{name}`, expected {}", front_protocols()))
    })
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

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(protocol: Protocol, listen: &str, forward: &str) -> Front {
        Front {
            share: true,
            protocol,
            listen: listen.into(),
            forward: forward.into(),
            allow: None,
            source: SourceAddress::Proxy,
            announce: false,
            redirect: None,
        }
    }

    #[test]
    fn contradictions_of_a_front_are_named() {
        let plain = || front(Protocol::Nbd, "10.0.0.9", "127.0.0.1");
        assert_eq!(plain().check(), Ok(()));
        // An empty list must not admit every client.
        let nobody = Front { allow: Some(Vec::new()), ..plain() };
        assert!(nobody.check().is_err_and(|said| said.contains("at least one network")));
        let client = Front { source: SourceAddress::Client, ..plain() };
        assert_eq!(client.check(), Ok(()));
        let mixed = Front { listen: "::".into(), ..client };
        assert!(mixed.check().is_err_and(|said| said.contains("both of IPv4")));
    }

    #[test]
    fn redirections_need_a_known_address_and_another_port() {
        let redirected = |listen: &str, redirect: &str| {
            let redirect = Some(redirect.to_owned());
            Front { redirect, ..front(Protocol::Memcached, listen, "127.0.0.1:11211") }
        };
        let known = |listen: &str, redirect: &str| redirected(listen, redirect).known_address();
        assert_eq!(known("10.0.0.9:21211", "10.0.0.9"), Ok(Some("10.0.0.9:11211".parse().unwrap())));
        assert_eq!(known("0.0.0.0:21211", "10.0.0.9:7"), Ok(Some("10.0.0.9:7".parse().unwrap())));
        for (listen, redirect, part) in [
            ("127.0.0.1:21211", "10.0.0.9", "loopback"),
            ("10.0.0.9:21211", "127.0.0.1", "loopback"),
            ("10.0.0.9:21211", "0.0.0.0", "clients connect to"),
            ("10.0.0.9:21211", "fd00::9", "both of IPv4"),
            ("10.0.0.9:11211", "10.0.0.9", "another port"),
            ("10.0.0.9:0", "10.0.0.9", "port that is known"),
            ("0.0.0.0:11211", "10.0.0.9", "another port"),
            ("10.0.0.9:21211", "store", "is not an address"),
        ] {
            let front = redirected(listen, redirect);
            let said = front.check().unwrap_err();
            assert!(said.starts_with("redirect: ") && said.contains(part), "{listen} {redirect}: {said}");
        }
        let ports = Front { redirect: Some("10.0.0.9".into()), ..front(Protocol::Nfs, "10.0.0.9", "::1") };
        assert!(ports.check().is_err_and(|said| said.contains("one port in listen")));
    }

    #[test]
    fn only_who_may_connect_changes_while_a_front_is_served() {
        let running = front(Protocol::Nbd, "10.0.0.9", "127.0.0.1");
        let fewer = Front { allow: Some(vec!["10.0.0.0/24".parse().unwrap()]), ..running.clone() };
        assert!(fewer.is_served_by(&running) && running.is_served_by(&fewer));
        for other in [
            Front { source: SourceAddress::Reserved, ..running.clone() },
            Front { announce: true, ..running.clone() },
            Front { listen: "10.0.0.8".into(), ..running.clone() },
        ] {
            assert!(!other.is_served_by(&running), "{other:?}");
        }
    }

    #[test]
    fn fronts_have_the_ports_of_their_protocol() {
        let pairs = |protocol, listen: &str, forward: &str| {
            let front = front(protocol, listen, forward);
            front.pairs().map(|pairs| {
                pairs.iter().map(|(from, to)| format!("{from} {to}")).collect::<Vec<_>>().join(", ")
            })
        };
        let nfs = pairs(Protocol::Nfs, "10.0.0.9", "127.0.0.1");
        assert_eq!(nfs, Ok("10.0.0.9:2049 127.0.0.1:2049, 10.0.0.9:20048 127.0.0.1:20048".into()));
        let nbd = pairs(Protocol::Nbd, "[fd00::9]:1", "::1");
        assert_eq!(nbd, Ok("[fd00::9]:1 [::1]:1".into()));
        assert_eq!(pairs(Protocol::Nbd, "fd00::9", "[::1]:2"), Ok("[fd00::9]:10809 [::1]:2".into()));
        assert!(pairs(Protocol::Nfs, "10.0.0.9", "127.0.0.1:2049").is_err());
    }
}
