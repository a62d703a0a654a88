//! Options of sockets of other processes, by duplicates of them (`pidfd_getfd`), which are the same sockets.
//!
//! A duplicate keeps a connection open that its process closes, so that none is kept for longer than it takes to look at it.

use super::process::{identity, is_alive};
use crate::setting::{ProcessIdentity, SocketIdentity, SocketOption};
use machine::busy_poll::{busy_poll_us, set_busy_poll_us};
use rustix::fd::{OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{getsockname, ipproto, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Passes over later sockets until none has to be changed and none waits to be accepted.
const PASSES_MAX: usize = 100;
/// How long a server gets between two passes to accept connections.
const ACCEPT_WAIT: Duration = Duration::from_millis(10);

/// A socket of a process that has an option.
#[derive(Debug)]
pub(crate) struct OpenSocket {
    pub(crate) identity: SocketIdentity,
    pub(crate) is_listening: bool,
    pub(crate) value: String,
}

/// The sockets of a process at ports that have an option, by descriptor; none when it has ended.
pub(crate) fn sockets(
    process: ProcessIdentity,
    ports: &BTreeSet<u16>,
    option: SocketOption,
) -> io::Result<Vec<OpenSocket>> {
    let mut found = Vec::new();
    let Some(of_process) = SocketsOf::open(process)? else { return Ok(found) };
    for (descriptor, inode) in of_process.descriptors()? {
        let Some(socket) = of_process.duplicate(descriptor)? else { continue };
        let Some(is_listening) = listening_with(&socket, ports, option) else { continue };
        let identity =
            SocketIdentity { process, descriptor, inode, cookie: sockopt::socket_cookie(&socket)? };
        found.push(OpenSocket { identity, is_listening, value: value_of(&socket, option)? });
    }
    Ok(found)
}

/// The value of an option of a socket; `None` when the process has closed it.
pub(super) fn read(socket: SocketIdentity, option: SocketOption) -> io::Result<Option<String>> {
    duplicate(socket)?.map(|socket| value_of(&socket, option)).transpose()
}

/// Gives an option of a socket a value, unless the process has closed it.
pub(super) fn write(socket: SocketIdentity, option: SocketOption, value: &str) -> io::Result<()> {
    duplicate(socket)?.map_or(Ok(()), |socket| set_value(&socket, option, value))
}

/// Sockets of a process that were not there at first.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaterSockets<'a> {
    pub(super) process: ProcessIdentity,
    pub(super) ports: &'a [u16],
    /// The cookies of those that were there.
    pub(super) known: &'a [u64],
    pub(super) option: SocketOption,
}

impl LaterSockets<'_> {
    /// Gives those that were not looked at before a value. The inode numbers of those that were are kept by the caller.
    pub(super) fn give(&self, value: &str, looked_at: &mut BTreeSet<u64>) -> io::Result<()> {
        self.pass(value, |now| now != value, looked_at).map(drop)
    }

    /// Gives those that have a value another one, until also those that wait to be accepted, which have inherited it, have
    /// been accepted.
    pub(super) fn take_back(&self, value: &str, before: &str) -> io::Result<()> {
        if value == before {
            return Ok(());
        }
        for _ in 0..PASSES_MAX {
            // In this order: what is accepted in between is seen by the pass.
            let is_waiting = is_accept_queue_used(self.process, self.ports);
            let has_changed = self.pass(before, |now| now == value, &mut BTreeSet::new())?;
            if !has_changed && !is_waiting {
                return Ok(());
            }
            if is_waiting {
                thread::sleep(ACCEPT_WAIT);
            }
        }
        Err(io::Error::other(
            "the server does not accept its connections, or gets them faster than they are changed",
        ))
    }

    fn pass(
        &self,
        to: &str,
        is_meant: impl Fn(&str) -> bool,
        looked_at: &mut BTreeSet<u64>,
    ) -> io::Result<bool> {
        let Some(of_process) = SocketsOf::open(self.process)? else { return Ok(false) };
        let ports = self.ports.iter().copied().collect();
        let mut has_changed = false;
        for (descriptor, inode) in of_process.descriptors()? {
            if looked_at.contains(&inode) {
                continue;
            }
            let Some(socket) = of_process.duplicate(descriptor)? else { continue };
            // A socket that is not bound yet is looked at again.
            if getsockname(&socket).is_ok_and(|address| port_of(address) != Some(0)) {
                looked_at.insert(inode);
            }
            let is_other = || Ok::<_, io::Error>(!self.known.contains(&sockopt::socket_cookie(&socket)?));
            if listening_with(&socket, &ports, self.option).is_none() || !is_other()? {
                continue;
            }
            if is_meant(&value_of(&socket, self.option)?) {
                set_value(&socket, self.option, to)?;
                has_changed = true;
            }
        }
        Ok(has_changed)
    }
}

