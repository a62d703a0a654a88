//! Finds the sockets of a server: those at TCP ports on which its processes listen.

use super::namespace::{living_folder, namespace_of, processes};
use super::pinned::{device_of, folder};
use crate::linux::process::is_alive;
use crate::open_sockets::{NetworkNamespace, ServerSockets, SocketOption};
use crate::setting::ProcessIdentity;
use model::OperationError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// State of listening sockets in `/proc/net/tcp` (TCP_LISTEN).
const LISTENS: &str = "0A";

/// A socket that listens at one of the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListeningSocket {
    inode: u64,
    port: u16,
}

/// Returns the sockets of processes at the given ports that they listen on, by network namespace.
///
/// Fails if another program listens at such a port too: the port does not tell the connections of the two
/// apart.
pub(crate) fn server_sockets(
    processes: &[ProcessIdentity],
    ports: &BTreeSet<u16>,
    option: SocketOption,
) -> Result<Vec<ServerSockets>, OperationError> {
    let mut namespaces: BTreeMap<NetworkNamespace, u32> = BTreeMap::new();
    for process in processes.iter().filter(|process| is_alive(**process)) {
        let namespace = namespace_of(process.id).map_err(|error| hidden(process.id, &error))?;
        namespaces.entry(namespace).or_insert(process.id);
    }
    let mut all = Vec::new();
    for (namespace, member) in namespaces {
        let listening = listening_sockets(member, ports).map_err(|error| hidden(member, &error))?;
        let foreign = without_those_of(processes, listening.clone())?;
        let own: BTreeSet<u16> = listening.difference(&foreign).map(|socket| socket.port).collect();
        if let Some(socket) = foreign.iter().find(|socket| own.contains(&socket.port)) {
            return Err(shared_with_another(*socket));
        }
        if let Some(first) = own.first() {
            let folder = folder(option, namespace, *first);
            let device = folder.parent().and_then(device_of);
            all.push(ServerSockets { option, ports: own.into_iter().collect(), namespace, folder, device });
        }
    }
    if all.is_empty() {
        let list = |numbers: Vec<String>| numbers.join(",");
        let ids = list(processes.iter().map(|process| process.id.to_string()).collect());
        let ports = list(ports.iter().map(u16::to_string).collect());
        return Err(OperationError::input(format_args!("process {ids} does not listen at TCP port {ports}"))
            .hint("--pid names the processes that have the listening sockets: `ss -ltnp` lists them"));
    }
    Ok(all)
}

/// Returns the sockets that listen at ports in the network namespace of a process. The files list them before
/// connections.
fn listening_sockets(process: u32, ports: &BTreeSet<u16>) -> io::Result<BTreeSet<ListeningSocket>> {
    let mut found = BTreeSet::new();
    for name in ["tcp", "tcp6"] {
        let file = match File::open(living_folder(process).join("net").join(name)) {
            // A kernel without IPv6 has no tcp6.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name == "tcp6" => continue,
            file => file?,
        };
        for line in BufReader::new(file).lines().skip(1) {
            let Some(socket) = listening(&line?) else { break };
            if ports.contains(&socket.port) {
                found.insert(socket);
            }
        }
    }
    Ok(found)
}

/// Parses a line `NUMBER: ADDRESS:PORT PEER STATE QUEUES TIMER RETRANSMITS USER TIMEOUT INODE …` of a
/// listening socket.
fn listening(line: &str) -> Option<ListeningSocket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    if fields.nth(1)? != LISTENS {
        return None;
    }
    Some(ListeningSocket { inode: fields.nth(5)?.parse().ok()?, port: u16::from_str_radix(port, 16).ok()? })
}

/// Removes the sockets that one of the processes has open.
fn without_those_of(
    processes: &[ProcessIdentity],
    mut sockets: BTreeSet<ListeningSocket>,
) -> Result<BTreeSet<ListeningSocket>, OperationError> {
    for process in processes {
        let id = process.id;
        let listing = match fs::read_dir(living_folder(id).join("fd")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            listing => listing.map_err(|error| hidden(id, &error))?,
        };
        // Listening sockets usually have lower descriptors than thousands of connections.
        for entry in listing.flatten() {
            if sockets.is_empty() {
                return Ok(sockets);
            }
            match fs::read_link(entry.path()) {
                Ok(link) => sockets.retain(|socket| !is_socket(&link, socket.inode)),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(hidden(id, &error));
                }
                // The descriptor was closed meanwhile.
                Err(_) => {}
            }
        }
    }
    Ok(sockets)
}

