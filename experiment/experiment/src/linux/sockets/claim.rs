//! Exclusive claim on a socket option of a server: two programs would restore each other's values.

use super::listening::process_with;
use super::namespace::NamespaceDoor;
use crate::open_sockets::ServerSockets;
use crate::setting::{PlannedChange, Setting};
use model::OperationError;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Keeps other programs from setting the same option at the same ports, until dropped.
///
/// The lock is an abstract Unix socket, which belongs to the network namespace like the ports. Programs with
/// other mounts and journals see it, and a kill leaves nothing behind.
#[derive(Debug, Default)]
pub struct SocketClaim(Vec<UnixDatagram>);

/// Claims all sockets of a list of changes.
///
/// # Errors
/// When another program has claimed some of them, or their network namespace may not be entered.
pub fn claim_sockets<'a>(
    changes: impl IntoIterator<Item = &'a PlannedChange>,
) -> Result<SocketClaim, OperationError> {
    let sockets = |change: &'a PlannedChange| match &change.setting {
        Setting::Sockets { sockets, .. } => Some(sockets),
        _ => None,
    };
    // Several values of a knob concern the same sockets.
    let all: BTreeSet<&ServerSockets> = changes.into_iter().filter_map(sockets).collect();
    let mut names = Vec::new();
    for sockets in all {
        if let Some(door) = NamespaceDoor::find(sockets.namespace)? {
            names.extend(claim(sockets, &door)?.0);
        }
    }
    Ok(SocketClaim(names))
}

/// Claims sockets of a network namespace.
pub(super) fn claim(sockets: &ServerSockets, door: &NamespaceDoor) -> Result<SocketClaim, OperationError> {
    let names = sockets.ports.iter().map(|port| claim_port(sockets, *port, door));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    Ok(SocketClaim(names.into_iter().flatten().collect()))
}

/// Maximum number of attempts at a name that another process has.
const ATTEMPTS: u32 = 50;
/// Pause between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// Claims one port. Returns `None` if the name is bound by a program without the rights for an experiment:
/// any user can bind it, and must not be able to prevent an undo.
fn claim_port(
    sockets: &ServerSockets,
    port: u16,
    door: &NamespaceDoor,
) -> Result<Option<UnixDatagram>, OperationError> {
    let name = format!("tailwright-{}-{port}", sockets.option);
    let mut attempts = 1;
    loop {
        let error = match door.inside(|| bound(&name))? {
            Ok(socket) => return Ok(Some(socket)),
            Err(error) => error,
        };
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(OperationError::machine(format_args!("{sockets}: the name @{name}: {error}")));
        }
        let holder = door.inside(|| inode_of(&name))?.and_then(process_with);
        if holder.is_some_and(|holder| !may_experiment(holder)) {
            return Ok(None);
        }
        // A child that was forked keeps a name that its parent gave back, until it executes its program.
        if holder != Some(std::process::id()) && attempts < ATTEMPTS {
            attempts += 1;
            std::thread::sleep(ATTEMPT_PAUSE);
            continue;
        }
        let who = holder.map(|process| format!(" (process {process})")).unwrap_or_default();
        let message =
            format_args!("{sockets}: another experiment{who} is about {} at port {port}", sockets.option);
        return Err(OperationError::machine(message)
            .hint("wait until it has ended, or end it: it undoes what it did"));
    }
}

fn bound(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Returns the inode of the abstract socket with a name, in the network namespace of the calling thread.
fn inode_of(name: &str) -> Option<u64> {
    let sockets = fs::read_to_string("/proc/thread-self/net/unix").unwrap_or_default();
    sockets.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(6);
        let inode = fields.next()?;
        let path = fields.next()?;
        (path.strip_prefix('@') == Some(name)).then(|| inode.parse().ok()).flatten()
    })
}

/// Returns true if a process belongs to root or to the user of this one.
fn may_experiment(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let user = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok());
    // A process that has ended meanwhile may have been an experiment.
    user.is_none_or(|user: u32| user == 0 || user == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sockets::namespace::namespace_of;
    use crate::open_sockets::SocketOption;
    use crate::setting::ON;
    use std::io::{BufRead as _, BufReader};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// Ports that no other test claims.
    fn about(option: SocketOption, ports: &[u16], folder: &str) -> PlannedChange {
        let namespace = namespace_of(std::process::id()).expect("it runs");
        let folder = PathBuf::from(folder);
        let sockets = ServerSockets { option, ports: ports.to_vec(), namespace, folder, device: None };
        PlannedChange { setting: Setting::Sockets { sockets, value: "on".to_owned() }, value: ON.to_owned() }
    }

    #[test]
    fn a_port_is_claimed_once_for_each_option() {
        let first = about(SocketOption::NoDelay, &[1, 2], "first");
        let held = claim_sockets([&first, &first]).expect("nobody has claimed them");
        let error =
            claim_sockets([&about(SocketOption::NoDelay, &[2, 3], "second")]).expect_err("2 is claimed");
        let who =
            format!("another experiment (process {}) is about TCP_NODELAY at port 2", std::process::id());
        assert!(error.message.ends_with(&who), "{error}");
        claim_sockets([&about(SocketOption::NoDelay, &[3], "second")]).expect("another port");
        claim_sockets([&about(SocketOption::CongestionControl, &[2], "third")]).expect("another option");
        drop(held);
        claim_sockets([&first]).expect("it was given back");
    }

    /// A forked child has what its parent gave back, until it executes its program.
    #[test]
    fn a_name_is_waited_for_while_children_begin() {
        let children = std::thread::spawn(|| {
            for _ in 0..500 {
                Command::new("true").status().expect("it runs");
            }
        });
        while !children.is_finished() {
            drop(claim_sockets([&about(SocketOption::NoDelay, &[5], "again")]).expect("it was given back"));
        }
        children.join().expect("children run");
    }

    #[test]
    fn who_may_not_experiment_keeps_nobody_from_it() {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || testkit::program("setpriv").is_none() || testkit::program("perl").is_none() {
            return testkit::skip("it takes root, setpriv and perl");
        }
        let script = r#"socket(S, AF_UNIX, SOCK_DGRAM, 0) or die;
            bind(S, pack_sockaddr_un("\0tailwright-TCP_NODELAY-4")) or die;
            $| = 1; print "\n"; <STDIN>;"#;
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", "perl", "-MSocket", "-e", script]);
        let mut foreign =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("setpriv starts");
        let mut output = BufReader::new(foreign.stdout.take().expect("it is piped"));
        output.read_line(&mut String::new()).expect("it has bound the name");
        let inode = inode_of("tailwright-TCP_NODELAY-4").expect("it is bound");
        assert_eq!(process_with(inode), Some(foreign.id()));
        claim_sockets([&about(SocketOption::NoDelay, &[4], "first")])
            .expect("nobody's name counts for nothing");
        foreign.kill().expect("it is ours");
        foreign.wait().expect("it ends");
    }
}