/// The sockets of a process that runs.
struct SocketsOf {
    folder: PathBuf,
    pidfd: OwnedFd,
}

impl SocketsOf {
    /// `None` when the process has ended.
    fn open(process: ProcessIdentity) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(process.id).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(None),
            opened => opened?,
        };
        // Looked at afterwards: the number belongs to the process that was opened, or to none.
        if identity(process.id) != Some(process) || !is_alive(process) {
            return Ok(None);
        }
        Ok(Some(Self { folder: PathBuf::from(format!("/proc/{}/fd", process.id)), pidfd }))
    }

    /// Descriptors of sockets with the numbers of their inodes, each socket once.
    fn descriptors(&self) -> io::Result<Vec<(RawFd, u64)>> {
        let listing = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listing => listing?,
        };
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut numbers: Vec<RawFd> = listing.flatten().filter_map(number).collect();
        numbers.sort_unstable();
        let mut seen = BTreeSet::new();
        let sockets =
            numbers.into_iter().filter_map(|descriptor| Some((descriptor, self.inode(descriptor)?)));
        Ok(sockets.filter(|(_, inode)| seen.insert(*inode)).collect())
    }

    /// The inode of the socket that a descriptor is; `None` where it is no socket, or closed.
    fn inode(&self, descriptor: RawFd) -> Option<u64> {
        let link = fs::read_link(self.folder.join(descriptor.to_string())).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    }

    /// The same file under a descriptor of this program; `None` when it was closed meanwhile.
    fn duplicate(&self, descriptor: RawFd) -> io::Result<Option<OwnedFd>> {
        match pidfd_getfd(&self.pidfd, descriptor, PidfdGetfdFlags::empty()) {
            Ok(duplicate) => Ok(Some(duplicate)),
            Err(Errno::BADF | Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn duplicate(socket: SocketIdentity) -> io::Result<Option<OwnedFd>> {
    let Some(of_process) = SocketsOf::open(socket.process)? else { return Ok(None) };
    let is_it = |duplicate: &OwnedFd| sockopt::socket_cookie(duplicate) == Ok(socket.cookie);
    if of_process.inode(socket.descriptor) == Some(socket.inode) {
        let found = of_process.duplicate(socket.descriptor)?.filter(is_it);
        if found.is_some() {
            return Ok(found);
        }
    }
    // The process may have it under another number.
    for (descriptor, _) in of_process.descriptors()?.into_iter().filter(|(_, inode)| *inode == socket.inode) {
        let found = of_process.duplicate(descriptor)?.filter(is_it);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn port_of(address: rustix::net::SocketAddrAny) -> Option<u16> {
    SocketAddr::try_from(address).ok().map(|address| address.port())
}

/// Whether a socket listens, if it is at one of these ports and has the option.
fn listening_with(socket: &OwnedFd, ports: &BTreeSet<u16>, option: SocketOption) -> Option<bool> {
    let port = port_of(getsockname(socket).ok()?)?;
    let protocol = sockopt::socket_protocol(socket).ok()??;
    let is_listening = sockopt::socket_acceptconn(socket).ok()?;
    let has_option = match option {
        SocketOption::NoDelay => protocol == ipproto::TCP,
        // What is set on a listening socket lasts: its connections never have the default of the machine again.
        SocketOption::CongestionControl => protocol == ipproto::TCP && !is_listening,
        SocketOption::BusyPoll => protocol == ipproto::TCP || protocol == ipproto::UDP,
    };
    (has_option && ports.contains(&port)).then_some(is_listening)
}

fn value_of(socket: &OwnedFd, option: SocketOption) -> io::Result<String> {
    Ok(match option {
        SocketOption::NoDelay => u8::from(sockopt::tcp_nodelay(socket)?).to_string(),
        SocketOption::CongestionControl => sockopt::tcp_congestion(socket)?,
        SocketOption::BusyPoll => busy_poll_us(socket)?.to_string(),
    })
}

fn set_value(socket: &OwnedFd, option: SocketOption, value: &str) -> io::Result<()> {
    match option {
        SocketOption::NoDelay => Ok(sockopt::set_tcp_nodelay(socket, value == "1")?),
        SocketOption::CongestionControl => Ok(sockopt::set_tcp_congestion(socket, value)?),
        SocketOption::BusyPoll => {
            let microseconds = value.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
            set_busy_poll_us(socket, microseconds)
        }
    }
}

/// Whether connections wait at these ports that the server has not accepted.
fn is_accept_queue_used(process: ProcessIdentity, ports: &[u16]) -> bool {
    ["tcp", "tcp6"].into_iter().any(|file| {
        let sockets = fs::read_to_string(format!("/proc/{}/net/{file}", process.id)).unwrap_or_default();
        sockets.lines().any(|line| waiting_at(line).is_some_and(|port| ports.contains(&port)))
    })
}

/// `NUMBER: ADDRESS:PORT PEER STATE SENT:RECEIVED …` in hexadecimal numbers: the port, if the socket listens (0A) and
/// connections wait, whose number stands in the place of received bytes.
fn waiting_at(line: &str) -> Option<u16> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    let (state, queues) = (fields.nth(1)?, fields.next()?);
    let (_, waiting) = queues.split_once(':')?;
    let is_waiting = state == "0A" && u64::from_str_radix(waiting, 16).ok()? > 0;
    if is_waiting { u16::from_str_radix(port, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    fn own() -> ProcessIdentity {
        identity(std::process::id()).expect("this process runs")
    }

    #[test]
    fn sockets_are_found_by_port_and_option() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let (accepted, _) = listener.accept().expect("somebody connects");
        let datagrams = UdpSocket::bind(address).expect("UDP has ports of its own");
        let ports = BTreeSet::from([address.port()]);
        let count = |option| {
            let found = sockets(own(), &ports, option).expect("it is this process");
            (found.len(), found.iter().filter(|socket| socket.is_listening).count())
        };
        assert_eq!(count(SocketOption::NoDelay), (2, 1), "not the client's, whose port is another one");
        assert_eq!(count(SocketOption::CongestionControl), (1, 0));
        assert_eq!(count(SocketOption::BusyPoll), (3, 1));
        drop((accepted, datagrams, client));
        assert_eq!(count(SocketOption::BusyPoll), (1, 1));
        let earlier = ProcessIdentity { start: own().start - 1, ..own() };
        assert!(sockets(earlier, &ports, SocketOption::NoDelay).expect("nobody is asked").is_empty());
    }

    #[test]
    fn a_socket_is_known_by_its_cookie_wherever_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let ports = BTreeSet::from([listener.local_addr().expect("it is bound").port()]);
        let found = sockets(own(), &ports, SocketOption::NoDelay).expect("it is this process");
        let [OpenSocket { identity, value, .. }] = &found[..] else { panic!("{found:?}") };
        assert_eq!(value, "0");
        let moved = SocketIdentity { descriptor: identity.descriptor + 1000, ..*identity };
        for socket in [*identity, moved] {
            write(socket, SocketOption::NoDelay, "1").expect("it is ours");
            assert!(sockopt::tcp_nodelay(&listener).expect("it is open"));
            assert_eq!(read(socket, SocketOption::NoDelay).expect("it is ours").as_deref(), Some("1"));
            sockopt::set_tcp_nodelay(&listener, false).expect("it is open");
        }
        let other = SocketIdentity { cookie: identity.cookie + 1, ..*identity };
        assert_eq!(read(other, SocketOption::NoDelay).expect("nothing is refused"), None);
        drop(listener);
        assert_eq!(read(*identity, SocketOption::NoDelay).expect("nothing is refused"), None);
        write(*identity, SocketOption::NoDelay, "1").expect("it is closed, which is no error");
    }

    #[test]
    fn connections_that_wait_are_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        assert!(!is_accept_queue_used(own(), &[address.port()]));
        let _client = TcpStream::connect(address).expect("it listens");
        assert!(is_accept_queue_used(own(), &[address.port()]));
        assert!(!is_accept_queue_used(own(), &[1]));
        listener.accept().expect("somebody waits");
        assert!(!is_accept_queue_used(own(), &[address.port()]));
        assert_eq!(waiting_at("  sl  local_address rem_address   st tx_queue rx_queue"), None);
    }
}
