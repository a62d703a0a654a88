//! CloudPhysics vscsi traces: fixed little-endian records of SCSI commands.
//!
//! Version 1, 32 bytes: `sn u32, len u32, nSG u32, cmd u16, ver u16, lbn u64, ts u64`.
//! Version 2, 40 bytes: `cmd u16, ver u16, sn u32, len u32, nSG u32, lbn u64, ts u64, rt u64`.
//! The version is the high byte of `ver`; `len` is bytes, `lbn` blocks of 512 bytes, `ts` and `rt`
//! microseconds. Commands that are neither read nor write are ignored.

use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::format::SECTOR_BYTES;
use crate::input::{BufferedInput, damage};
use model::{Op, Request};
use units::{Bytes, Nanos};

const MICROSECOND_NS: u64 = 1000;
/// Number of bytes that decide the version: four records of the larger one.
const LOOK_AHEAD_BYTES: usize = 160;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VscsiVersion {
    V1,
    V2,
}

impl VscsiVersion {
    fn record_bytes(self) -> usize {
        match self {
            Self::V1 => 32,
            Self::V2 => 40,
        }
    }

    /// Returns true if the version byte of `record` is this version.
    fn matches(self, record: &[u8]) -> bool {
        match self {
            Self::V1 => record[15] == 1,
            Self::V2 => record[3] == 2,
        }
    }
}

/// Returns the version of all complete records in `head`; version 2 takes precedence.
fn version_of(head: &[u8]) -> Option<VscsiVersion> {
    [VscsiVersion::V2, VscsiVersion::V1].into_iter().find(|version| {
        let mut records = head.chunks_exact(version.record_bytes()).peekable();
        records.peek().is_some() && records.all(|record| version.matches(record))
    })
}

/// Returns true if `head` looks like records of either version and contains at least one read or write.
pub(super) fn is_vscsi(head: &[u8]) -> bool {
    let Some(version) = version_of(head) else { return false };
    let mut records = head.chunks_exact(version.record_bytes());
    records.any(|record| operation(VscsiRecord::decode(version, record).command).is_some())
}

pub(super) struct VscsiSource {
    input: BufferedInput,
    /// Version; `None` until the first record is read.
    version: Option<VscsiVersion>,
    record: u64,
    ignored: u64,
}

/// The command of one record.
enum ScsiCommand {
    ReadOrWrite(Request),
    Other,
}

impl VscsiSource {
    pub(super) fn new(input: BufferedInput) -> Self {
        Self { input, version: None, record: 0, ignored: 0 }
    }

    fn version(&mut self) -> Result<VscsiVersion, SourceError> {
        if let Some(version) = self.version {
            return Ok(version);
        }
        let position = TracePosition::Record(self.record);
        let head = match self.input.peek_lossy(LOOK_AHEAD_BYTES) {
            Ok(head) => head,
            Err(error) => return Err(SourceError::fatal(position, damage(error))),
        };
        // If one of the first records is damaged, the first record alone decides.
        self.version =
            version_of(head).or_else(|| version_of(head.get(..40)?)).or_else(|| version_of(head.get(..32)?));
        self.version.ok_or_else(|| SourceError {
            is_recoverable: false,
            ..SourceError::malformed(position, "vscsi records of version 1 or 2", head)
        })
    }

    /// Returns the next record, `None` at the end of the file.
    fn next_record(&mut self, version: VscsiVersion) -> Result<Option<ScsiCommand>, SourceError> {
        self.record += 1;
        let position = TracePosition::Record(self.record);
        let len = version.record_bytes();
        let bytes = self.input.record(len).map_err(|error| SourceError::fatal(position, damage(error)))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() < len {
            let what = format!("the last record has {} of {len} bytes", bytes.len());
            return Err(SourceError::fatal(position, TraceErrorKind::Truncated(what)));
        }
        if !version.matches(bytes) {
            const EXPECTED: &str = "a record of the same version as the first";
            return Err(SourceError::malformed(position, EXPECTED, bytes));
        }
        let record = VscsiRecord::decode(version, bytes);
        let Some(op) = operation(record.command) else { return Ok(Some(ScsiCommand::Other)) };
        match record.to_request(op) {
            Some(request) => Ok(Some(ScsiCommand::ReadOrWrite(request))),
            None => Err(SourceError::malformed(position, "times and positions within 64 bits", bytes)),
        }
    }
}

impl TraceSource for VscsiSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        let version = self.version()?;
        while let Some(command) = self.next_record(version)? {
            match command {
                ScsiCommand::ReadOrWrite(request) => return Ok(Some(request)),
                ScsiCommand::Other => self.ignored += 1,
            }
        }
        Ok(None)
    }

    fn position(&self) -> TracePosition {
        TracePosition::Record(self.record)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// The fields of a record that are used, in the units of the file.
struct VscsiRecord {
    command: u16,
    len: u32,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

impl VscsiRecord {
    fn decode(version: VscsiVersion, record: &[u8]) -> Self {
        match version {
            VscsiVersion::V1 => Self {
                command: u16_at(record, 12),
                len: u32_at(record, 4),
                block: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: None,
            },
            VscsiVersion::V2 => Self {
                command: u16_at(record, 0),
                len: u32_at(record, 8),
                block: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: Some(u64_at(record, 32)),
            },
        }
    }

    /// Converts the record into a request; `None` if a value exceeds 64 bits.
    fn to_request(&self, op: Op) -> Option<Request> {
        let response = match self.response_us {
            Some(us) => Some(Nanos(us.checked_mul(MICROSECOND_NS)?)),
            None => None,
        };
        Some(Request {
            arrival: Nanos(self.time_us.checked_mul(MICROSECOND_NS)?),
            size: Bytes(u64::from(self.len)),
            op,
            offset: Some(self.block.checked_mul(SECTOR_BYTES)?),
            response,
        })
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from(u16_at(record, at)) | u32::from(u16_at(record, at + 2)) << 16
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}

/// Returns the direction of READ and WRITE with 6, 10, 12 and 16 bytes (SCSI Block Commands).
fn operation(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(Op::Write),
        _ => None,
    }
}
