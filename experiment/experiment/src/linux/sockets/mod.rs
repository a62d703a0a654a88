//! Options of the open sockets of a server, set and taken back by programs in the kernel.
//!
//! Processes and descriptors play no part in it: a socket that several processes share is one socket, and one that waits
//! to be accepted is one as well. What a socket had before is kept with it in the kernel, as long as the socket and the
//! map that is pinned in a file system of BPF.

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

/// Why this process cannot set options of sockets: there is no place for records, or it may not enter their namespace.
pub(crate) fn unusable(sockets: &ServerSockets) -> Option<OperationError> {
    pinned::unusable(&sockets.folder).or_else(|| match NamespaceDoor::find(sockets.namespace) {
        Ok(door) => door?.inside(|| ()).err(),
        Err(error) => Some(error),
    })
}

/// The sockets that this program sets options of, by the folder of their records.
#[derive(Debug, Default)]
pub(super) struct OpenSockets {
    passes: BTreeMap<PathBuf, SocketPasses>,
}

impl OpenSockets {
    /// Whether all of the sockets have a value; `None` without connections, because servers may set the option of each.
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

    /// Gives the sockets a value; again, if it is long enough since the last time.
    pub(super) fn set(&mut self, sockets: &ServerSockets, value: &str) -> Result<(), OperationError> {
        self.passes_of(sockets)?.set(value)
    }

    /// Gives the sockets what they had before, or what the server has set since.
    pub(super) fn take_back(&mut self, sockets: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        if let Some(passes) = self.passes.get_mut(&sockets.folder) {
            return passes.take_back();
        }
        Self::take_back_what_is_left(sockets)
    }

    /// Gives back what another program has left. Without records nothing was set, and without the namespace no socket is
    /// left.
    fn take_back_what_is_left(sockets: &ServerSockets) -> Result<SocketsTakenBack, OperationError> {
        let folder = pinned::find(sockets)?.unwrap_or_else(|| sockets.folder.clone());
        let door = NamespaceDoor::find(sockets.namespace)?;
        match door.filter(|_| pinned::has_records(&folder)) {
            Some(door) => {
                // What an experiment that runs sets meanwhile would be taken for the server's.
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

    /// Looks at the sockets as often as if the option were set, so that this costs the same.
    pub(super) fn look(&mut self) -> Result<(), OperationError> {
        self.passes.values_mut().try_for_each(SocketPasses::look)
    }

    /// What was done until now; `None` where no sockets were asked for.
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
