//! What an RPC call asks for, from its head.

use super::compound;
use super::protocol::{
    CALL, FLAVOR_GSS, MNT, MOUNT, NFS, NFS2_READ, NFS2_WRITE, NFS3_READ, NFS3_WRITE, NFS4_COMPOUND, REPLY,
    RPC_VERSION,
};
use super::record::Record;
use crate::read::{Stop, exactly};
use crate::{Class, Malformed, Position};
use units::Bytes;

/// RFC 5531, section 8.2: the body of credentials and verifiers.
pub(super) const AUTH_MAX: u32 = 400;
const NFS2_HANDLE: u32 = 32;
const NFS3_HANDLE_MAX: u32 = 64;
const PATH_MAX: u32 = 1024;

/// Reads and writes, or control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) class: Class,
    pub(super) position: Option<Position>,
}

/// What is neither read nor write.
pub(super) const CONTROL: Work = Work { class: Class::Control, position: None };

/// A message from the client.
pub(super) struct Call {
    pub(super) xid: u32,
    pub(super) work: Work,
    /// It is itself a reply, to a call that the server made on the same connection.
    pub(super) is_reply: bool,
    /// Results begin with a status word, zero for success.
    pub(super) has_status: bool,
    /// The path of a MOUNT call.
    pub(super) path: Option<Vec<u8>>,
}

pub(super) fn read(record: &mut Record<'_>) -> Result<Call, Stop> {
    let xid = record.u32("RPC xid")?;
    match record.u32("RPC message type")? {
        CALL => {}
        REPLY => return Ok(Call { xid, work: CONTROL, is_reply: true, has_status: false, path: None }),
        found => {
            let (field, expected) = ("RPC message type", "0 (call) or 1 (reply)");
            return Err(Malformed::Value { field, expected, found: found.into() }.into());
        }
    }
    exactly("RPC version", "2", RPC_VERSION.into(), record.u32("RPC version")?.into())?;
    let procedure =
        [record.u32("RPC program")?, record.u32("RPC program version")?, record.u32("RPC procedure")?];
    if auth(record, "RPC credentials")? == FLAVOR_GSS {
        let (what, remedy) = ("RPCSEC_GSS", "mount with sec=sys, arguments under Kerberos cannot be read");
        return Err(Malformed::Refused { what, remedy }.into());
    }
    auth(record, "RPC verifier")?;
    let (work, path) = work(record, procedure)?;
    let has_status = matches!(procedure, [NFS, 2..=4, 1..=u32::MAX] | [MOUNT, _, MNT]);
    Ok(Call { xid, work, is_reply: false, has_status, path })
}

/// Passes over an `opaque_auth` and gives its flavor.
pub(super) fn auth(record: &mut Record<'_>, field: &'static str) -> Result<u32, Stop> {
    let flavor = record.u32(field)?;
    record.skip_opaque(field, AUTH_MAX)?;
    Ok(flavor)
}

fn work(record: &mut Record<'_>, procedure: [u32; 3]) -> Result<(Work, Option<Vec<u8>>), Stop> {
    let work = match procedure {
        [NFS, 3, NFS3_READ] => read3(record)?,
        [NFS, 3, NFS3_WRITE] => write3(record)?,
        [NFS, 4, NFS4_COMPOUND] => compound::read(record)?,
        [NFS, 2, NFS2_READ] => read2(record)?,
        [NFS, 2, NFS2_WRITE] => write2(record)?,
        [MOUNT, _, MNT] => return Ok((CONTROL, Some(record.copy_opaque("MOUNT path", PATH_MAX)?))),
        _ => CONTROL,
    };
    Ok((work, None))
}

fn read3(record: &mut Record<'_>) -> Result<Work, Stop> {
    let object = record.hash_opaque("NFSv3 file handle", NFS3_HANDLE_MAX)?;
    let offset = record.u64("NFSv3 READ offset")?;
    let count = record.u32("NFSv3 READ count")?;
    Ok(Work { class: Class::Read(Bytes(count.into())), position: Some(Position { object, offset }) })
}

fn write3(record: &mut Record<'_>) -> Result<Work, Stop> {
    let object = record.hash_opaque("NFSv3 file handle", NFS3_HANDLE_MAX)?;
    let offset = record.u64("NFSv3 WRITE offset")?;
    record.u32("NFSv3 WRITE count")?;
    record.u32("NFSv3 WRITE stable")?;
    // What is there, not what is claimed: servers refuse a count that differs.
    let count = record.payload("NFSv3 WRITE data in bytes")?;
    Ok(Work { class: Class::Write(Bytes(count.into())), position: Some(Position { object, offset }) })
}

/// RFC 1094, section 2.2.7.
fn read2(record: &mut Record<'_>) -> Result<Work, Stop> {
    let object = record.hash_fixed("NFSv2 file handle", NFS2_HANDLE)?;
    let offset = record.u32("NFSv2 READ offset")?.into();
    let count = record.u32("NFSv2 READ count")?;
    Ok(Work { class: Class::Read(Bytes(count.into())), position: Some(Position { object, offset }) })
}

/// RFC 1094, section 2.2.9.
fn write2(record: &mut Record<'_>) -> Result<Work, Stop> {
    let object = record.hash_fixed("NFSv2 file handle", NFS2_HANDLE)?;
    record.u32("NFSv2 WRITE begin offset")?;
    let offset = record.u32("NFSv2 WRITE offset")?.into();
    record.u32("NFSv2 WRITE total count")?;
    let count = record.payload("NFSv2 WRITE data in bytes")?;
    Ok(Work { class: Class::Write(Bytes(count.into())), position: Some(Position { object, offset }) })
}
