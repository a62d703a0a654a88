//! Header by which a proxy announces the client to a server: the PROXY protocol, version 2, in binary
//! form.
//!
//! ```text
//! signature, 12 bytes | version and command | family and protocol | length of the rest, 2 bytes
//! client's address | address that the client has connected to | client's port | port that it has connected to
//! ```

use std::net::{IpAddr, SocketAddr};

/// Signature that no other protocol begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, command LOCAL: a connection of the proxy itself, without a client.
const LOCAL: u8 = 0x20;
/// Version 2, command PROXY: a connection on behalf of a client.
const ON_BEHALF: u8 = 0x21;
/// A byte stream over IPv4.
const STREAM_IPV4: u8 = 0x11;
/// A byte stream over IPv6.
const STREAM_IPV6: u8 = 0x21;

/// Returns the header of a connection of the proxy itself.
pub(super) fn own_connection() -> Vec<u8> {
    header(LOCAL, 0, &[])
}

/// Returns the header of a connection on behalf of `client`, which has connected to `front`.
pub(super) fn on_behalf_of(client: SocketAddr, front: SocketAddr) -> Vec<u8> {
    let mut addresses = Vec::with_capacity(36);
    let family = match (client.ip().to_canonical(), front.ip().to_canonical()) {
        (IpAddr::V4(client), IpAddr::V4(front)) => {
            addresses.extend(client.octets());
            addresses.extend(front.octets());
            STREAM_IPV4
        }
        (client, front) => {
            addresses.extend(as_ipv6(client));
            addresses.extend(as_ipv6(front));
            STREAM_IPV6
        }
    };
    addresses.extend(client.port().to_be_bytes());
    addresses.extend(front.port().to_be_bytes());
    header(ON_BEHALF, family, &addresses)
}

fn as_ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn header(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
    let len = u16::try_from(addresses.len()).expect("at most 36 bytes");
    [&SIGNATURE[..], &[command, family], &len.to_be_bytes(), addresses].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let four = on_behalf_of(address("[::ffff:10.0.0.1]:700"), address("10.0.0.9:2049"));
        let expected = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10, 0x21, 0x11, 0, 12];
        assert_eq!(four, [&expected[..], &[10, 0, 0, 1, 10, 0, 0, 9, 2, 188, 8, 1]].concat());
        let six = on_behalf_of(address("[fd00::1]:1"), address("[fd00::9]:2"));
        assert_eq!((six.len(), six[13], &six[14..18]), (52, 0x21, &[0, 36, 0xfd, 0][..]));
        assert_eq!(six[48..], [0, 1, 0, 2]);
        assert_eq!(own_connection()[12..], [0x20, 0, 0, 0]);
    }
}
