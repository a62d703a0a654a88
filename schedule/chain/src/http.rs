//! Protocol between load and tiers: GET requests and answers without bodies on persistent connections,
//! HTTP/1.1 (RFC 9112).
//!
//! A request carries its number and the rest of its route in two headers of ours, and its start in
//! `baggage`. Other input is refused with an error status, and the connection closed.

use crate::workload::HOPS_MAX;
use gat::{RequestTag, TagCodec};
use sim::pool_tiers::RouteHop;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use units::Nanos;

/// Maximum length of a head in bytes.
const HEAD_MAX: usize = 16 << 10;
/// Maximum number of header fields of a head.
const FIELDS_MAX: usize = 32;
const NUMBER_HEADER: &str = "tailwright-request";
const ROUTE_HEADER: &str = "tailwright-route";
const SENT_HEADER: &str = "tailwright-sent";

/// Data of a request for a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoutedHead {
    /// Number of the request in logs.
    pub(crate) number: u64,
    /// Remaining visits, this one first.
    pub(crate) route: Vec<RouteHop>,
    /// Sending time on the machine's monotonic clock, if the sender states it.
    pub(crate) sent_ns: Option<u64>,
    /// The `baggage` fields in their order.
    pub(crate) baggage: Vec<Vec<u8>>,
}

/// Appends a request whose baggage carries this tag in place of its former one.
pub(crate) fn write_request(out: &mut Vec<u8>, head: &RoutedHead, tag: RequestTag) {
    let codec = TagCodec::baggage();
    let tagged = codec.write(head.baggage.iter().map(Vec::as_slice), tag).value;
    out.extend(b"GET / HTTP/1.1\r\nHost: localhost\r\nbaggage: ");
    out.extend(tagged);
    let mut ours = format!("\r\n{NUMBER_HEADER}: {}\r\n", head.number);
    // Writing to a string does not fail.
    if let Some(sent) = head.sent_ns {
        let _ = write!(ours, "{SENT_HEADER}: {sent}\r\n");
    }
    let _ = write!(ours, "{ROUTE_HEADER}: ");
    for (position, hop) in head.route.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let _ = write!(ours, "{separator}{}:{}", hop.tier, hop.work.0);
        if hop.wait > Nanos::ZERO {
            let _ = write!(ours, ":{}", hop.wait.0);
        }
    }
    out.extend(ours.bytes());
    out.extend(b"\r\n\r\n");
}

/// Appends an answer with this status and no body.
pub(crate) fn write_answer(out: &mut Vec<u8>, status: u16) {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        _ => "Bad Gateway",
    };
    out.extend(format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\n\r\n").bytes());
}

/// Parses the request at the beginning of `input`. Returns it with its length; `None` if it is
/// incomplete.
pub(crate) fn parse_request(input: &[u8]) -> Result<Option<(RoutedHead, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let length = match head.parse(input).map_err(|error| error.to_string())? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return within_limit(input).map(|()| None),
    };
    if head.method != Some("GET") {
        return Err("expected GET".to_owned());
    }
    let mut number = None;
    let mut route = None;
    let mut sent_ns = None;
    let mut baggage = Vec::new();
    for field in head.headers.iter() {
        let name = field.name.to_ascii_lowercase();
        match name.as_str() {
            NUMBER_HEADER => number = text(field.value)?.parse().ok(),
            ROUTE_HEADER => route = Some(parse_route(text(field.value)?)?),
            SENT_HEADER => sent_ns = text(field.value)?.parse().ok(),
            "baggage" => baggage.push(field.value.to_vec()),
            "content-length" if field.value != b"0" => return Err("expected no body".to_owned()),
            "transfer-encoding" => return Err("expected no body".to_owned()),
            _ => {}
        }
    }
    let (Some(number), Some(route)) = (number, route) else {
        return Err(format!("expected {NUMBER_HEADER} and {ROUTE_HEADER}"));
    };
    Ok(Some((RoutedHead { number, route, sent_ns, baggage }, length)))
}

/// Parses the answer at the beginning of `input`. Returns its status and length; `None` if it is
/// incomplete.
pub(crate) fn parse_answer(input: &[u8]) -> Result<Option<(u16, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    match head.parse(input).map_err(|error| error.to_string())? {
        // Tiers answer without a body.
        httparse::Status::Complete(length) => Ok(head.code.map(|status| (status, length))),
        httparse::Status::Partial => within_limit(input).map(|()| None),
    }
}

fn within_limit(input: &[u8]) -> Result<(), String> {
    if input.len() < HEAD_MAX { Ok(()) } else { Err(format!("a head of more than {HEAD_MAX} bytes")) }
}

fn text(value: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(value).map_err(|_| "expected text".to_owned())
}

