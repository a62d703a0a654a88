//! Lines of the text formats, appended to a buffer without going through `format!`.

use crate::error::ErrorKind;
use crate::format::Format;
use crate::read::{FILETIME_TICK_NS, FIO_HEADER_V3, SECTOR_BYTES};
use model::{Op, Request};
use units::Nanos;

/// Where MSR times start: 2007-02-22, when the published traces do. Readers rebase it away.
const FILETIME_EPOCH_TICKS: u64 = 128_166_372_000_000_000;
/// The name of the only file in an iolog.
const FIO_FILE: &[u8] = b"trace";

/// What precedes the first line.
pub(super) fn header(format: Format, out: &mut Vec<u8>) {
    match format {
        Format::Csv => out.extend_from_slice(b"arrival_ns,size_bytes,op,offset,response_ns\n"),
        Format::Fio => {
            out.extend_from_slice(FIO_HEADER_V3);
            for action in [&b" add\n"[..], b" open\n"] {
                out.extend_from_slice(if action == b" add\n" { b"\n0 " } else { b"0 " });
                out.extend_from_slice(FIO_FILE);
                out.extend_from_slice(action);
            }
        }
        _ => {}
    }
}

/// What follows the last line.
pub(super) fn footer(format: Format, last: Nanos, out: &mut Vec<u8>) {
    if format == Format::Fio {
        decimal(last.0 / 1000, out);
        out.push(b' ');
        out.extend_from_slice(FIO_FILE);
        out.extend_from_slice(b" close\n");
    }
}

/// One request.
pub(super) fn line(format: Format, request: &Request, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
    match format {
        Format::Csv => csv(request, out),
        Format::ArrivalHex => arrival_hex(request, out),
        Format::Msr => return msr(request, out),
        Format::Spc => spc(request, out),
        Format::Fio => fio(request, out),
        Format::Parquet | Format::Blkparse | Format::Vscsi => {
            return Err(ErrorKind::Unsupported(format, "is not a text format that can be written"));
        }
    }
    Ok(())
}

fn csv(request: &Request, out: &mut Vec<u8>) {
    decimal(request.arrival.0, out);
    out.push(b',');
    decimal(request.size.0, out);
    out.extend_from_slice(pick(request.op, b",read,", b",write,"));
    if let Some(offset) = request.offset {
        decimal(offset, out);
    }
    out.push(b',');
    if let Some(response) = request.response {
        decimal(response.0, out);
    }
    out.push(b'\n');
}

fn arrival_hex(request: &Request, out: &mut Vec<u8>) {
    decimal(request.arrival.0, out);
    out.extend_from_slice(b",0x");
    let digits = (u64::BITS - request.size.0.leading_zeros()).div_ceil(4).max(8);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(request.size.0 >> (4 * place) & 15) as usize]);
    }
    out.extend_from_slice(pick(request.op, b",DiskRead\n", b",DiskWrite\n"));
}

fn msr(request: &Request, out: &mut Vec<u8>) -> Result<(), ErrorKind> {
    let ticks = request.arrival.0 / FILETIME_TICK_NS + FILETIME_EPOCH_TICKS;
    // Readers count nanoseconds from 1601 in 64 bits, which ends in 2185.
    if ticks.checked_mul(FILETIME_TICK_NS).is_none() {
        return Err(ErrorKind::Unsupported(Format::Msr, "holds times of at most 178 years"));
    }
    decimal(ticks, out);
    out.extend_from_slice(b",trace,0,");
    out.extend_from_slice(pick(request.op, b"Read,", b"Write,"));
    decimal(request.offset.unwrap_or(0), out);
    out.push(b',');
    decimal(request.size.0, out);
    out.push(b',');
    decimal(request.response.unwrap_or(Nanos::ZERO).0 / FILETIME_TICK_NS, out);
    out.push(b'\n');
    Ok(())
}

fn spc(request: &Request, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0,");
    decimal(request.offset.unwrap_or(0) / SECTOR_BYTES, out);
    out.push(b',');
    decimal(request.size.0, out);
    out.extend_from_slice(pick(request.op, b",R,", b",W,"));
    const SECOND_NS: u64 = 1_000_000_000;
    decimal(request.arrival.0 / SECOND_NS, out);
    out.push(b'.');
    let fraction = request.arrival.0 % SECOND_NS;
    let mut place = SECOND_NS / 10;
    while place > 0 {
        push_digit(fraction / place % 10, out);
        place /= 10;
    }
    out.push(b'\n');
}

fn fio(request: &Request, out: &mut Vec<u8>) {
    decimal(request.arrival.0 / 1000, out);
    out.push(b' ');
    out.extend_from_slice(FIO_FILE);
    out.extend_from_slice(pick(request.op, b" read ", b" write "));
    decimal(request.offset.unwrap_or(0), out);
    out.push(b' ');
    decimal(request.size.0, out);
    out.push(b'\n');
}

fn pick(op: Op, read: &'static [u8], write: &'static [u8]) -> &'static [u8] {
    match op {
        Op::Read => read,
        Op::Write => write,
    }
}

fn decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_digit(digit: u64, out: &mut Vec<u8>) {
    out.push(b'0' + u8::try_from(digit).unwrap_or(0));
}
