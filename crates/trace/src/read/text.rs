//! The comma- and blank-separated formats. Each parser documents its line, units and choices.

mod csv;
mod fio;

pub(crate) use csv::{Csv, is_header as is_csv_header};
pub(crate) use fio::{Fio, HEADER_V3 as FIO_HEADER_V3};

use super::{LineParser, Parsed};
use crate::scan::{Fields, decimal, fixed, hexadecimal, trim};
use model::{Op, Request};
use units::{Bytes, Nanos};

/// Nanoseconds in a tick of Windows file time.
pub(crate) const FILETIME_TICK_NS: u64 = 100;
/// Bytes in a block of SPC traces and in a sector of blkparse output.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// `arrival_ns,size_hex,DiskRead|DiskWrite`; traces of a cache or object store have `Get` and `Put`.
pub(crate) struct ArrivalHex;

impl LineParser for ArrivalHex {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        const EXPECTED: &str =
            "arrival_ns,size_hex,DiskRead or DiskWrite (or Get, Put; such as 564037000,0x00001000,DiskWrite)";
        let line = trim(line);
        if line.is_empty() {
            return Ok(Parsed::Nothing);
        }
        let mut fields = Fields::new(line, b',');
        let mut field = || fields.next().ok_or(EXPECTED);
        let arrival = decimal(field()?).ok_or(EXPECTED)?;
        let size = hexadecimal(field()?).ok_or(EXPECTED)?;
        let op = match field()? {
            b"DiskRead" | b"Get" => Op::Read,
            b"DiskWrite" | b"Put" => Op::Write,
            _ => return Err(EXPECTED),
        };
        if fields.next().is_some() {
            return Err(EXPECTED);
        }
        Ok(request(Nanos(arrival), size, op, None, None))
    }
}

/// `filetime,host,disk,Read|Write,offset,size,response`: Narayanan, Donnelly and Rowstron, "Write
/// Off-Loading", FAST 2008. Times in ticks of 100 ns. Hosts and disks are not told apart: a trace holds
/// the requests of one server.
pub(crate) struct Msr;

impl LineParser for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        const EXPECTED: &str = "filetime,host,disk,Read or Write,offset,size,response";
        let line = trim(line);
        if line.is_empty() || line.starts_with(b"Timestamp") {
            return Ok(Parsed::Nothing);
        }
        let mut fields = Fields::new(line, b',');
        let mut field = || fields.next().ok_or(EXPECTED);
        let ticks = |text| decimal(text).and_then(|t| t.checked_mul(FILETIME_TICK_NS)).ok_or(EXPECTED);
        let arrival = ticks(field()?)?;
        field()?;
        field()?;
        let op = op_of(field()?).ok_or(EXPECTED)?;
        let offset = decimal(field()?).ok_or(EXPECTED)?;
        let size = decimal(field()?).ok_or(EXPECTED)?;
        let response = ticks(field()?)?;
        if fields.next().is_some() {
            return Err(EXPECTED);
        }
        Ok(request(Nanos(arrival), size, op, Some(offset), Some(Nanos(response))))
    }
}

/// `asu,lba,size,r|w,seconds[,…]`: SPC trace file format, revision 1.0.1, section 2. Application storage
/// units are not told apart, and `lba` counts blocks of 512 bytes.
pub(crate) struct Spc;

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        const EXPECTED: &str = "asu,lba,size,r or w,seconds (such as 0,20941264,8192,W,0.551706)";
        let line = trim(line);
        if line.is_empty() {
            return Ok(Parsed::Nothing);
        }
        let mut fields = Fields::new(line, b',');
        let mut field = || fields.next().map(trim).ok_or(EXPECTED);
        decimal(field()?).ok_or(EXPECTED)?;
        let offset = decimal(field()?).and_then(|lba| lba.checked_mul(SECTOR_BYTES)).ok_or(EXPECTED)?;
        let size = decimal(field()?).ok_or(EXPECTED)?;
        let op = match field()? {
            b"r" | b"R" => Op::Read,
            b"w" | b"W" => Op::Write,
            _ => return Err(EXPECTED),
        };
        let arrival = fixed(field()?, 9).ok_or(EXPECTED)?;
        Ok(request(Nanos(arrival), size, op, Some(offset), None))
    }
}

/// `read`, `write`, `r`, `w`, `get` or `put` in any case.
#[inline]
pub(crate) fn op_of(text: &[u8]) -> Option<Op> {
    const NAMES: [(&[u8], Op); 6] = [
        (b"read", Op::Read),
        (b"write", Op::Write),
        (b"r", Op::Read),
        (b"w", Op::Write),
        (b"get", Op::Read),
        (b"put", Op::Write),
    ];
    NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, op)| *op)
}

#[inline]
pub(crate) fn request(
    arrival: Nanos,
    size: u64,
    op: Op,
    offset: Option<u64>,
    response: Option<Nanos>,
) -> Parsed {
    Parsed::Request(Request { arrival, size: Bytes(size), op, offset, response })
}
