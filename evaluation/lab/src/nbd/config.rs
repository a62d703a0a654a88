//! Configuration of an emulated SSD on the network.

use crate::device::SsdModel;
use units::Nanos;

/// Takes a line about each connection that was given up, with the reason.
pub type ConnectionLog = Box<dyn FnMut(&str) + Send>;

/// A volume that clients may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedVolume {
    /// The name of the export, up to `NAME_BYTES_MAX` bytes. A client that asks for the empty name gets the
    /// first export.
    pub name: String,
    /// The size in bytes, at most [`Self::SIZE_MAX`].
    pub size: u64,
}

impl ExportedVolume {
    /// The longest name that the protocol allows.
    pub(crate) const NAME_BYTES_MAX: usize = 4096;
    /// The largest size, chosen so that sums of an offset and a length stay far from overflow.
    pub const SIZE_MAX: u64 = 1 << 62;
}

/// The device that a server emulates, and its volumes.
#[derive(Debug, Clone, PartialEq)]
pub struct NbdServerConfig {
    /// Service times of requests.
    pub model: SsdModel,
    /// The volumes: at least one, with distinct names.
    pub exports: Vec<ExportedVolume>,
    /// Time before a completion at which the server stops sleeping and polls. More than a millisecond gains
    /// nothing.
    pub spin: Nanos,
}

impl NbdServerConfig {
    /// # Panics
    /// When there is no export, two have the same name, or one exceeds its limits.
    pub(super) fn check(&self) {
        assert!(!self.exports.is_empty(), "a server has an export");
        for (index, export) in self.exports.iter().enumerate() {
            let is_new = self.exports[..index].iter().all(|other| other.name != export.name);
            assert!(is_new, "export {} is there twice", export.name);
            let is_in_range = export.size <= ExportedVolume::SIZE_MAX
                && export.name.len() <= ExportedVolume::NAME_BYTES_MAX;
            assert!(is_in_range, "export {} exceeds the limits of size and name", export.name);
        }
    }
}
