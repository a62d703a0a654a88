//! What an RPC call asks for, from its head.

use super::access::Access;
use super::compound;
use super::handle::NamedHandle;
use super::protocol::{
    AUTH_LEN_MAX, CALL, FLAVOR_GSS, MNT, MOUNT, NFS, NFS_ACL, NFS2_READ, NFS2_WRITE, NFS3_COMMIT,
    NFS3_GETATTR, NFS3_READ, NFS3_WRITE, NFS4_COMPOUND, REPLY, RPC_VERSION,
};
use super::record::RecordReader;
use crate::fields::{HeadError, check_equal};
use crate::{Position, ProtocolError};

pub(super) const NFS2_HANDLE_LEN: u32 = 32;
pub(super) const NFS3_HANDLE_LEN_MAX: u32 = 64;
const PATH_LEN_MAX: u32 = 1024;

/// The head of a message from the client.
pub(super) struct CallHead {
    pub(super) xid: u32,
    pub(super) access: Access,
    /// Whether the message is itself a reply, to a call that the server made on the same connection.
    pub(super) is_reply: bool,
    pub(super) results: ResultsForm,
    /// The path of a MOUNT call.
    pub(super) mount_path: Option<Vec<u8>>,
}

/// How the results of a call begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultsForm {
    /// Without a status in front.
    Any,
    /// With a status word, which is zero for success.
    Status,
    /// With a status word and, after success, a file handle of 32 bytes: MOUNT versions 1 and 2.
    FixedRoot,
    /// The same with a file handle of variable length: MOUNT version 3.
    VariableRoot,
}

/// Reads the head of a record from the client, as far as it says what is asked for, and the file handle that it names.
pub(super) fn read(record: &mut RecordReader<'_>, handle: &mut NamedHandle) -> Result<CallHead, HeadError> {
    handle.forget();
    let xid = record.u32("RPC xid")?;
    match record.u32("RPC message type")? {
        CALL => {}
        REPLY => {
            let access = Access::CONTROL;
            let results = ResultsForm::Any;
            return Ok(CallHead { xid, access, is_reply: true, results, mount_path: None });
        }
        found => {
            let field = "RPC message type";
            let expected = "0 (call) or 1 (reply)";
            return Err(ProtocolError::Value { field, expected, found: found.into() }.into());
        }
    }
    check_equal("RPC version", "2", RPC_VERSION.into(), record.u32("RPC version")?.into())?;
    let procedure =
        [record.u32("RPC program")?, record.u32("RPC program version")?, record.u32("RPC procedure")?];
    if skip_auth(record, "RPC credentials")? == FLAVOR_GSS {
        let what = "RPCSEC_GSS";
        let remedy = "mount with sec=sys, arguments under Kerberos cannot be read";
        return Err(ProtocolError::Unsupported { what, remedy }.into());
    }
    skip_auth(record, "RPC verifier")?;
    let (access, mount_path) = read_arguments(record, procedure, handle)?;
    let results = match procedure {
        [MOUNT, 1 | 2, MNT] => ResultsForm::FixedRoot,
        [MOUNT, 3, MNT] => ResultsForm::VariableRoot,
        [NFS, 2..=4, 1..=u32::MAX] => ResultsForm::Status,
        _ => ResultsForm::Any,
    };
    Ok(CallHead { xid, access, is_reply: false, results, mount_path })
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
    handle: &mut NamedHandle,
) -> Result<(Access, Option<Vec<u8>>), HeadError> {
    let object = match procedure {
        // All but NULL, ROOT and WRITECACHE, which have no arguments.
        [NFS, 2, 1 | 2 | 4..=6 | 8..=17] | [NFS_ACL, 2, 1..=4] => {
            record.fixed_handle("NFSv2 file handle", NFS2_HANDLE_LEN, handle)?
        }
        [NFS, 3, NFS3_GETATTR..=NFS3_COMMIT] | [NFS_ACL, 3, 1..=2] => {
            record.handle("NFSv3 file handle", NFS3_HANDLE_LEN_MAX, handle)?
        }
        _ => 0,
    };
    let access = match procedure {
        [NFS, 3, NFS3_READ] => nfs3_read(record, object)?,
        [NFS, 3, NFS3_WRITE] => nfs3_write(record, object)?,
        [NFS, 4, NFS4_COMPOUND] => compound::read(record, handle)?,
        [NFS, 2, NFS2_READ] => nfs2_read(record, object)?,
        [NFS, 2, NFS2_WRITE] => nfs2_write(record, object)?,
        [MOUNT, _, MNT] => {
            return Ok((Access::CONTROL, Some(record.copy_opaque("MOUNT path", PATH_LEN_MAX)?)));
        }
        _ => Access::CONTROL,
    };
    Ok((access, None))
}

fn nfs3_read(record: &mut RecordReader<'_>, object: u64) -> Result<Access, HeadError> {
    let offset = record.u64("NFSv3 READ offset")?;
    let count = record.u32("NFSv3 READ count")?;
    Ok(Access::read(Position { object, offset }, count.into()))
}

fn nfs3_write(record: &mut RecordReader<'_>, object: u64) -> Result<Access, HeadError> {
    let offset = record.u64("NFSv3 WRITE offset")?;
    record.u32("NFSv3 WRITE count")?;
    record.u32("NFSv3 WRITE stable")?;
    // The length of the data is what counts, whatever the count claims: servers refuse a count that differs.
    let len = record.payload_len("NFSv3 WRITE data in bytes")?;
    Ok(Access::write(Position { object, offset }, len.into()))
}

/// The arguments of READ behind the handle, RFC 1094, section 2.2.7.
fn nfs2_read(record: &mut RecordReader<'_>, object: u64) -> Result<Access, HeadError> {
    let offset = record.u32("NFSv2 READ offset")?.into();
    let count = record.u32("NFSv2 READ count")?;
    Ok(Access::read(Position { object, offset }, count.into()))
}

/// The arguments of WRITE behind the handle, RFC 1094, section 2.2.9.
fn nfs2_write(record: &mut RecordReader<'_>, object: u64) -> Result<Access, HeadError> {
    record.u32("NFSv2 WRITE begin offset")?;
    let offset = record.u32("NFSv2 WRITE offset")?.into();
    record.u32("NFSv2 WRITE total count")?;
    let len = record.payload_len("NFSv2 WRITE data in bytes")?;
    Ok(Access::write(Position { object, offset }, len.into()))
}
