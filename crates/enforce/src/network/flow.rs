//! Which packets are whose: a match on addresses, protocol, ports, DSCP and control group, and how the two
//! languages of the kernel say it: nftables rules and `u32` filters of tc.
//!
//! `u32` looks at fixed offsets: it takes IPv4 headers with options and IPv6 extension headers for other traffic,
//! and the later fragments of a datagram for a match of ports. nftables has neither weakness.

use crate::address::{Prefix, Protocol};

/// Packets with all of these; what is absent is not looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// IPv6 or IPv4.
    pub ipv6: bool,
    /// Source.
    pub from: Option<Prefix>,
    /// Destination.
    pub to: Option<Prefix>,
    /// Ports are of this protocol; always there when a port is.
    pub protocol: Option<Protocol>,
    /// Source port.
    pub from_port: Option<u16>,
    /// Destination port.
    pub to_port: Option<u16>,
    /// Differentiated services code point, 0–63.
    pub dscp: Option<u8>,
    /// Control group (v2) of the sending socket, relative to the root, without a leading slash.
    pub cgroup: Option<String>,
}

impl Flow {
    /// Everything of one version of IP.
    pub fn any(ipv6: bool) -> Self {
        Self {
            ipv6,
            from: None,
            to: None,
            protocol: None,
            from_port: None,
            to_port: None,
            dscp: None,
            cgroup: None,
        }
    }

    /// How much it looks at; of two flows that both match, the one that looks at more decides.
    pub fn specificity(&self) -> u32 {
        let bits = |prefix: Option<Prefix>| {
            prefix.map_or(0, |p| u32::from(p.bits) * 128 / if p.is_ipv6() { 128 } else { 32 })
        };
        let ports = [self.from_port, self.to_port].iter().flatten().count();
        let ports = u32::try_from(ports).expect("two at most");
        let flag = u32::from;
        bits(self.from)
            + bits(self.to)
            + 1000
                * (ports
                    + flag(self.protocol.is_some())
                    + flag(self.dscp.is_some())
                    + flag(self.cgroup.is_some()))
    }

    /// As the match of an nftables rule.
    pub fn nft(&self) -> String {
        let ip = if self.ipv6 { "ip6" } else { "ip" };
        let mut words: Vec<String> = Vec::new();
        if self.from.is_none() && self.to.is_none() && self.dscp.is_none() {
            words.push(format!("meta nfproto {}", if self.ipv6 { "ipv6" } else { "ipv4" }));
        }
        words.extend(self.from.map(|from| format!("{ip} saddr {from}")));
        words.extend(self.to.map(|to| format!("{ip} daddr {to}")));
        words.extend(self.dscp.map(|dscp| format!("{ip} dscp {dscp}")));
        if let Some(protocol) = self.protocol {
            let name = protocol.name();
            if self.from_port.is_none() && self.to_port.is_none() {
                words.push(format!("meta l4proto {name}"));
            }
            words.extend(self.from_port.map(|port| format!("{name} sport {port}")));
            words.extend(self.to_port.map(|port| format!("{name} dport {port}")));
        }
        words.extend(self.cgroup.as_ref().map(|path| {
            let level = path.split('/').count();
            format!("socket cgroupv2 level {level} \"{path}\"")
        }));
        words.join(" ")
    }

    /// As the match of a `u32` filter; `None` where that cannot say it.
    pub fn u32(&self) -> Option<String> {
        if self.cgroup.is_some() {
            return None;
        }
        let ip = if self.ipv6 { "ip6" } else { "ip" };
        let mut words: Vec<String> = Vec::new();
        words.extend(self.from.map(|from| format!("match {ip} src {from}")));
        words.extend(self.to.map(|to| format!("match {ip} dst {to}")));
        words.extend(self.dscp.map(|dscp| {
            let field = if self.ipv6 { "priority" } else { "dsfield" };
            format!("match {ip} {field} {:#04x} 0xfc", dscp << 2)
        }));
        words.extend(self.protocol.map(|protocol| format!("match {ip} protocol {} 0xff", protocol.number())));
        words.extend(self.from_port.map(|port| format!("match {ip} sport {port} 0xffff")));
        words.extend(self.to_port.map(|port| format!("match {ip} dport {port} 0xffff")));
        if words.is_empty() {
            words.push("match u32 0 0".into());
        }
        Some(words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn both_languages_by_hand() {
        let flow = Flow {
            from: Some(prefix("10.0.0.1")),
            to: Some(prefix("10.0.1.0/24")),
            protocol: Some(Protocol::Tcp),
            to_port: Some(2049),
            dscp: Some(10),
            ..Flow::any(false)
        };
        assert_eq!(flow.nft(), "ip saddr 10.0.0.1 ip daddr 10.0.1.0/24 ip dscp 10 tcp dport 2049");
        let u32 = "match ip src 10.0.0.1 match ip dst 10.0.1.0/24 match ip dsfield 0x28 0xfc \
                   match ip protocol 6 0xff match ip dport 2049 0xffff";
        assert_eq!(flow.u32().as_deref(), Some(u32));
        assert_eq!(Flow::any(true).nft(), "meta nfproto ipv6");
        assert_eq!(Flow::any(true).u32().as_deref(), Some("match u32 0 0"));
        let grouped = Flow { cgroup: Some("a.slice/b.service".into()), ..Flow::any(false) };
        assert_eq!(grouped.nft(), "meta nfproto ipv4 socket cgroupv2 level 2 \"a.slice/b.service\"");
        assert_eq!(grouped.u32(), None);
    }

    #[test]
    fn what_looks_at_more_decides() {
        let network = Flow { from: Some(prefix("10.0.0.0/24")), ..Flow::any(false) };
        let host = Flow { from: Some(prefix("10.0.0.1")), ..Flow::any(false) };
        let port = Flow { protocol: Some(Protocol::Tcp), from_port: Some(1), ..network.clone() };
        assert!(port.specificity() > host.specificity());
        assert!(host.specificity() > network.specificity());
        assert!(network.specificity() > Flow::any(false).specificity());
    }
}
