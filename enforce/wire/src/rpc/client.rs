//! Encodes the calls that a load generator sends: NFSv3 (RFC 1813), MOUNT version 3, and GETPORT of the portmapper.
//! Each function appends one record of one fragment to a buffer.

use super::protocol::{
    CALL, FLAVOR_NONE, FLAVOR_UNIX, GETPORT, MNT, MOUNT, NFS, NFS3_COMMIT, NFS3_CREATE, NFS3_GETATTR,
    NFS3_LOOKUP, NFS3_READ, NFS3_WRITE, PORTMAP, RPC_VERSION, TCP,
};

/// The user on whose behalf a client calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials<'a> {
    /// AUTH_NONE: no user in particular.
    None,
    /// AUTH_UNIX: a user with one group.
    Unix {
        /// The name of the client's machine, at most 255 bytes.
        machine: &'a str,
        /// The numeric user identifier.
        uid: u32,
        /// The numeric group identifier.
        gid: u32,
    },
}

/// When written data must be on stable storage: `stable_how` of RFC 1813, section 3.3.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StableHow {
    /// The data must be stable after a COMMIT.
    Unstable = 0,
    /// The file's data, and what is needed to read them, must be stable with the reply.
    DataSync = 1,
    /// The data and all attributes must be stable with the reply.
    FileSync = 2,
}

/// Appends calls with the same credentials to a buffer.
#[derive(Debug)]
pub struct CallEncoder<'a> {
    out: &'a mut Vec<u8>,
    credentials: Credentials<'a>,
}

impl<'a> CallEncoder<'a> {
    /// An encoder that appends to `out`.
    ///
    /// # Panics
    /// When the name of the machine is longer than 255 bytes.
    pub fn new(out: &'a mut Vec<u8>, credentials: Credentials<'a>) -> Self {
        if let Credentials::Unix { machine, .. } = credentials {
            assert!(machine.len() <= 255, "AUTH_UNIX machine names have at most 255 bytes");
        }
        Self { out, credentials }
    }

    /// Appends NULL of NFSv3, which does nothing and takes a round trip.
    pub fn null(&mut self, xid: u32) {
        self.put_call(xid, [NFS, 3, 0], |_| ());
    }

    /// Appends GETPORT of portmap version 2, which asks for the TCP port of a program.
    pub fn getport(&mut self, xid: u32, program: u32, version: u32) {
        self.put_call(xid, [PORTMAP, 2, GETPORT], |out| {
            for word in [program, version, TCP, 0] {
                put_u32(out, word);
            }
        });
    }

    /// Appends MNT of MOUNT version 3, which asks for the handle of an export's root.
    pub fn mount(&mut self, xid: u32, path: &[u8]) {
        self.put_call(xid, [MOUNT, 3, MNT], |out| put_opaque(out, path));
    }

    /// Appends LOOKUP, which asks for the handle of a name in a directory.
    pub fn lookup(&mut self, xid: u32, directory: &[u8], name: &[u8]) {
        self.put_call(xid, [NFS, 3, NFS3_LOOKUP], |out| {
            put_opaque(out, directory);
            put_opaque(out, name);
        });
    }

    /// Appends GETATTR, which asks for the attributes of a file.
    pub fn getattr(&mut self, xid: u32, file: &[u8]) {
        self.put_call(xid, [NFS, 3, NFS3_GETATTR], |out| put_opaque(out, file));
    }

    /// Appends an unchecked CREATE, which opens a file that exists. `size` sets the length in bytes, and cuts a longer
    /// file.
    pub fn create(&mut self, xid: u32, directory: &[u8], name: &[u8], mode: u32, size: Option<u64>) {
        self.put_call(xid, [NFS, 3, NFS3_CREATE], |out| {
            put_opaque(out, directory);
            put_opaque(out, name);
            // UNCHECKED; the mode is set, user and group are not, and the size is if it is given.
            for word in [0, 1, mode, 0, 0, u32::from(size.is_some())] {
                put_u32(out, word);
            }
            out.extend(size.into_iter().flat_map(u64::to_be_bytes));
            // Access and modification times are not set.
            put_u32(out, 0);
            put_u32(out, 0);
        });
    }

    /// Appends a READ of `count` bytes from `offset`.
    pub fn read(&mut self, xid: u32, file: &[u8], offset: u64, count: u32) {
        self.put_call(xid, [NFS, 3, NFS3_READ], |out| put_range(out, file, offset, count));
    }

    /// Appends a WRITE of `data` at `offset`.
    pub fn write(&mut self, xid: u32, file: &[u8], offset: u64, stable: StableHow, data: &[u8]) {
        self.put_call(xid, [NFS, 3, NFS3_WRITE], |out| {
            put_range(out, file, offset, len_u32(data));
            put_u32(out, stable as u32);
            put_opaque(out, data);
        });
    }

    /// Appends a COMMIT of `count` bytes from `offset`, or of all behind it if `count` is zero.
    pub fn commit(&mut self, xid: u32, file: &[u8], offset: u64, count: u32) {
        self.put_call(xid, [NFS, 3, NFS3_COMMIT], |out| put_range(out, file, offset, count));
    }

    fn put_call(&mut self, xid: u32, procedure: [u32; 3], arguments: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        // The record mark, which is set below.
        put_u32(self.out, 0);
        for word in [xid, CALL, RPC_VERSION].into_iter().chain(procedure) {
            put_u32(self.out, word);
        }
        self.put_credentials();
        put_u32(self.out, FLAVOR_NONE);
        put_u32(self.out, 0);
        arguments(self.out);
        let body = u32::try_from(self.out.len() - start - 4).expect("a record is shorter than 2 GiB");
        assert!(body < 1 << 31, "a record is shorter than 2 GiB");
        self.out[start..start + 4].copy_from_slice(&(body | 1 << 31).to_be_bytes());
    }

    fn put_credentials(&mut self) {
        let Credentials::Unix { machine, uid, gid } = self.credentials else {
            put_u32(self.out, FLAVOR_NONE);
            return put_u32(self.out, 0);
        };
        put_u32(self.out, FLAVOR_UNIX);
        let padded = len_u32(machine.as_bytes()).next_multiple_of(4);
        // The body holds a stamp, the length of the name, the name, user, group, and the number of further groups.
        put_u32(self.out, 5 * 4 + padded);
        put_u32(self.out, 0);
        put_opaque(self.out, machine.as_bytes());
        for word in [uid, gid, 0] {
            put_u32(self.out, word);
        }
    }
}

fn put_range(out: &mut Vec<u8>, file: &[u8], offset: u64, count: u32) {
    put_opaque(out, file);
    out.extend(offset.to_be_bytes());
    put_u32(out, count);
}

fn put_u32(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_be_bytes());
}

fn put_opaque(out: &mut Vec<u8>, data: &[u8]) {
    put_u32(out, len_u32(data));
    out.extend(data);
    out.extend(std::iter::repeat_n(0, data.len().wrapping_neg() % 4));
}

fn len_u32(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("opaque data of one call is shorter than 2 GiB")
}
