//! Counters of network namespaces and of their sockets: drops and retransmissions.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Counters since the namespace or the socket was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkCounts {
    /// Connection attempts that found the queue of a listening socket full.
    pub listen_overflows: u64,
    /// TCP segments that were sent again, by clients and servers of the namespace.
    pub retransmits: u64,
    /// Datagrams that were dropped, of each UDP socket at one of the ports.
    pub udp_drops: BTreeMap<SocketAtPort, u64>,
    /// Connection attempts that were dropped, of each TCP socket that listens at one of the ports.
    pub listen_drops: BTreeMap<SocketAtPort, u64>,
}

/// A socket at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketAtPort {
    /// The port.
    pub port: u16,
    /// The number of the socket in its file system.
    pub inode: u64,
}

/// A network namespace that some process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespaceNumber(u64);

/// Returns the namespace of a process, or of this process.
pub fn namespace_of(process: Option<u32>) -> Option<NamespaceNumber> {
    let name = process.map_or("self".to_owned(), |process| process.to_string());
    fs::metadata(format!("/proc/{name}/ns/net")).ok().map(|file| NamespaceNumber(file.ino()))
}

/// Returns counters of the named namespaces, and of every namespace in which a socket listens or receives
/// datagrams at one of the ports.
pub fn of_namespaces_with(
    ports: &BTreeSet<u16>,
    named: &BTreeSet<NamespaceNumber>,
) -> BTreeMap<NamespaceNumber, NetworkCounts> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for process in std::iter::once(std::process::id()).chain(numbers) {
        let Some(number) = namespace_of(Some(process)).filter(|number| seen.insert(*number)) else {
            continue;
        };
        let counts = of_process(process, ports);
        if named.contains(&number) || !counts.udp_drops.is_empty() || !counts.listen_drops.is_empty() {
            found.insert(number, counts);
        }
    }
    found
}

/// Returns the counters of the namespace of a process.
fn of_process(process: u32, ports: &BTreeSet<u16>) -> NetworkCounts {
    let folder = format!("/proc/{process}/net");
    let read = |name: &str| fs::read_to_string(Path::new(&folder).join(name)).unwrap_or_default();
    let mut udp_drops = BTreeMap::new();
    for name in ["udp", "udp6"] {
        udp_drops.extend(
            read(name).lines().filter_map(udp_line).filter(|(socket, _)| ports.contains(&socket.port)),
        );
    }
    NetworkCounts {
        listen_overflows: named_value(&read("netstat"), "TcpExt:", "ListenOverflows").unwrap_or(0),
        retransmits: named_value(&read("snmp"), "Tcp:", "RetransSegs").unwrap_or(0),
        udp_drops,
        listen_drops: listen_drops(process, ports),
    }
}

/// A line of names, and one of numbers below it, both with a prefix.
fn named_value(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let names = lines.next()?;
    let numbers = lines.next()?;
    let place = names.split_whitespace().position(|one| one == name)?;
    numbers.split_whitespace().nth(place)?.parse().ok()
}

/// `SLOT: ADDRESS:PORT … INODE REFERENCES POINTER DROPS`.
fn udp_line(line: &str) -> Option<(SocketAtPort, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
    let inode = fields.get(9)?.parse().ok()?;
    Some((SocketAtPort { port, inode }, fields.get(12)?.parse().ok()?))
}

fn listen_drops(process: u32, ports: &BTreeSet<u16>) -> BTreeMap<SocketAtPort, u64> {
    let all = || {
        let mut all = sockets_with_drops(AddressFamily::INET)?;
        all.extend(sockets_with_drops(AddressFamily::INET6)?);
        io::Result::Ok(all)
    };
    let is_own = namespace_of(Some(process)) == namespace_of(None);
    let found = if is_own {
        all()
    } else {
        File::open(format!("/proc/{process}/ns/net")).and_then(|file| crate::netns::inside(&file, all)?)
    };
    let at_ports = |(socket, _): &(SocketAtPort, u64)| ports.contains(&socket.port);
    found.unwrap_or_default().into_iter().filter(at_ports).collect()
}

/// `SOCK_DIAG_BY_FAMILY`, with `NLM_F_REQUEST | NLM_F_DUMP`.
const MESSAGE_KIND: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x301;
const HEADER_BYTES: usize = 16;
/// A header and `struct inet_diag_req_v2`.
const REQUEST_BYTES: u32 = 72;
/// `struct inet_diag_msg`, after which attributes follow.
const DESCRIPTION_BYTES: usize = 72;
/// `INET_DIAG_SKMEMINFO`, and the index of `SK_MEMINFO_DROPS` in it.
const MEMORY_INFO: u16 = 7;
const DROPS_AT: usize = 8 * 4;
const PROTOCOL_TCP: u8 = 6;
const STATE_LISTEN: u32 = 1 << 10;

