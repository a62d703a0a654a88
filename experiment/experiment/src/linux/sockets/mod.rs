//! Options of the server's open sockets, set and restored by BPF programs.
//!
//! Processes and descriptors do not matter: a socket that several processes share is one socket, and so
//! is one that waits to be accepted. The old value of a socket is kept with it in the kernel, for as long
//! as the socket and the map exist. The map is pinned in a BPF file system.

mod bpf_mounts;
mod claim;
mod listening;
mod namespace;
mod passes;
mod pinned;
mod programs;

pub use claim::{SocketClaim, claim_sockets};
pub(crate) use listening::server_sockets;

use crate::open_sockets::{ServerSockets, SocketTotals, SocketsTakenBack};
use model::OperationError;
use namespace::NamespaceDoor;
use passes::SocketPasses;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the reason why this process cannot set socket options: no place for records, or no access to the
/// namespace.
pub(crate) fn unusable(sockets: &ServerSockets) -> Option<OperationError> {
    pinned::unusable(&sockets.folder).or_else(|| match NamespaceDoor::find(sockets.namespace) {
        Ok(door) => door?.inside(|| ()).err(),
        Err(error) => Some(error),
    })
}

/// Returns the reason why this process cannot keep records of any sockets.
pub(crate) fn socket_place_unusable() -> Option<OperationError> {
    pinned::mount_unusable()
}

/// Sockets being set by this program, by directory of their records.
#[derive(Debug, Default)]
pub(super) struct OpenSockets {
    passes: BTreeMap<PathBuf, SocketPasses>,
}

impl OpenSockets {
    /// Returns true if all sockets have a value; `None` without connections, because a server may set the
    /// option on each.
    pub(super) fn have(
        &mut self,
        sockets: &ServerSockets,
        value: &str,
    ) -> Result<Option<bool>, OperationError> {
        let passes = self.passes_of(sockets)?;
        passes.count(value).map(|counts| {
            let have_others = counts.have_not.total() + counts.failed.total() > 0;
            let connected = [counts.have, counts.have_not, counts.failed].map(|count| count.connected);
            (connected.iter().sum::<u64>() > 0).then_some(!have_others)
        })
    }

    /// Sets the value, or sets it again if enough time has passed.
    pub(super) fn set(&mut self, sockets: &ServerSockets, value: &str) -> Result<(), OperationError> {
        self.passes_of(sockets)?.set(value)
    }

    /// Restores the sockets, except where the server has set the option since.
    pub(super) fn take_back(&mut self, sockets: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        if let Some(passes) = self.passes.get_mut(&sockets.folder) {
            return passes.take_back();
        }
        Self::take_back_what_is_left(sockets)
    }

    /// Restores sockets left by another program. Without records nothing was set; without the namespace no
    /// socket is left.
    fn take_back_what_is_left(sockets: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        let folder = pinned::find(sockets)?.unwrap_or_else(|| sockets.folder.clone());
        let door = NamespaceDoor::find(sockets.namespace)?;
        match door.filter(|_| pinned::has_records(&folder)) {
            Some(door) => {
                // Without the claim, a value set by a running experiment would be mistaken for the server's.
                let _claim = claim::claim(sockets, &door)?;
                let found = ServerSockets { folder, ..sockets.clone() };
                SocketPasses::of_records(&found, door)?.take_back()
            }
            None => pinned::remove(&folder).map(|()| SocketsTakenBack::default()).map_err(|error| {
                let message = format_args!("{}: {error}", folder.display());
                OperationError::machine(message).hint("run as root")
            }),
        }
    }

    /// Inspects the sockets as often as if the option were set, at the same cost.
    pub(super) fn look(&mut self) -> Result<(), OperationError> {
        self.passes.values_mut().try_for_each(SocketPasses::look)
    }

    /// Returns totals so far; `None` if no sockets were requested.
    pub(super) fn totals(&self) -> Option<SocketTotals> {
        let all = self.passes.values().map(|passes| passes.totals);
        all.reduce(|one, other| SocketTotals {
            listening: one.listening + other.listening,
            connected: one.connected + other.connected,
            set_again: one.set_again + other.set_again,
            not_set: one.not_set + other.not_set,
            is_server_seen: one.is_server_seen && other.is_server_seen,
            passes: one.passes + other.passes,
            duration: one.duration + other.duration,
        })
    }

    fn passes_of(&mut self, sockets: &ServerSockets) -> Result<&mut SocketPasses, OperationError> {
        if !self.passes.contains_key(&sockets.folder) {
            let passes = SocketPasses::new(sockets)?;
            self.passes.insert(sockets.folder.clone(), passes);
        }
        Ok(self.passes.get_mut(&sockets.folder).expect("it is there or was just put there"))
    }
}
