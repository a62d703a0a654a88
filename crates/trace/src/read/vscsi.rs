//! CloudPhysics vscsi traces: fixed little-endian records of SCSI commands.
//!
//! Version 1, 32 bytes: `sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, ts u64`.
//! Version 2, 40 bytes: `cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64`.
//! The version is the high byte of `ver`; `len` is bytes, `lbn` blocks of 512 bytes, `ts` and `rt`
//! microseconds. Commands that are neither read nor write are ignored.

use super::text::SECTOR_BYTES;
use super::{Fault, Source};
use crate::error::{ErrorKind, Place};
use crate::source::{Buffered, damage};
use model::{Op, Request};
use units::{Bytes, Nanos};

const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Self::V1 => 32,
            Self::V2 => 40,
        }
    }

    /// Whether `record` says that it is of this version.
    fn is_of(self, record: &[u8]) -> bool {
        match self {
            Self::V1 => record[15] == 1,
            Self::V2 => record[3] == 2,
        }
    }
}

/// The version whose mark every complete record of `head` carries; version 2 before version 1.
fn version(head: &[u8]) -> Option<Version> {
    [Version::V2, Version::V1].into_iter().find(|version| {
        let mut records = head.chunks_exact(version.record_bytes()).peekable();
        records.peek().is_some() && records.all(|record| version.is_of(record))
    })
}

/// Whether `head` looks like records of either version that hold at least one read or write.
pub(crate) fn is_vscsi(head: &[u8]) -> bool {
    let Some(version) = version(head) else { return false };
    let records = head.chunks_exact(version.record_bytes());
    records.into_iter().any(|record| op_of(fields(version, record).command).is_some())
}

pub(crate) struct VscsiSource {
    input: Buffered,
    version: Option<Version>,
    record: u64,
    ignored: u64,
}

/// The fields of a record that are used.
struct Fields {
    command: u16,
    len: u32,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

impl VscsiSource {
    pub(crate) fn new(input: Buffered) -> Self {
        Self { input, version: None, record: 0, ignored: 0 }
    }

    fn fault(&self, kind: ErrorKind, resumes: bool) -> Fault {
        Fault { place: Place::Record(self.record), kind, resumes }
    }

    fn version(&mut self) -> Result<Version, Fault> {
        const LOOK_AHEAD: usize = 160;
        if let Some(version) = self.version {
            return Ok(version);
        }
        let head = self.input.peek_lossy(LOOK_AHEAD).map(<[u8]>::to_vec);
        let head = head.map_err(|error| self.fault(damage(error), false))?;
        // With a damaged record among the first, the first alone decides.
        let found = version(&head).or_else(|| version(head.get(..40)?)).or_else(|| version(head.get(..32)?));
        self.version = found;
        let found_text = || crate::error::excerpt(&head);
        found.ok_or_else(|| self.fault(malformed("vscsi records of version 1 or 2", found_text()), false))
    }

    fn request(&mut self, version: Version) -> Result<Option<Option<Request>>, Fault> {
        self.record += 1;
        let len = version.record_bytes();
        let place = Place::Record(self.record);
        let fault = |kind, resumes| Fault { place, kind, resumes };
        let record = self.input.record(len).map_err(|error| fault(damage(error), false))?;
        if record.is_empty() {
            return Ok(None);
        }
        if record.len() < len {
            let what = format!("the last record has {} of {len} bytes", record.len());
            return Err(fault(ErrorKind::Truncated(what), false));
        }
        if !version.is_of(record) {
            return Err(fault(
                malformed("a record of the same version as the first", crate::error::excerpt(record)),
                true,
            ));
        }
        let fields = fields(version, record);
        let Some(op) = op_of(fields.command) else { return Ok(Some(None)) };
        match convert(&fields, op) {
            Some(request) => Ok(Some(Some(request))),
            None => Err(fault(
                malformed("times and positions within 64 bits", crate::error::excerpt(record)),
                true,
            )),
        }
    }
}

impl Source for VscsiSource {
    fn next(&mut self) -> Result<Option<Request>, Fault> {
        let version = self.version()?;
        loop {
            match self.request(version)? {
                Some(Some(request)) => return Ok(Some(request)),
                Some(None) => self.ignored += 1,
                None => return Ok(None),
            }
        }
    }

    fn place(&self) -> Place {
        Place::Record(self.record)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

fn malformed(expected: &'static str, found: String) -> ErrorKind {
    ErrorKind::Malformed { expected, found }
}

fn fields(version: Version, record: &[u8]) -> Fields {
    let u16_at = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    match version {
        Version::V1 => Fields {
            command: u16_at(12),
            len: u32_at(4),
            block: u64_at(16),
            time_us: u64_at(24),
            response_us: None,
        },
        Version::V2 => Fields {
            command: u16_at(0),
            len: u32_at(8),
            block: u64_at(16),
            time_us: u64_at(24),
            response_us: Some(u64_at(32)),
        },
    }
}

/// `None` when a value leaves 64 bits.
fn convert(fields: &Fields, op: Op) -> Option<Request> {
    let response = match fields.response_us {
        Some(us) => Some(Nanos(us.checked_mul(MICROSECOND_NS)?)),
        None => None,
    };
    Some(Request {
        arrival: Nanos(fields.time_us.checked_mul(MICROSECOND_NS)?),
        size: Bytes(u64::from(fields.len)),
        op,
        offset: Some(fields.block.checked_mul(SECTOR_BYTES)?),
        response,
    })
}

/// READ and WRITE with 6, 10, 12, 16 bytes (SCSI Block Commands).
fn op_of(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(Op::Write),
        _ => None,
    }
}
