//! A match on packets by addresses, protocol, ports, DSCP and control group, and its forms for the
//! kernel: nftables rules and `u32` filters of tc.
//!
//! `u32` reads fixed offsets. It misreads IPv4 headers with options and IPv6 extension headers as other
//! traffic, and treats the later fragments of a datagram as matches of ports. nftables has neither
//! weakness.

use crate::address::{AddressPrefix, TransportProtocol};

/// A conjunction of conditions on packets; an absent condition holds for every packet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketMatch {
    /// True for IPv6 packets, false for IPv4.
    pub ipv6: bool,
    /// Network of the source address.
    pub from: Option<AddressPrefix>,
    /// Network of the destination address.
    pub to: Option<AddressPrefix>,
    /// Transport protocol; always present with a port.
    pub protocol: Option<TransportProtocol>,
    /// The port that packets are sent from.
    pub from_port: Option<u16>,
    /// The port that packets are sent to.
    pub to_port: Option<u16>,
    /// The differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// The control group (v2) of the sending socket, relative to the root, without a leading slash.
    pub cgroup: Option<String>,
}

impl PacketMatch {
    /// Creates the match of all packets of one version of IP.
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

    /// Returns the specificity of the match. Of two matches of a packet, the more specific decides.
    ///
    /// Every condition other than an address counts for more than both addresses together, which have at
    /// most 128 points each for both versions of IP.
    pub(crate) fn specificity(&self) -> u32 {
        const CONDITION: u32 = 1000;
        let conditions = [
            self.from_port.is_some(),
            self.to_port.is_some(),
            self.protocol.is_some(),
            self.dscp.is_some(),
            self.cgroup.is_some(),
        ];
        let conditions: u32 = conditions.into_iter().map(u32::from).sum();
        prefix_points(self.from) + prefix_points(self.to) + CONDITION * conditions
    }

    /// Returns the match as an nftables expression.
    pub(crate) fn nft_expression(&self) -> String {
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

    /// Returns the match as a `u32` filter of tc; `None` with a control group, which u32 does not
    /// support.
    pub(crate) fn u32_expression(&self) -> Option<String> {
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

/// Returns the specificity of an address prefix, from 0 to 128 for both versions of IP.
fn prefix_points(prefix: Option<AddressPrefix>) -> u32 {
    prefix.map_or(0, |prefix| u32::from(prefix.bits) * 128 / if prefix.is_ipv6() { 128 } else { 32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> AddressPrefix {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn both_languages_by_hand() {
        let packets = PacketMatch {
            from: Some(prefix("10.0.0.1")),
            to: Some(prefix("10.0.1.0/24")),
            protocol: Some(TransportProtocol::Tcp),
            to_port: Some(2049),
            dscp: Some(10),
            ..PacketMatch::any(false)
        };
        assert_eq!(
            packets.nft_expression(),
            "ip saddr 10.0.0.1 ip daddr 10.0.1.0/24 ip dscp 10 tcp dport 2049"
        );
        let u32 = "match ip src 10.0.0.1 match ip dst 10.0.1.0/24 match ip dsfield 0x28 0xfc \
                   match ip protocol 6 0xff match ip dport 2049 0xffff";
        assert_eq!(packets.u32_expression().as_deref(), Some(u32));
        assert_eq!(PacketMatch::any(true).nft_expression(), "meta nfproto ipv6");
        assert_eq!(PacketMatch::any(true).u32_expression().as_deref(), Some("match u32 0 0"));
        let grouped = PacketMatch { cgroup: Some("a.slice/b.service".into()), ..PacketMatch::any(false) };
        assert_eq!(
            grouped.nft_expression(),
            "meta nfproto ipv4 socket cgroupv2 level 2 \"a.slice/b.service\""
        );
        assert_eq!(grouped.u32_expression(), None);
    }

    #[test]
    fn what_looks_at_more_decides() {
        let network = PacketMatch { from: Some(prefix("10.0.0.0/24")), ..PacketMatch::any(false) };
        let host = PacketMatch { from: Some(prefix("10.0.0.1")), ..PacketMatch::any(false) };
        let port =
            PacketMatch { protocol: Some(TransportProtocol::Tcp), from_port: Some(1), ..network.clone() };
        assert!(port.specificity() > host.specificity());
        assert!(host.specificity() > network.specificity());
        assert!(network.specificity() > PacketMatch::any(false).specificity());
    }
}