fn parse_route(text: &str) -> Result<Vec<RouteHop>, String> {
    let hops: Option<Vec<RouteHop>> = text.split(',').map(parse_hop).collect();
    hops.filter(|hops| hops.len() <= HOPS_MAX)
        .ok_or_else(|| "expected a route such as 0:1500,1:2000".to_owned())
}

fn parse_hop(text: &str) -> Option<RouteHop> {
    let (tier, times) = text.split_once(':')?;
    let (work, wait) = times.split_once(':').unwrap_or((times, "0"));
    let wait = Nanos(wait.parse().ok()?);
    let work = Nanos(work.parse().ok()?);
    Some(RouteHop { tier: tier.parse().ok()?, wait, work })
}

/// Reads a request and removes its bytes from `input`; `None` if the peer has closed the connection.
pub(crate) fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<Option<RoutedHead>> {
    loop {
        if let Some((head, length)) = parse_request(input).map_err(invalid)? {
            input.drain(..length);
            return Ok(Some(head));
        }
        if read_more(stream, input)? == 0 {
            return Ok(None);
        }
    }
}

/// Sends a request and waits for the status of the answer.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8], input: &mut Vec<u8>) -> io::Result<u16> {
    stream.write_all(request)?;
    input.clear();
    loop {
        if let Some((status, length)) = parse_answer(input).map_err(invalid)? {
            input.drain(..length);
            return Ok(status);
        }
        if read_more(stream, input)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Appends available bytes. Returns their number; 0 if the peer has closed the connection.
pub(crate) fn read_more(stream: &mut impl Read, input: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 2048];
    let count = stream.read(&mut chunk)?;
    input.extend(&chunk[..count]);
    Ok(count)
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str) -> Result<Option<(RoutedHead, usize)>, String> {
        parse_request(text.as_bytes())
    }

    proptest! {
        #[test]
        fn requests_come_back_and_are_not_complete_before(
            number: u64, start: u64, sent_ns: Option<u64>, hops in proptest::collection::vec((0usize..9, 0u64..1 << 40, 0u64..3), 1..HOPS_MAX),
        ) {
            let route: Vec<RouteHop> = hops.iter().map(|(tier, work, wait)| RouteHop { tier: *tier, wait: Nanos(*wait), work: Nanos(*work) }).collect();
            let mut bytes = Vec::new();
            let tag = RequestTag::starting_at(start);
            let baggage = vec![b"user=7,tailwright-start=1".to_vec()];
            let sent = RoutedHead { number, route, sent_ns, baggage };
            write_request(&mut bytes, &sent, tag);
            for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                prop_assert_eq!(parse_request(&bytes[..cut]), Ok(None));
            }
            let (head, length) = parse_request(&bytes).unwrap().unwrap();
            prop_assert_eq!((head.number, &head.route, head.sent_ns), (number, &sent.route, sent_ns));
            prop_assert_eq!(length, bytes.len());
            let values: Vec<&[u8]> = head.baggage.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(TagCodec::baggage().read(values.clone()), gat::ReceivedTag::Tagged(tag));
            prop_assert!(values.concat().windows(6).any(|part| part == b"user=7"));
        }

        #[test]
        fn arbitrary_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for parsed in [parse_request(&bytes).map(|found| found.map(|(_, length)| length)),
                parse_answer(&bytes).map(|found| found.map(|(_, length)| length))] {
                if let Ok(Some(length)) = parsed {
                    prop_assert!(length > 0 && length <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn answers_have_a_status() {
        let mut bytes = Vec::new();
        write_answer(&mut bytes, 502);
        assert_eq!(parse_answer(&bytes), Ok(Some((502, bytes.len()))));
        assert_eq!(parse_answer(&bytes[..20]), Ok(None));
        assert!(parse_answer(b"nonsense\r\n\r\n").is_err());
        assert!(parse_answer(&vec![b'H'; HEAD_MAX]).is_err());
    }

    #[test]
    fn what_others_might_send_is_refused() {
        for (request, part) in [
            ("POST / HTTP/1.1\r\n\r\n", "GET"),
            ("GET / HTTP/1.1\r\n\r\n", "tailwright-route"),
            ("GET / HTTP/1.1\r\ntailwright-route: 1\r\n\r\n", "route such as"),
            ("GET / HTTP/1.1\r\ntailwright-route: 1:-5\r\n\r\n", "route such as"),
            ("GET / HTTP/1.1\r\ntailwright-route: 1:5:x\r\n\r\n", "route such as"),
            ("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "no body"),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "no body"),
        ] {
            assert!(head(request).unwrap_err().contains(part), "{request}");
        }
        let many =
            format!("GET / HTTP/1.1\r\ntailwright-route: {}\r\n\r\n", vec!["0:1"; HOPS_MAX + 1].join(","));
        assert!(head(&many).is_err());
        let long = format!("GET /{} HTTP/1.1", "x".repeat(HEAD_MAX));
        assert!(head(&long).unwrap_err().contains("bytes"));
    }
}
