//! The lines of text formats. They are appended to a buffer without `format!`, which would dominate the time.

use crate::error::TraceErrorKind;
use crate::format::{FILETIME_TICK_NS, FIO_HEADER_V3, SECTOR_BYTES, TraceFormat};
use model::{Op, Request};
use units::Nanos;

/// The time at which written MSR traces begin: 2007-02-22, like the published ones. Readers subtract it again.
const FILETIME_EPOCH_TICKS: u64 = 128_166_372_000_000_000;
/// The name of the only file in a written iolog.
const FIO_FILE: &[u8] = b"trace";

/// Appends what precedes the first request.
pub(super) fn write_header(format: TraceFormat, out: &mut Vec<u8>) {
    match format {
        TraceFormat::Csv => out.extend_from_slice(b"arrival_ns,size_bytes,op,offset,response_ns\n"),
        TraceFormat::Fio => {
            out.extend_from_slice(FIO_HEADER_V3);
            out.extend_from_slice(b"\n0 ");
            out.extend_from_slice(FIO_FILE);
            out.extend_from_slice(b" add\n0 ");
            out.extend_from_slice(FIO_FILE);
            out.extend_from_slice(b" open\n");
        }
        _ => {}
    }
}

/// Appends what follows the last request.
pub(super) fn write_footer(format: TraceFormat, last: Nanos, out: &mut Vec<u8>) {
    if format == TraceFormat::Fio {
        write_decimal(last.0 / 1000, out);
        out.push(b' ');
        out.extend_from_slice(FIO_FILE);
        out.extend_from_slice(b" close\n");
    }
}

/// Appends the line of one request.
pub(super) fn write_line(
    format: TraceFormat,
    request: &Request,
    out: &mut Vec<u8>,
) -> Result<(), TraceErrorKind> {
    match format {
        TraceFormat::Csv => write_csv(request, out),
        TraceFormat::ArrivalHex => write_arrival_hex(request, out),
        TraceFormat::Msr => return write_msr(request, out),
        TraceFormat::Spc => write_spc(request, out),
        TraceFormat::Fio => write_fio(request, out),
        TraceFormat::Parquet
        | TraceFormat::Blkparse
        | TraceFormat::Vscsi
        | TraceFormat::Recording
        | TraceFormat::Tcpdump
        | TraceFormat::Limits => {
            return Err(TraceErrorKind::Unsupported(format, "is not a text format that can be written"));
        }
    }
    Ok(())
}

fn write_csv(request: &Request, out: &mut Vec<u8>) {
    write_decimal(request.arrival.0, out);
    out.push(b',');
    write_decimal(request.size.0, out);
    out.extend_from_slice(by_operation(request.op, b",read,", b",write,"));
    if let Some(offset) = request.offset {
        write_decimal(offset, out);
    }
    out.push(b',');
    if let Some(response) = request.response {
        write_decimal(response.0, out);
    }
    out.push(b'\n');
}

fn write_arrival_hex(request: &Request, out: &mut Vec<u8>) {
    write_decimal(request.arrival.0, out);
    out.extend_from_slice(b",0x");
    let hex_digits = (u64::BITS - request.size.0.leading_zeros()).div_ceil(4).max(8);
    for place in (0..hex_digits).rev() {
        out.push(b"0123456789abcdef"[(request.size.0 >> (4 * place) & 15) as usize]);
    }
    out.extend_from_slice(by_operation(request.op, b",DiskRead\n", b",DiskWrite\n"));
}

fn write_msr(request: &Request, out: &mut Vec<u8>) -> Result<(), TraceErrorKind> {
    let ticks = request.arrival.0 / FILETIME_TICK_NS + FILETIME_EPOCH_TICKS;
    // Readers count nanoseconds from 1601 in 64 bits, which ends in 2185.
    if ticks.checked_mul(FILETIME_TICK_NS).is_none() {
        return Err(TraceErrorKind::Unsupported(TraceFormat::Msr, "holds times of at most 178 years"));
    }
    write_decimal(ticks, out);
    out.extend_from_slice(b",trace,0,");
    out.extend_from_slice(by_operation(request.op, b"Read,", b"Write,"));
    write_decimal(request.offset.unwrap_or(0), out);
    out.push(b',');
    write_decimal(request.size.0, out);
    out.push(b',');
    write_decimal(request.response.unwrap_or(Nanos::ZERO).0 / FILETIME_TICK_NS, out);
    out.push(b'\n');
    Ok(())
}

fn write_spc(request: &Request, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0,");
    write_decimal(request.offset.unwrap_or(0) / SECTOR_BYTES, out);
    out.push(b',');
    write_decimal(request.size.0, out);
    out.extend_from_slice(by_operation(request.op, b",R,", b",W,"));
    const SECOND_NS: u64 = 1_000_000_000;
    write_decimal(request.arrival.0 / SECOND_NS, out);
    out.push(b'.');
    let fraction = request.arrival.0 % SECOND_NS;
    let mut place = SECOND_NS / 10;
    while place > 0 {
        write_digit(fraction / place % 10, out);
        place /= 10;
    }
    out.push(b'\n');
}

fn write_fio(request: &Request, out: &mut Vec<u8>) {
    write_decimal(request.arrival.0 / 1000, out);
    out.push(b' ');
    out.extend_from_slice(FIO_FILE);
    out.extend_from_slice(by_operation(request.op, b" read ", b" write "));
    write_decimal(request.offset.unwrap_or(0), out);
    out.push(b' ');
    write_decimal(request.size.0, out);
    out.push(b'\n');
}

fn by_operation(op: Op, read: &'static [u8], write: &'static [u8]) -> &'static [u8] {
    match op {
        Op::Read => read,
        Op::Write => write,
    }
}

fn write_decimal(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

fn write_digit(digit: u64, out: &mut Vec<u8>) {
    out.push(b'0' + u8::try_from(digit).unwrap_or(0));
}
