//! Readers by format: a row for each. A reader gets all texts that are recognised as its own, since formats such as
//! systemd's drop-ins have a meaning only together.

mod ceph;
mod cgroup;
mod kubernetes;
mod libvirt;
mod parse;
mod policy;
mod qemu;
mod systemd;
mod tc;

use crate::survey::{SourceText, Survey};

pub(crate) use cgroup::is_file_name as is_cgroup_file;

/// A format, by its name, description, and functions that recognise and read it.
pub struct Reader {
    /// Name in options, tables and documents.
    pub name: &'static str,
    /// Description for people.
    pub what: &'static str,
    /// True for a text in this format.
    pub recognises: fn(&SourceText) -> bool,
    /// Reads all texts of this format.
    pub(crate) read: fn(&[SourceText], &mut Survey),
}

/// Readers in the order in which they are asked whether a text is theirs: those that go by the file's name first.
pub const READERS: [Reader; 8] = [
    Reader {
        name: cgroup::NAME,
        what: "control groups, version 1 or 2",
        recognises: cgroup::recognises,
        read: cgroup::read,
    },
    Reader {
        name: systemd::NAME,
        what: "systemd units and drop-ins",
        recognises: systemd::recognises,
        read: systemd::read,
    },
    Reader {
        name: policy::NAME,
        what: "policies of tailwright plan",
        recognises: policy::recognises,
        read: policy::read,
    },
    Reader {
        name: libvirt::NAME,
        what: "libvirt domains",
        recognises: libvirt::recognises,
        read: libvirt::read,
    },
    Reader { name: qemu::NAME, what: "QEMU command lines", recognises: qemu::recognises, read: qemu::read },
    Reader { name: tc::NAME, what: "tc class and qdisc lists", recognises: tc::recognises, read: tc::read },
    Reader { name: ceph::NAME, what: "ceph config dump", recognises: ceph::recognises, read: ceph::read },
    Reader {
        name: kubernetes::NAME,
        what: "Kubernetes storage classes, attribute classes and claims",
        recognises: kubernetes::recognises,
        read: kubernetes::read,
    },
];
