//! What MOUNT calls asked for, until they are answered.

use crate::fields::check_at_most;
use crate::{GrantedMount, ProtocolError};

/// The most MOUNT calls without a reply on one connection, with a path of up to 1 KiB each. Clients wait for each.
const PENDING_MOUNTS_MAX: usize = 16;

/// The paths of MOUNT calls by xid, and what the latest reply granted.
#[derive(Debug, Default)]
pub(super) struct MountCalls {
    pending: Vec<(u32, Vec<u8>)>,
    granted: Option<GrantedMount>,
}

impl MountCalls {
    /// Notes a call that is not in flight yet.
    pub(super) fn asked(&mut self, xid: u32, path: Vec<u8>) -> Result<(), ProtocolError> {
        let count = self.pending.len() as u64 + 1;
        check_at_most("outstanding MOUNT calls", PENDING_MOUNTS_MAX as u64, count)?;
        self.pending.push((xid, path));
        Ok(())
    }

    /// Notes a call with an xid that is in flight. Unless it repeats the MOUNT call word for word, nobody can tell which
    /// of the two the server will answer first, and the answer grants nothing.
    pub(super) fn asked_again(&mut self, xid: u32, path: Option<&[u8]>) {
        self.pending.retain(|(pending, asked)| *pending != xid || Some(&asked[..]) == path);
    }

    /// Notes a reply, with the root that it grants if it does.
    pub(super) fn answered(&mut self, xid: u32, root: Option<Vec<u8>>) {
        self.granted = None;
        if let Some(index) = self.pending.iter().position(|(pending, _)| *pending == xid) {
            let (_, path) = self.pending.swap_remove(index);
            self.granted = root.map(|root| GrantedMount { path, root });
            if self.pending.is_empty() {
                self.pending = Vec::new();
            }
        }
    }

    /// Hands over what the latest reply granted.
    pub(super) fn take_granted(&mut self) -> Option<GrantedMount> {
        self.granted.take()
    }
}
