//! Addresses, networks and transport protocols as hosts files name them.

use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address or a network, IPv4 or IPv6: `10.0.0.1`, `10.0.0.0/24`, `fd00::/64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressPrefix {
    address: IpAddr,
    /// Length of the prefix: the number of leading bits of the address that count.
    pub(crate) bits: u8,
}

impl AddressPrefix {
    /// Returns true for an IPv6 network, false for IPv4.
    pub fn is_ipv6(self) -> bool {
        self.address.is_ipv6()
    }

    fn bits_max(address: IpAddr) -> u8 {
        if address.is_ipv6() { 128 } else { 32 }
    }

    /// Returns true if an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (u128::from(own.to_bits()), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        // A prefix of no bits shifts everything out, which `>>` does not allow.
        let host_bits = width - u32::from(self.bits);
        own.checked_shr(host_bits).unwrap_or(0) == other.checked_shr(host_bits).unwrap_or(0)
    }

    /// Returns the address, if the network contains only one.
    fn single_address(self) -> Option<IpAddr> {
        (self.bits == Self::bits_max(self.address)).then_some(self.address)
    }
}

impl FromStr for AddressPrefix {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse_prefix(text)
            .ok_or_else(|| format!("'{text}' is not an address such as 10.0.0.1, 10.0.0.0/24 or fd00::1"))
    }
}

fn parse_prefix(text: &str) -> Option<AddressPrefix> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.trim().parse().ok()?;
    let bits_max = AddressPrefix::bits_max(address);
    let bits = match bits {
        Some(bits) => bits.trim().parse().ok()?,
        None => bits_max,
    };
    (bits <= bits_max && is_network(address, bits)).then_some(AddressPrefix { address, bits })
}

/// Returns true if all bits after the first `bits` are zero, as tc and nftables require.
fn is_network(address: IpAddr, bits: u8) -> bool {
    let (value, width) = match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    };
    u32::from(bits) + value.trailing_zeros().min(width) >= width
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single_address() {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

impl<'de> Deserialize<'de> for AddressPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A transport protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportProtocol {
    /// The Transmission Control Protocol.
    Tcp,
    /// The User Datagram Protocol.
    Udp,
}

impl TransportProtocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// Returns the IANA number of the protocol, as in headers.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> AddressPrefix {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn prefixes_parse_and_print() {
        for text in ["10.0.0.1", "10.0.0.0/24", "0.0.0.0/0", "fd00::1", "fd00::/64", "::/0"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("10.0.0.1/32").to_string(), "10.0.0.1");
        for wrong in ["", "10.0.0", "10.0.0.1/24", "10.0.0.0/33", "fd00::1/64", "::/129", "host", "10.0.0.1/"]
        {
            assert!(wrong.parse::<AddressPrefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_contains_its_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/24", "10.0.0.255", "10.0.1.0"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("fd00::/64", "fd00::1:2", "fd00:0:0:1::"),
            ("::/0", "fd00::1", "10.0.0.1"),
        ] {
            let holds = |address: &str| prefix(network).contains(address.parse().unwrap());
            assert!(holds(inside) && !holds(outside), "{network}");
        }
    }
}
