//! Decodes the results of the calls in `client` from complete records.
//!
//! A load generator finds replies with [`super::RpcParser`], waits for their last byte, removes the record marks with
//! [`record_body`] and reads what it needs. Attributes other than the size are skipped.

use super::protocol::AUTH_LEN_MAX;
use super::record::LAST_FRAGMENT;
use crate::ProtocolError;
use crate::fields::{check_at_most, check_equal, to_index, u32_at};
use std::borrow::Cow;

const HANDLE_LEN_MAX: u32 = 64;
/// Length of the attributes of a file, `fattr3`, in bytes.
const ATTRIBUTES_LEN: u32 = 84;
/// Where the file's size stands in its attributes, in bytes.
const SIZE_OFFSET: u32 = 20;
/// Length of the attributes of a file before a change, `wcc_attr`, in bytes.
const ATTRIBUTES_BEFORE_LEN: u32 = 24;

/// Why a call has no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The server denied or did not accept the call, and gave this state.
    Rejected(u32),
    /// The procedure failed with this `nfsstat3` or `mountstat3`.
    Status(u32),
    /// The results break the protocol.
    Protocol(ProtocolError),
}

impl From<ProtocolError> for CallError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rejected(state) => write!(f, "the server did not accept the call (state {state})"),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

/// The content of a complete record without its marks, borrowed if the record is one fragment.
///
/// # Errors
/// [`ProtocolError::TooShort`] if the bytes are no complete record.
pub fn record_body(mut record: &[u8]) -> Result<Cow<'_, [u8]>, ProtocolError> {
    let mut joined = Vec::new();
    loop {
        let mut rest = XdrReader(record);
        let mark = rest.u32("record mark")?;
        let is_last = mark & LAST_FRAGMENT != 0;
        let fragment = rest.take("fragment", mark & !LAST_FRAGMENT)?;
        if is_last && joined.is_empty() {
            return Ok(Cow::Borrowed(fragment));
        }
        joined.extend_from_slice(fragment);
        if is_last {
            return Ok(Cow::Owned(joined));
        }
        record = rest.0;
    }
}

/// A file or directory as the server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsFile {
    /// The file handle; empty if the server gave none, as it may in a reply to CREATE.
    pub handle: Vec<u8>,
    /// The length of the file in bytes, if the server said it.
    pub size: Option<u64>,
}

/// The results of READ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadResult<'a> {
    /// The bytes that were read.
    pub data: &'a [u8],
    /// Whether the file ends behind these bytes.
    pub is_end_of_file: bool,
}

/// The results of WRITE or COMMIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteResult {
    /// The number of bytes that were written; zero after COMMIT.
    pub count: u32,
    /// How stable the data are, a number of [`super::client::StableHow`]; zero after COMMIT.
    pub stable: u32,
    /// A number that changes when the server has lost unstable data.
    pub verifier: u64,
}

/// Checks that the server accepted a NULL, which has no results.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn null(body: &[u8]) -> Result<(), CallError> {
    accepted_results(body).map(|_| ())
}

/// The port in the results of GETPORT; zero if the program does not listen.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn getport(body: &[u8]) -> Result<u32, CallError> {
    Ok(accepted_results(body)?.u32("port")?)
}

/// The handle of the export's root in the results of MNT.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn mount(body: &[u8]) -> Result<Vec<u8>, CallError> {
    Ok(successful_results(body)?.opaque("file handle", HANDLE_LEN_MAX)?.to_vec())
}

/// The file in the results of LOOKUP.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn lookup(body: &[u8]) -> Result<NfsFile, CallError> {
    let mut results = successful_results(body)?;
    let handle = results.opaque("file handle", HANDLE_LEN_MAX)?.to_vec();
    Ok(NfsFile { handle, size: results.optional_size()? })
}

/// The size in bytes in the results of GETATTR.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn getattr(body: &[u8]) -> Result<u64, CallError> {
    Ok(successful_results(body)?.size_in_attributes()?)
}

/// The file in the results of CREATE.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn create(body: &[u8]) -> Result<NfsFile, CallError> {
    let mut results = successful_results(body)?;
    let handle = match results.flag("handle follows")? {
        true => results.opaque("file handle", HANDLE_LEN_MAX)?.to_vec(),
        false => Vec::new(),
    };
    Ok(NfsFile { handle, size: results.optional_size()? })
}

