//! Detection of listeners at ports of this machine, in any network namespace.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The state of a TCP socket that listens, and that of a UDP socket without a peer.
const TCP_LISTENS: &str = "0A";
const UDP_WITHOUT_PEER: &str = "07";

/// Returns true if a TCP socket listens at one of these ports, or an unconnected UDP socket is bound to one.
/// Looks in the network namespaces of this process and of every process that is visible.
pub fn is_any_listening(ports: &BTreeSet<u16>) -> bool {
    let mut seen = BTreeSet::new();
    let own = PathBuf::from("/proc/self/net");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let others = processes.filter(|entry| entry.file_name().to_str().is_some_and(is_process));
    let folders = std::iter::once(own).chain(others.map(|entry| entry.path().join("net")));
    // The kernel has one such file for each namespace, whichever process it is reached by.
    let mut is_new =
        |folder: &PathBuf| fs::metadata(folder.join("tcp")).is_ok_and(|file| seen.insert(file.ino()));
    folders.filter(|folder| is_new(folder)).any(|folder| listens_in(&folder, ports))
}

fn listens_in(folder: &Path, ports: &BTreeSet<u16>) -> bool {
    let files =
        [("tcp", TCP_LISTENS), ("tcp6", TCP_LISTENS), ("udp", UDP_WITHOUT_PEER), ("udp6", UDP_WITHOUT_PEER)];
    files.into_iter().any(|(name, state)| {
        let sockets = fs::read_to_string(folder.join(name)).unwrap_or_default();
        sockets.lines().any(|line| port_in_state(line, state).is_some_and(|port| ports.contains(&port)))
    })
}

/// `NUMBER: ADDRESS:PORT PEER:PORT STATE …` in hexadecimal numbers: the port, if this is the state.
fn port_in_state(line: &str, expected: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    u16::from_str_radix(port, 16).ok().filter(|_| state == expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn lines_of_the_kernel() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0";
        assert_eq!(port_in_state(line, "0A"), Some(8080));
        assert_eq!(port_in_state(line, "07"), None);
        assert_eq!(port_in_state("  sl  local_address rem_address   st tx_queue", "0A"), None);
        assert_eq!(port_in_state("", "0A"), None);
    }

    #[test]
    fn those_who_listen_are_found_until_they_end() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let place = listener.local_addr().unwrap();
            let ports = BTreeSet::from([place.port()]);
            let client = TcpStream::connect(place).unwrap();
            assert!(is_any_listening(&ports));
            drop(listener);
            assert!(!is_any_listening(&ports), "connections do not listen");
            drop(client);
        }
    }

    #[test]
    fn sockets_of_udp_are_found_unless_they_have_a_peer() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.local_addr().unwrap()).unwrap();
        let [server, client] = [server, client].map(|socket| (socket.local_addr().unwrap().port(), socket));
        assert!(is_any_listening(&BTreeSet::from([server.0])));
        assert!(!is_any_listening(&BTreeSet::from([client.0])));
    }
}
