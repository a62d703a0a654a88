//! The numbers of RFC 5531 (RPC), RFC 1833 (portmap), RFC 1813 (NFSv3, MOUNT), RFC 1094 (NFSv2), RFC 7530 (NFSv4.0)
//! and RFC 7862 (NFSv4.2) under their names there: of operations only those that mean something here.

pub(super) const CALL: u32 = 0;
pub(super) const REPLY: u32 = 1;
pub(super) const RPC_VERSION: u32 = 2;
/// The longest body of credentials and verifiers, RFC 5531, section 8.2.
pub(super) const AUTH_LEN_MAX: u32 = 400;
pub(super) const FLAVOR_NONE: u32 = 0;
pub(super) const FLAVOR_UNIX: u32 = 1;
pub(super) const FLAVOR_GSS: u32 = 6;

pub(super) const PORTMAP: u32 = 100_000;
pub(super) const GETPORT: u32 = 3;
pub(super) const TCP: u32 = 6;

/// The RPC program number of NFS.
pub const NFS: u32 = 100_003;
/// The RPC program number of NFSACL, which clients use on their connection to NFS.
pub(super) const NFS_ACL: u32 = 100_227;
/// The RPC program number of MOUNT.
pub const MOUNT: u32 = 100_005;
pub(super) const MNT: u32 = 1;

pub(super) const NFS2_READ: u32 = 6;
pub(super) const NFS2_WRITE: u32 = 8;
pub(super) const NFS3_GETATTR: u32 = 1;
pub(super) const NFS3_LOOKUP: u32 = 3;
pub(super) const NFS3_READ: u32 = 6;
pub(super) const NFS3_WRITE: u32 = 7;
pub(super) const NFS3_CREATE: u32 = 8;
pub(super) const NFS3_COMMIT: u32 = 21;
pub(super) const NFS4_COMPOUND: u32 = 1;

pub(super) const OP_CREATE: u32 = 6;
pub(super) const OP_LOOKUP: u32 = 15;
pub(super) const OP_LOOKUPP: u32 = 16;
pub(super) const OP_OPEN: u32 = 18;
pub(super) const OP_OPENATTR: u32 = 19;
pub(super) const OP_PUTFH: u32 = 22;
pub(super) const OP_PUTPUBFH: u32 = 23;
pub(super) const OP_PUTROOTFH: u32 = 24;
pub(super) const OP_READ: u32 = 25;
pub(super) const OP_RESTOREFH: u32 = 31;
pub(super) const OP_SAVEFH: u32 = 32;
pub(super) const OP_WRITE: u32 = 38;
pub(super) const OP_ALLOCATE: u32 = 59;
pub(super) const OP_COPY: u32 = 60;
pub(super) const OP_DEALLOCATE: u32 = 62;
pub(super) const OP_READ_PLUS: u32 = 68;
pub(super) const OP_WRITE_SAME: u32 = 70;
pub(super) const OP_CLONE: u32 = 71;
