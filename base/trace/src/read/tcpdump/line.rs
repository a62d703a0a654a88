//! A line of `tcpdump`.

use crate::scan::{decimal, fixed_point, words};
use std::net::IpAddr;

const EXPECTED: &str = "a line of `tcpdump -tt -n`: seconds IP address.port > address.port: …, length bytes";
const NAMED: &str = "numeric addresses and ports: print the capture with `tcpdump -tt -n`";
const DECODED: &str =
    "the length of the data: capture the port of the server alone, or print with `tcpdump -tt -n -q`";

/// Address and port of one side of a connection.
pub(super) type End = (IpAddr, u16);

/// A packet of TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) time_ns: u64,
    pub(super) from: End,
    pub(super) to: End,
    /// Bytes of payload.
    pub(super) bytes: u64,
    pub(super) is_udp: bool,
    /// First sequence number and the one behind the payload, as printed; `None` with `-q` and for UDP.
    pub(super) sequence: Option<(u32, u32)>,
    pub(super) opening: Option<Opening>,
    /// Network device, printed with `-i any`.
    pub(super) device: Option<&'a [u8]>,
}

/// Part of the handshake of TCP, known without `-q`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The client's SYN.
    Asked,
    /// The server's SYN and ACK.
    Answered,
}

pub(super) enum TcpdumpLine<'a> {
    Packet(Packet<'a>),
    /// A packet of another protocol.
    OtherProtocol,
    /// Empty, a message of tcpdump itself, or the dump of a packet's bytes.
    Nothing,
}

/// Returns true if `line` looks like the line of a packet of IP, in whatever form tcpdump printed it.
pub(in crate::read) fn is_packet(line: &[u8]) -> bool {
    let starts_with_time = line.first().is_some_and(u8::is_ascii_digit);
    let mut words = words(line);
    starts_with_time
        && words.by_ref().skip(1).take(3).any(|word| matches!(word, b"IP" | b"IP6"))
        && words.any(|word| word == b">")
}

/// Parses a line; an error completes "expected …".
pub(super) fn parse_line(line: &[u8]) -> Result<TcpdumpLine<'_>, &'static str> {
    let mut words = words(line);
    let Some(first) = words.next() else { return Ok(TcpdumpLine::Nothing) };
    if is_about_itself(line) || first.starts_with(b"0x") {
        return Ok(TcpdumpLine::Nothing);
    }
    // Numbers of packets (`-#`) have no fraction.
    let time_ns = fixed_point(first, 9).filter(|_| first.contains(&b'.')).ok_or(EXPECTED)?;
    // With `-i any` the device and the direction precede the protocol.
    let mut device = None;
    loop {
        match words.next() {
            Some(b"IP" | b"IP6") => break,
            Some(word) => device = device.or(Some(word)),
            None => return Ok(TcpdumpLine::OtherProtocol),
        }
    }
    // `truncated-ip - 20 bytes missing!` may precede the addresses.
    let mut from = words.next().ok_or(EXPECTED)?;
    loop {
        match words.next() {
            Some(b">") => break,
            Some(word) => from = word,
            // A damaged packet, such as `bad-hlen 16`.
            None => return Ok(TcpdumpLine::OtherProtocol),
        }
    }
    let to = words.next().and_then(|word| word.strip_suffix(b":")).ok_or(EXPECTED)?;
    let rest: Vec<&[u8]> = words.collect();
    let is_transport = matches!(rest.first(), Some(&(b"tcp" | b"UDP," | b"Flags")));
    if rest.first().is_some_and(|word| *word == b"sctp" || word.starts_with(b"[|")) {
        return Ok(TcpdumpLine::OtherProtocol);
    }
    let Some((from, to)) = parse_end(from).zip(parse_end(to)) else {
        return if is_transport { Err(NAMED) } else { Ok(TcpdumpLine::OtherProtocol) };
    };
    let bytes = payload(&rest).ok_or(DECODED)?;
    let sequence = if bytes == 0 { None } else { sequence(&rest) };
    let opening = opening(&rest);
    let is_udp = !matches!(rest.first(), Some(&(b"tcp" | b"Flags")));
    Ok(TcpdumpLine::Packet(Packet { time_ns, from, to, bytes, is_udp, sequence, opening, device }))
}

/// Returns true for tcpdump's own messages on standard error, such as `listening on lo, link-type …` and
/// `12 packets captured`.
fn is_about_itself(line: &[u8]) -> bool {
    line.starts_with(b"tcpdump:")
        || line.starts_with(b"listening on")
        || line.starts_with(b"reading from")
        || line.starts_with(b"dropped privs")
        || line.trim_ascii_end().ends_with(b"captured")
        || line.trim_ascii_end().ends_with(b"by filter")
        || line.trim_ascii_end().ends_with(b"by kernel")
        || line.trim_ascii_end().ends_with(b"by interface")
}

/// Parses the address and port of `10.0.0.9.2049` or `fd00::9.2049`.
fn parse_end(word: &[u8]) -> Option<End> {
    let text = std::str::from_utf8(word).ok()?;
    let (address, port) = text.rsplit_once('.')?;
    Some((address.parse().ok()?, port.parse().ok()?))
}

/// Returns the bytes of payload in `tcp 36`, `UDP, length 36`, `Flags [P.], seq 1:37, …, length 36` with
/// possible further words, or at the end of decoded DNS, `(36)`.
fn payload(rest: &[&[u8]]) -> Option<u64> {
    match rest {
        [b"tcp", bytes, ..] => decimal(bytes),
        _ => match word_after(rest, b"length") {
            Some(bytes) => decimal(without_punctuation(bytes)),
            None => decimal(rest.last()?.strip_prefix(b"(")?.strip_suffix(b")")?),
        },
    }
}

/// Returns the numbers of `seq 1:37,`.
fn sequence(rest: &[&[u8]]) -> Option<(u32, u32)> {
    let numbers = without_punctuation(word_after(rest, b"seq")?);
    let colon = numbers.iter().position(|&byte| byte == b':')?;
    let number = |digits| decimal(digits).and_then(|number| u32::try_from(number).ok());
    number(&numbers[..colon]).zip(number(&numbers[colon + 1..]))
}

/// Returns the meaning of `Flags [S],` and `Flags [S.],`.
fn opening(rest: &[&[u8]]) -> Option<Opening> {
    let flags = without_punctuation(word_after(rest, b"Flags")?);
    if !flags.contains(&b'S') {
        None
    } else if flags.contains(&b'.') {
        Some(Opening::Answered)
    } else {
        Some(Opening::Asked)
    }
}

fn word_after<'a>(words: &[&'a [u8]], wanted: &[u8]) -> Option<&'a [u8]> {
    let at = words.iter().position(|&word| word == wanted)?;
    words.get(at + 1).copied()
}

fn without_punctuation(word: &[u8]) -> &[u8] {
    word.strip_suffix(b":").or_else(|| word.strip_suffix(b",")).unwrap_or(word)
}
