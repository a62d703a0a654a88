//! One program at a time sets an option of a server's sockets: two would take each other's values for what was before.

use super::namespace::NamespaceDoor;
use crate::open_sockets::ServerSockets;
use crate::setting::{PlannedChange, Setting};
use model::OperationError;
use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Keeps other programs from setting the same option at the same ports, until it is dropped or this program ends.
///
/// A name without a file, which belongs to a network namespace as ports do: programs with other mounts and other journals
/// see it, and nothing is left of it after a kill.
#[derive(Debug, Default)]
pub struct SocketClaim(Vec<UnixDatagram>);

/// Claims all sockets that changes are about.
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
    // Several values are about the same sockets.
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
    let names = sockets.ports.iter().map(|port| {
        let name = format!("tailwright-{}-{port}", sockets.option);
        door.inside(|| bound(&name))?.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                let message =
                    format_args!("{sockets}: another experiment is about {} at port {port}", sockets.option);
                OperationError::machine(message)
                    .hint("wait until it has ended, or end it: it undoes what it did")
            }
            _ => OperationError::machine(format_args!("{sockets}: the name @{name}: {error}")),
        })
    });
    names.collect::<Result<_, _>>().map(SocketClaim)
}

fn bound(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sockets::namespace::namespace_of;
    use crate::open_sockets::SocketOption;
    use crate::setting::ON;
    use std::path::PathBuf;

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
        assert!(error.message.ends_with("another experiment is about TCP_NODELAY at port 2"), "{error}");
        claim_sockets([&about(SocketOption::NoDelay, &[3], "second")]).expect("another port");
        claim_sockets([&about(SocketOption::CongestionControl, &[2], "third")]).expect("another option");
        drop(held);
        claim_sockets([&first]).expect("it was given back");
    }
}