/// Returns the listening TCP sockets of the current namespace, with the number of dropped connection
/// attempts of each.
fn sockets_with_drops(family: AddressFamily) -> io::Result<Vec<(SocketAtPort, u64)>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    let mut request = Vec::new();
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(MESSAGE_KIND.to_ne_bytes());
    request.extend(REQUEST_AND_DUMP.to_ne_bytes());
    request.extend([0; 8]);
    let family = u8::try_from(family.as_raw()).expect("families of addresses are small");
    request.extend([family, PROTOCOL_TCP, 1 << (MEMORY_INFO - 1), 0]);
    request.extend(STATE_LISTEN.to_ne_bytes());
    request.extend([0; 48]);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (count, _) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if count == 0 || take_messages(&buffer[..count], &mut found) {
            return Ok(found);
        }
    }
}

/// Takes the sockets of a datagram; true at the end of the answer.
fn take_messages(mut datagram: &[u8], found: &mut Vec<(SocketAtPort, u64)>) -> bool {
    while let Some((length, kind)) = word(datagram, 0).zip(half(datagram, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length < HEADER_BYTES || kind != MESSAGE_KIND {
            return true;
        }
        let Some(message) = datagram.get(HEADER_BYTES..length) else { return true };
        found.extend(described_socket(message));
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

fn described_socket(message: &[u8]) -> Option<(SocketAtPort, u64)> {
    let port = u16::from_be_bytes(message.get(4..6)?.try_into().ok()?);
    let inode = u64::from(word(message, DESCRIPTION_BYTES - 4)?);
    let mut attributes = message.get(DESCRIPTION_BYTES..)?;
    while let Some((length, kind)) = half(attributes, 0).zip(half(attributes, 2)) {
        let length = usize::from(length);
        if length < 4 {
            return None;
        }
        if kind == MEMORY_INFO {
            return Some((SocketAtPort { port, inode }, word(attributes, 4 + DROPS_AT)?.into()));
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Sums over all CPUs: packets that found the backlog full, and rounds of the network stack that
/// exhausted their time budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoftnetCounts {
    /// Packets that were dropped.
    pub dropped: u64,
    /// Rounds that ended with work left.
    pub squeezed: u64,
}

/// Returns the counts since boot.
pub fn softnet() -> Option<SoftnetCounts> {
    Some(softnet_of(&fs::read_to_string("/proc/net/softnet_stat").ok()?))
}

/// `PROCESSED DROPPED SQUEEZED …` in hexadecimal numbers, a line for each CPU.
fn softnet_of(text: &str) -> SoftnetCounts {
    let mut sum = SoftnetCounts::default();
    for line in text.lines() {
        let mut fields = line.split_whitespace().skip(1).map(|field| u64::from_str_radix(field, 16));
        if let (Some(Ok(dropped)), Some(Ok(squeezed))) = (fields.next(), fields.next()) {
            sum.dropped += dropped;
            sum.squeezed += squeezed;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn files_of_the_kernel() {
        let text = "Tcp: RtoMin RetransSegs\nTcp: 200 7\nUdp: InDatagrams\nUdp: 5\n";
        assert_eq!(named_value(text, "Tcp:", "RetransSegs"), Some(7));
        assert_eq!(named_value(text, "Tcp:", "Nothing"), None);
        let line = "  155: 0100007F:1F90 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 4711 2 0000000000000000 46";
        assert_eq!(udp_line(line), Some((SocketAtPort { port: 8080, inode: 4711 }, 46)));
        assert_eq!(udp_line("  sl  local_address rem_address"), None);
        let text = "000017ee 0000000a 00000010 00000000\n00000001 00000001 00000000 00000000\n";
        assert_eq!(softnet_of(text), SoftnetCounts { dropped: 11, squeezed: 16 });
    }

    #[test]
    fn cut_messages_of_netlink_do_no_harm() {
        let mut message = vec![0; 16 + 72 + 4 + 36];
        let length = u32::try_from(message.len()).unwrap();
        message[..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&MESSAGE_KIND.to_ne_bytes());
        message[20..22].copy_from_slice(&80u16.to_be_bytes());
        message[84..88].copy_from_slice(&9u32.to_ne_bytes());
        message[88..90].copy_from_slice(&40u16.to_ne_bytes());
        message[90..92].copy_from_slice(&MEMORY_INFO.to_ne_bytes());
        message[124..128].copy_from_slice(&5u32.to_ne_bytes());
        let mut found = Vec::new();
        assert!(!take_messages(&message, &mut found));
        assert_eq!(found, [(SocketAtPort { port: 80, inode: 9 }, 5)]);
        for cut in 0..message.len() {
            take_messages(&message[..cut], &mut found);
        }
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn sockets_of_this_process_are_found() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = [udp.local_addr().unwrap().port(), tcp.local_addr().unwrap().port()];
        let found = of_namespaces_with(&BTreeSet::from(ports), &BTreeSet::new());
        let own = &found[&namespace_of(None).unwrap()];
        assert!(own.udp_drops.iter().any(|(socket, drops)| socket.port == ports[0] && *drops == 0));
        if own.listen_drops.is_empty() {
            testkit::skip("the kernel does not describe its sockets (no tcp_diag)");
            return;
        }
        assert!(own.listen_drops.iter().any(|(socket, drops)| socket.port == ports[1] && *drops == 0));
    }
}
