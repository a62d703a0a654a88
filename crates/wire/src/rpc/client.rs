//! Calls as a generator of load sends them: NFSv3 (RFC 1813), MOUNT version 3, and GETPORT of the portmapper.
//! Each function appends one record of one fragment to a buffer.

use super::protocol::{
    CALL, FLAVOR_NONE, FLAVOR_UNIX, GETPORT, MNT, MOUNT, NFS, NFS3_COMMIT, NFS3_CREATE, NFS3_GETATTR,
    NFS3_LOOKUP, NFS3_READ, NFS3_WRITE, PORTMAP, RPC_VERSION, TCP,
};

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth<'a> {
    /// Nobody in particular.
    None,
    /// AUTH_UNIX without further groups.
    Unix {
        /// Name of the client's machine, at most 255 bytes.
        machine: &'a str,
        /// User.
        uid: u32,
        /// Group.
        gid: u32,
    },
}

/// When written data must be on stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stable {
    /// After a COMMIT.
    Unstable = 0,
    /// With the reply, the file's data and what is needed to read it.
    Data = 1,
    /// With the reply, all of it.
    File = 2,
}

/// Appends calls with the same credentials.
#[derive(Debug)]
pub struct Calls<'a> {
    out: &'a mut Vec<u8>,
    auth: Auth<'a>,
}

impl<'a> Calls<'a> {
    /// Calls by `auth` go to the end of `out`.
    pub fn new(out: &'a mut Vec<u8>, auth: Auth<'a>) -> Self {
        if let Auth::Unix { machine, .. } = auth {
            assert!(machine.len() <= 255, "AUTH_UNIX machine names have at most 255 bytes");
        }
        Self { out, auth }
    }

    /// NULL of NFSv3: a round trip.
    pub fn null(&mut self, xid: u32) {
        self.record(xid, [NFS, 3, 0], |_| ());
    }

    /// GETPORT of portmap version 2: where `program` listens on TCP.
    pub fn getport(&mut self, xid: u32, program: u32, version: u32) {
        self.record(xid, [PORTMAP, 2, GETPORT], |out| {
            for word in [program, version, TCP, 0] {
                put(out, word);
            }
        });
    }

    /// MNT of MOUNT version 3: the handle of an export's root.
    pub fn mount(&mut self, xid: u32, path: &[u8]) {
        self.record(xid, [MOUNT, 3, MNT], |out| put_opaque(out, path));
    }

    /// LOOKUP: the handle of a name in a directory.
    pub fn lookup(&mut self, xid: u32, directory: &[u8], name: &[u8]) {
        self.record(xid, [NFS, 3, NFS3_LOOKUP], |out| {
            put_opaque(out, directory);
            put_opaque(out, name);
        });
    }

    /// GETATTR.
    pub fn getattr(&mut self, xid: u32, file: &[u8]) {
        self.record(xid, [NFS, 3, NFS3_GETATTR], |out| put_opaque(out, file));
    }

    /// CREATE, unchecked: an existing file is opened. `size` sets its length in bytes, and cuts an existing one.
    pub fn create(&mut self, xid: u32, directory: &[u8], name: &[u8], mode: u32, size: Option<u64>) {
        self.record(xid, [NFS, 3, NFS3_CREATE], |out| {
            put_opaque(out, directory);
            put_opaque(out, name);
            // UNCHECKED, mode, no user, no group.
            for word in [0, 1, mode, 0, 0, u32::from(size.is_some())] {
                put(out, word);
            }
            out.extend(size.into_iter().flat_map(u64::to_be_bytes));
            // Times as they are.
            put(out, 0);
            put(out, 0);
        });
    }

    /// READ of `count` bytes from `offset`.
    pub fn read(&mut self, xid: u32, file: &[u8], offset: u64, count: u32) {
        self.record(xid, [NFS, 3, NFS3_READ], |out| span(out, file, offset, count));
    }

    /// WRITE of `data` at `offset`.
    pub fn write(&mut self, xid: u32, file: &[u8], offset: u64, stable: Stable, data: &[u8]) {
        self.record(xid, [NFS, 3, NFS3_WRITE], |out| {
            span(out, file, offset, length(data));
            put(out, stable as u32);
            put_opaque(out, data);
        });
    }

    /// COMMIT of `count` bytes from `offset`; zero means to the end.
    pub fn commit(&mut self, xid: u32, file: &[u8], offset: u64, count: u32) {
        self.record(xid, [NFS, 3, NFS3_COMMIT], |out| span(out, file, offset, count));
    }

    fn record(&mut self, xid: u32, procedure: [u32; 3], arguments: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        put(self.out, 0);
        for word in [xid, CALL, RPC_VERSION].into_iter().chain(procedure) {
            put(self.out, word);
        }
        self.credentials();
        put(self.out, FLAVOR_NONE);
        put(self.out, 0);
        arguments(self.out);
        let body = u32::try_from(self.out.len() - start - 4).expect("a record is shorter than 2 GiB");
        assert!(body < 1 << 31, "a record is shorter than 2 GiB");
        self.out[start..start + 4].copy_from_slice(&(body | 1 << 31).to_be_bytes());
    }

    fn credentials(&mut self) {
        let Auth::Unix { machine, uid, gid } = self.auth else {
            put(self.out, FLAVOR_NONE);
            return put(self.out, 0);
        };
        put(self.out, FLAVOR_UNIX);
        let padded = length(machine.as_bytes()).next_multiple_of(4);
        // Stamp, length of the name, user, group, number of further groups.
        put(self.out, 5 * 4 + padded);
        put(self.out, 0);
        put_opaque(self.out, machine.as_bytes());
        for word in [uid, gid, 0] {
            put(self.out, word);
        }
    }
}

fn span(out: &mut Vec<u8>, file: &[u8], offset: u64, count: u32) {
    put_opaque(out, file);
    out.extend(offset.to_be_bytes());
    put(out, count);
}

fn put(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_be_bytes());
}

fn put_opaque(out: &mut Vec<u8>, data: &[u8]) {
    put(out, length(data));
    out.extend(data);
    out.extend(std::iter::repeat_n(0, data.len().wrapping_neg() % 4));
}

fn length(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("opaque data of one call is shorter than 2 GiB")
}
