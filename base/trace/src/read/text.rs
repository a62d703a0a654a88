//! The formats whose lines are separated by commas or blanks. Each parser documents its line, units and choices.

mod csv;
mod fio;

pub(super) use csv::{Csv, is_csv_header};
pub(super) use fio::Fio;

use super::lines::{LineParser, ParsedLine};
use crate::format::{FILETIME_TICK_NS, SECTOR_BYTES};
use crate::operation;
use crate::scan::{DelimitedFields, decimal, fixed_point, hexadecimal};
use model::{Op, Request};
use units::{Bytes, Nanos};

/// Lines of `arrival_ns,size_hex,DiskRead|DiskWrite`; traces of a cache or object store have `Get` and `Put` instead.
pub(super) struct ArrivalHex;

impl LineParser for ArrivalHex {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        const EXPECTED: &str =
            "arrival_ns,size_hex,DiskRead or DiskWrite (or Get, Put; such as 564037000,0x00001000,DiskWrite)";
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(ParsedLine::NoOperation);
        }
        let mut fields = DelimitedFields::new(line, b',');
        let arrival = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let size = fields.next().and_then(hexadecimal).ok_or(EXPECTED)?;
        let op = match fields.next() {
            Some(b"DiskRead" | b"Get") => Op::Read,
            Some(b"DiskWrite" | b"Put") => Op::Write,
            _ => return Err(EXPECTED),
        };
        if fields.next().is_some() {
            return Err(EXPECTED);
        }
        let arrival = Nanos(arrival);
        let size = Bytes(size);
        Ok(ParsedLine::Request(Request { arrival, size, op, offset: None, response: None }))
    }
}

/// Lines of `filetime,host,disk,Read|Write,offset,size,response`: Narayanan, Donnelly and Rowstron, "Write
/// Off-Loading", FAST 2008. Times are in ticks of 100 ns. Hosts and disks are not distinguished: a trace contains
/// the requests of one server.
pub(super) struct Msr;

impl LineParser for Msr {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        const EXPECTED: &str = "filetime,host,disk,Read or Write,offset,size,response";
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"Timestamp") {
            return Ok(ParsedLine::NoOperation);
        }
        let mut fields = DelimitedFields::new(line, b',');
        let arrival = fields.next().and_then(filetime_ns).ok_or(EXPECTED)?;
        let _host = fields.next().ok_or(EXPECTED)?;
        let _disk = fields.next().ok_or(EXPECTED)?;
        let op = fields.next().and_then(operation::from_name).ok_or(EXPECTED)?;
        let offset = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let size = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let response = fields.next().and_then(filetime_ns).ok_or(EXPECTED)?;
        if fields.next().is_some() {
            return Err(EXPECTED);
        }
        Ok(ParsedLine::Request(Request {
            arrival: Nanos(arrival),
            size: Bytes(size),
            op,
            offset: Some(offset),
            response: Some(Nanos(response)),
        }))
    }
}

/// Converts ticks of Windows file time into nanoseconds; `None` if the time exceeds 64 bits.
fn filetime_ns(ticks: &[u8]) -> Option<u64> {
    decimal(ticks)?.checked_mul(FILETIME_TICK_NS)
}

/// Lines of `asu,lba,size,r|w,seconds[,…]`: SPC trace file format, revision 1.0.1, section 2. Application storage
/// units are not distinguished, and `lba` counts blocks of 512 bytes.
pub(super) struct Spc;

impl LineParser for Spc {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        const EXPECTED: &str = "asu,lba,size,r or w,seconds (such as 0,20941264,8192,W,0.551706)";
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(ParsedLine::NoOperation);
        }
        let mut fields = DelimitedFields::new(line, b',').map(<[u8]>::trim_ascii);
        let _asu = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let lba = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let offset = lba.checked_mul(SECTOR_BYTES).ok_or(EXPECTED)?;
        let size = fields.next().and_then(decimal).ok_or(EXPECTED)?;
        let op = match fields.next() {
            Some(b"r" | b"R") => Op::Read,
            Some(b"w" | b"W") => Op::Write,
            _ => return Err(EXPECTED),
        };
        let arrival = fields.next().and_then(|seconds| fixed_point(seconds, 9)).ok_or(EXPECTED)?;
        let arrival = Nanos(arrival);
        let size = Bytes(size);
        Ok(ParsedLine::Request(Request { arrival, size, op, offset: Some(offset), response: None }))
    }
}
