//! The read or write that an NFS call asks for.

use crate::{Position, RequestClass};
use units::Bytes;

/// What a call asks for, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) class: RequestClass,
    pub(super) position: Option<Position>,
    /// Number that a proxy charges as keys: one, and the operations beyond those that clients need.
    pub(super) keys: u32,
}

impl Access {
    /// A call that neither reads nor writes.
    pub(super) const CONTROL: Self = Self { class: RequestClass::Control, position: None, keys: 1 };

    pub(super) fn read(position: Position, bytes: u64) -> Self {
        Self { class: RequestClass::Read(Bytes(bytes)), position: Some(position), keys: 1 }
    }

    pub(super) fn write(position: Position, bytes: u64) -> Self {
        Self { class: RequestClass::Write(Bytes(bytes)), position: Some(position), keys: 1 }
    }
}
