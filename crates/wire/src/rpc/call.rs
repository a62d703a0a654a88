//! What an RPC call asks for, from its head.

use super::access::Access;
use super::compound;
use super::protocol::{
    AUTH_LEN_MAX, CALL, FLAVOR_GSS, MNT, MOUNT, NFS, NFS2_READ, NFS2_WRITE, NFS3_READ, NFS3_WRITE,
    NFS4_COMPOUND, REPLY, RPC_VERSION,
};
use super::record::RecordReader;
use crate::fields::{HeadError, check_equal};
use crate::{Position, ProtocolError};

const NFS2_HANDLE_LEN: u32 = 32;
const NFS3_HANDLE_LEN_MAX: u32 = 64;
const PATH_LEN_MAX: u32 = 1024;

/// The head of a message from the client.
pub(super) struct CallHead {
    pub(super) xid: u32,
    pub(super) access: Access,
    /// Whether the message is itself a reply, to a call that the server made on the same connection.
    pub(super) is_reply: bool,
    /// Whether the results will begin with a status word, which is zero for success.
    pub(super) has_status: bool,
    /// The path of a MOUNT call.
    pub(super) mount_path: Option<Vec<u8>>,
}

/// Reads the head of a record from the client, as far as it says what is asked for.
pub(super) fn read(record: &mut RecordReader<'_>) -> Result<CallHead, HeadError> {
    let xid = record.u32("RPC xid")?;
    match record.u32("RPC message type")? {
        CALL => {}
        REPLY => {
            let access = Access::CONTROL;
            return Ok(CallHead { xid, access, is_reply: true, has_status: false, mount_path: None });
        }
        found => {
            let (field, expected) = ("RPC message type", "0 (call) or 1 (reply)");
            return Err(ProtocolError::Value { field, expected, found: found.into() }.into());
        }
    }
    check_equal("RPC version", "2", RPC_VERSION.into(), record.u32("RPC version")?.into())?;
    let procedure =
        [record.u32("RPC program")?, record.u32("RPC program version")?, record.u32("RPC procedure")?];
    if skip_auth(record, "RPC credentials")? == FLAVOR_GSS {
        let (what, remedy) = ("RPCSEC_GSS", "mount with sec=sys, arguments under Kerberos cannot be read");
        return Err(ProtocolError::Unsupported { what, remedy }.into());
    }
    skip_auth(record, "RPC verifier")?;
    let (access, mount_path) = read_arguments(record, procedure)?;
    let has_status = matches!(procedure, [NFS, 2..=4, 1..=u32::MAX] | [MOUNT, _, MNT]);
    Ok(CallHead { xid, access, is_reply: false, has_status, mount_path })
}

/// Skips an `opaque_auth` and returns its flavor.
pub(super) fn skip_auth(record: &mut RecordReader<'_>, field: &'static str) -> Result<u32, HeadError> {
    let flavor = record.u32(field)?;
    record.skip_opaque(field, AUTH_LEN_MAX)?;
    Ok(flavor)
}

/// What the arguments of a procedure ask for, and the path of a MOUNT call.
fn read_arguments(
    record: &mut RecordReader<'_>,
    procedure: [u32; 3],
) -> Result<(Access, Option<Vec<u8>>), HeadError> {
    let access = match procedure {
        [NFS, 3, NFS3_READ] => nfs3_read(record)?,
        [NFS, 3, NFS3_WRITE] => nfs3_write(record)?,
        [NFS, 4, NFS4_COMPOUND] => compound::read(record)?,
        [NFS, 2, NFS2_READ] => nfs2_read(record)?,
        [NFS, 2, NFS2_WRITE] => nfs2_write(record)?,
        [MOUNT, _, MNT] => {
            return Ok((Access::CONTROL, Some(record.copy_opaque("MOUNT path", PATH_LEN_MAX)?)));
        }
        _ => Access::CONTROL,
    };
    Ok((access, None))
}

fn nfs3_read(record: &mut RecordReader<'_>) -> Result<Access, HeadError> {
    let object = record.hash_opaque("NFSv3 file handle", NFS3_HANDLE_LEN_MAX)?;
    let offset = record.u64("NFSv3 READ offset")?;
    let count = record.u32("NFSv3 READ count")?;
    Ok(Access::read(Position { object, offset }, count.into()))
}

fn nfs3_write(record: &mut RecordReader<'_>) -> Result<Access, HeadError> {
    let object = record.hash_opaque("NFSv3 file handle", NFS3_HANDLE_LEN_MAX)?;
    let offset = record.u64("NFSv3 WRITE offset")?;
    record.u32("NFSv3 WRITE count")?;
    record.u32("NFSv3 WRITE stable")?;
    // The length of the data is what counts, whatever the count claims: servers refuse a count that differs.
    let len = record.payload_len("NFSv3 WRITE data in bytes")?;
    Ok(Access::write(Position { object, offset }, len.into()))
}

/// The arguments of READ, RFC 1094, section 2.2.7.
fn nfs2_read(record: &mut RecordReader<'_>) -> Result<Access, HeadError> {
    let object = record.hash_fixed("NFSv2 file handle", NFS2_HANDLE_LEN)?;
    let offset = record.u32("NFSv2 READ offset")?.into();
    let count = record.u32("NFSv2 READ count")?;
    Ok(Access::read(Position { object, offset }, count.into()))
}

/// The arguments of WRITE, RFC 1094, section 2.2.9.
fn nfs2_write(record: &mut RecordReader<'_>) -> Result<Access, HeadError> {
    let object = record.hash_fixed("NFSv2 file handle", NFS2_HANDLE_LEN)?;
    record.u32("NFSv2 WRITE begin offset")?;
    let offset = record.u32("NFSv2 WRITE offset")?.into();
    record.u32("NFSv2 WRITE total count")?;
    let len = record.payload_len("NFSv2 WRITE data in bytes")?;
    Ok(Access::write(Position { object, offset }, len.into()))
}