/// The data in the results of READ, which borrow from the body.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn read(body: &[u8]) -> Result<ReadResult<'_>, CallError> {
    let mut results = successful_results(body)?;
    results.optional_size()?;
    let count = results.u32("READ count")?;
    let is_end_of_file = results.flag("READ end of file")?;
    let data = results.opaque("READ data", u32::MAX)?;
    check_equal("READ count", "the length of the data", data.len() as u64, count.into())?;
    Ok(ReadResult { data, is_end_of_file })
}

/// What the results of WRITE say.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn write(body: &[u8]) -> Result<WriteResult, CallError> {
    let mut results = successful_results(body)?;
    results.skip_changes()?;
    let count = results.u32("WRITE count")?;
    let stable = results.u32("WRITE stable")?;
    Ok(WriteResult { count, stable, verifier: results.u64("WRITE verifier")? })
}

/// What the results of COMMIT say.
///
/// # Errors
/// [`CallError`] when the call failed or its results break the protocol.
pub fn commit(body: &[u8]) -> Result<WriteResult, CallError> {
    let mut results = successful_results(body)?;
    results.skip_changes()?;
    Ok(WriteResult { count: 0, stable: 0, verifier: results.u64("COMMIT verifier")? })
}

/// The results behind the header of a reply that accepts the call.
fn accepted_results(body: &[u8]) -> Result<XdrReader<'_>, CallError> {
    let mut xdr = XdrReader(body);
    xdr.u32("RPC xid")?;
    check_equal("RPC message type", "1 (reply)", 1, xdr.u32("RPC message type")?.into())?;
    let state = xdr.u32("RPC reply state")?;
    if state != 0 {
        return Err(CallError::Rejected(state));
    }
    xdr.u32("RPC verifier")?;
    xdr.opaque("RPC verifier", AUTH_LEN_MAX)?;
    match xdr.u32("RPC accept state")? {
        0 => Ok(xdr),
        state => Err(CallError::Rejected(state)),
    }
}

/// The results behind a status of success.
fn successful_results(body: &[u8]) -> Result<XdrReader<'_>, CallError> {
    let mut xdr = accepted_results(body)?;
    match xdr.u32("status")? {
        0 => Ok(xdr),
        status => Err(CallError::Status(status)),
    }
}

/// Reads XDR from front to back.
struct XdrReader<'a>(&'a [u8]);

impl<'a> XdrReader<'a> {
    fn take(&mut self, field: &'static str, count: u32) -> Result<&'a [u8], ProtocolError> {
        let left = self.0.len() as u64;
        let short = ProtocolError::TooShort { field, needed: count.into(), left };
        let (taken, rest) = self.0.split_at_checked(to_index(count)).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, ProtocolError> {
        Ok(u32_at(self.take(field, 4)?, 0))
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, ProtocolError> {
        Ok(u64::from(self.u32(field)?) << 32 | u64::from(self.u32(field)?))
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, ProtocolError> {
        match self.u32(field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(ProtocolError::Value { field, expected: "0 or 1", found: found.into() }),
        }
    }

    fn opaque(&mut self, field: &'static str, max: u32) -> Result<&'a [u8], ProtocolError> {
        let count = self.u32(field)?;
        check_at_most(field, max.into(), count.into())?;
        let data = self.take(field, count)?;
        self.take(field, count.wrapping_neg() % 4)?;
        Ok(data)
    }

    /// The size in the attributes of a file, `fattr3`.
    fn size_in_attributes(&mut self) -> Result<u64, ProtocolError> {
        self.take("attributes", SIZE_OFFSET)?;
        let size = self.u64("attributes")?;
        self.take("attributes", ATTRIBUTES_LEN - SIZE_OFFSET - 8)?;
        Ok(size)
    }

    /// The size in attributes that may be left out, `post_op_attr`.
    fn optional_size(&mut self) -> Result<Option<u64>, ProtocolError> {
        if self.flag("attributes follow")? { self.size_in_attributes().map(Some) } else { Ok(None) }
    }

    /// Skips the attributes before and after a change, `wcc_data`.
    fn skip_changes(&mut self) -> Result<(), ProtocolError> {
        if self.flag("attributes before follow")? {
            self.take("attributes before", ATTRIBUTES_BEFORE_LEN)?;
        }
        self.optional_size().map(|_| ())
    }
}