fn is_socket(link: &Path, inode: u64) -> bool {
    let number = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
    number.and_then(|number| number.parse().ok()) == Some(inode)
}

fn hidden(process: u32, error: &io::Error) -> OperationError {
    let message = format_args!("the open sockets of process {process} cannot be found out: {error}");
    OperationError::machine(message)
        .hint("run as root, or `setpriv` with --inh-caps and --ambient-caps +sys_ptrace,+dac_read_search")
}

fn shared_with_another(socket: ListeningSocket) -> OperationError {
    let who = owner(socket.inode).unwrap_or_else(|| "another program".to_owned());
    let message = format_args!(
        "{who} listens at port {} as well, and its sockets cannot be told apart from the server's",
        socket.port
    );
    OperationError::input(message).hint("if it is one of the server's processes, name it with --pid, too")
}

fn owner(inode: u64) -> Option<String> {
    let process = process_with(inode)?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    Some(format!("process {process} ({})", name.trim()))
}

/// Returns a process that has a socket open, among those that can be inspected.
pub(super) fn process_with(inode: u64) -> Option<u32> {
    processes().find(|process| {
        let files = fs::read_dir(living_folder(*process).join("fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|link| is_socket(&link, inode)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::identity;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    fn own() -> ProcessIdentity {
        identity(std::process::id()).expect("this process runs")
    }

    #[test]
    fn ports_are_those_at_which_the_processes_listen() {
        let [first, second] = ["127.0.0.1:0", "127.0.0.1:0"]
            .map(|address| TcpListener::bind(address).expect("there are ports"));
        let [first, second] =
            [first, second].map(|listener| (listener.local_addr().expect("it is bound").port(), listener));
        let client = TcpStream::connect(("127.0.0.1", first.0)).expect("it listens");
        let asked = BTreeSet::from([first.0, second.0, client.local_addr().expect("it is bound").port()]);
        let found = server_sockets(&[own()], &asked, SocketOption::NoDelay).expect("it is this process");
        let [sockets] = &found[..] else { panic!("{found:?}") };
        assert_eq!(sockets.ports, Vec::from_iter(BTreeSet::from([first.0, second.0])), "not the client's");
        drop(second);
        let found = server_sockets(&[own()], &asked, SocketOption::NoDelay).expect("it is this process");
        assert_eq!(found[0].ports, [first.0]);
        drop(first);
        let error = server_sockets(&[own()], &asked, SocketOption::NoDelay).expect_err("nobody listens");
        assert!(error.message.contains("does not listen"), "{error}");
    }

    /// Then the kernel shows no descriptors in `/proc/PID`.
    #[test]
    fn a_server_may_outlive_its_first_thread() {
        let Some(python) = testkit::program("python3") else { return };
        let script = "import ctypes, os, socket, threading\n\
                      server = socket.create_server(('127.0.0.1', 0))\n\
                      threading.Thread(target=threading.Event().wait).start()\n\
                      print(server.getsockname()[1], flush=True)\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let mut child =
            Command::new(python).args(["-c", script]).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says its port");
        let port: u16 = line.trim().parse().expect("a number");
        testkit::wait_until(Duration::from_secs(60), "its first thread has ended", || {
            fs::metadata(format!("/proc/{}/ns/net", child.id())).is_err()
        });
        let process = identity(child.id()).expect("its other thread runs");
        let found = server_sockets(&[process], &BTreeSet::from([port]), SocketOption::NoDelay);
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
        assert_eq!(found.expect("it listens")[0].ports, [port]);
    }

    #[test]
    fn lines_of_the_kernel() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1";
        assert_eq!(listening(line), Some(ListeningSocket { inode: 4711, port: 8080 }));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("   0: 0100007F:1F90 00000000:0000 0A"), None);
        assert!(is_socket(Path::new("socket:[4711]"), 4711) && !is_socket(Path::new("pipe:[4711]"), 4711));
    }
}
