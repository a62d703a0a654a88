//! The results of the calls in `client`, from complete records.
//!
//! A generator finds replies with [`super::Connection`], waits for their last byte, takes the record marks away
//! with [`body`] and reads what it needs. Attributes other than the size are passed over.

use super::call::AUTH_MAX;
use crate::Malformed;
use crate::read::{at_most, exactly, index, u32_at};
use std::borrow::Cow;

const HANDLE_MAX: u32 = 64;
/// `fattr3`: 84 bytes, the size after five words.
const ATTRIBUTES: u32 = 84;
const SIZE_AT: u32 = 20;

/// Why a call has no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The call was denied or not accepted: the state that the server gave.
    Call(u32),
    /// An `nfsstat3` or `mountstat3` other than zero.
    Status(u32),
    /// The results cannot be read.
    Malformed(Malformed),
}

impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::Malformed(bad)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Call(state) => write!(f, "the server did not accept the call (state {state})"),
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Malformed(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// What stands in a complete record, without its marks: borrowed if it is one fragment.
///
/// # Errors
/// [`Malformed::Short`] if the bytes are no complete record.
pub fn body(mut record: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let mut joined = Vec::new();
    loop {
        let mut rest = Xdr(record);
        let mark = rest.u32("record mark")?;
        let fragment = rest.take("fragment", mark & !(1 << 31))?;
        match (mark >> 31, joined.is_empty()) {
            (1, true) => return Ok(Cow::Borrowed(fragment)),
            (last, _) => {
                joined.extend_from_slice(fragment);
                record = rest.0;
                if last == 1 {
                    return Ok(Cow::Owned(joined));
                }
            }
        }
    }
}

/// A file that the server named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its handle; empty if the server gave none (it may in a reply to CREATE).
    pub handle: Vec<u8>,
    /// Its length in bytes, if the server told.
    pub size: Option<u64>,
}

/// What a READ brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// The file ends behind them.
    pub end: bool,
}

/// What a WRITE or COMMIT did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were written; zero after COMMIT.
    pub count: u32,
    /// As [`super::client::Stable`]; zero after COMMIT.
    pub stable: u32,
    /// Changes when the server forgot unstable data.
    pub verifier: u64,
}

/// Results of NULL: none.
///
/// # Errors
/// [`Failure`].
pub fn null(body: &[u8]) -> Result<(), Failure> {
    accepted(body).map(|_| ())
}

/// Results of GETPORT: zero if nobody listens.
///
/// # Errors
/// [`Failure`].
pub fn getport(body: &[u8]) -> Result<u32, Failure> {
    Ok(accepted(body)?.u32("port")?)
}

/// Results of MNT: the handle of the export's root.
///
/// # Errors
/// [`Failure`].
pub fn mount(body: &[u8]) -> Result<Vec<u8>, Failure> {
    Ok(done(body)?.opaque("file handle", HANDLE_MAX)?.to_vec())
}

/// Results of LOOKUP.
///
/// # Errors
/// [`Failure`].
pub fn lookup(body: &[u8]) -> Result<File, Failure> {
    let mut results = done(body)?;
    let handle = results.opaque("file handle", HANDLE_MAX)?.to_vec();
    Ok(File { handle, size: results.attributes()? })
}

/// Results of GETATTR: the size in bytes.
///
/// # Errors
/// [`Failure`].
pub fn getattr(body: &[u8]) -> Result<u64, Failure> {
    Ok(done(body)?.size()?)
}

/// Results of CREATE.
///
/// # Errors
/// [`Failure`].
pub fn create(body: &[u8]) -> Result<File, Failure> {
    let mut results = done(body)?;
    let handle = match results.flag("handle follows")? {
        true => results.opaque("file handle", HANDLE_MAX)?.to_vec(),
        false => Vec::new(),
    };
    Ok(File { handle, size: results.attributes()? })
}

/// Results of READ.
///
/// # Errors
/// [`Failure`].
pub fn read(body: &[u8]) -> Result<Data<'_>, Failure> {
    let mut results = done(body)?;
    results.attributes()?;
    let count = results.u32("READ count")?;
    let end = results.flag("READ end of file")?;
    let data = results.opaque("READ data", u32::MAX)?;
    exactly("READ count", "the length of the data", data.len() as u64, count.into())?;
    Ok(Data { data, end })
}

/// Results of WRITE.
///
/// # Errors
/// [`Failure`].
pub fn write(body: &[u8]) -> Result<Written, Failure> {
    let mut results = done(body)?;
    results.changes()?;
    let (count, stable) = (results.u32("WRITE count")?, results.u32("WRITE stable")?);
    Ok(Written { count, stable, verifier: results.u64("WRITE verifier")? })
}

/// Results of COMMIT.
///
/// # Errors
/// [`Failure`].
pub fn commit(body: &[u8]) -> Result<Written, Failure> {
    let mut results = done(body)?;
    results.changes()?;
    Ok(Written { count: 0, stable: 0, verifier: results.u64("COMMIT verifier")? })
}

/// Behind an accepted reply's header.
fn accepted(body: &[u8]) -> Result<Xdr<'_>, Failure> {
    let mut xdr = Xdr(body);
    xdr.u32("RPC xid")?;
    exactly("RPC message type", "1 (reply)", 1, xdr.u32("RPC message type")?.into())?;
    let state = xdr.u32("RPC reply state")?;
    if state != 0 {
        return Err(Failure::Call(state));
    }
    xdr.u32("RPC verifier")?;
    xdr.opaque("RPC verifier", AUTH_MAX)?;
    match xdr.u32("RPC accept state")? {
        0 => Ok(xdr),
        state => Err(Failure::Call(state)),
    }
}

/// Behind a status of success.
fn done(body: &[u8]) -> Result<Xdr<'_>, Failure> {
    let mut xdr = accepted(body)?;
    match xdr.u32("status")? {
        0 => Ok(xdr),
        status => Err(Failure::Status(status)),
    }
}

struct Xdr<'a>(&'a [u8]);

impl<'a> Xdr<'a> {
    fn take(&mut self, field: &'static str, count: u32) -> Result<&'a [u8], Malformed> {
        let left = self.0.len() as u64;
        let short = Malformed::Short { field, needed: count.into(), left };
        let (taken, rest) = self.0.split_at_checked(index(count)).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        Ok(u32_at(self.take(field, 4)?, 0))
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from(self.u32(field)?) << 32 | u64::from(self.u32(field)?))
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, Malformed> {
        match self.u32(field)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(Malformed::Value { field, expected: "0 or 1", found: found.into() }),
        }
    }

    fn opaque(&mut self, field: &'static str, max: u32) -> Result<&'a [u8], Malformed> {
        let count = self.u32(field)?;
        at_most(field, max.into(), count.into())?;
        let data = self.take(field, count)?;
        self.take(field, count.wrapping_neg() % 4)?;
        Ok(data)
    }

    /// `fattr3`: only the size.
    fn size(&mut self) -> Result<u64, Malformed> {
        self.take("attributes", SIZE_AT)?;
        let size = self.u64("attributes")?;
        self.take("attributes", ATTRIBUTES - SIZE_AT - 8)?;
        Ok(size)
    }

    /// `post_op_attr`.
    fn attributes(&mut self) -> Result<Option<u64>, Malformed> {
        if self.flag("attributes follow")? { self.size().map(Some) } else { Ok(None) }
    }

    /// `wcc_data`.
    fn changes(&mut self) -> Result<(), Malformed> {
        if self.flag("attributes before follow")? {
            self.take("attributes before", 24)?;
        }
        self.attributes().map(|_| ())
    }
}
