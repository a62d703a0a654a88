//! HTTP/1.1 (RFC 9112) as far as a load generator needs it: GET and PUT of one path on a persistent connection,
//! pipelined, with bodies that have a Content-Length. Chunked bodies are refused.

use super::client_codec::{ClientCodec, Decoded, IoRequest, ReplyStatus};
use model::Op;
use std::borrow::Cow;

/// Maximum length of a response head in bytes.
const HEAD_LEN_MAX: usize = 64 << 10;
/// Maximum length of a response body in bytes.
const BODY_LEN_MAX: u64 = 1 << 30;

/// Requests one path of one host. Responses come in the order of requests, so that counting them identifies them.
#[derive(Debug)]
pub(crate) struct HttpCodec {
    host: String,
    path: String,
    /// The number of final responses so far, modulo 2³².
    responses: u32,
    is_closing: bool,
}

/// The complete head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HttpHead {
    status: u16,
    /// The length of the head, empty line included.
    len: usize,
    /// The length of the body that follows.
    body_len: u64,
    /// True if the server closes the connection after this response.
    closes: bool,
}

impl HttpCodec {
    pub(crate) fn new(host: String, path: String) -> Self {
        Self { host, path, responses: 0, is_closing: false }
    }
}

impl ClientCodec for HttpCodec {
    fn encode(
        &mut self,
        out: &mut Vec<u8>,
        _id: u64,
        request: IoRequest,
        payload: &[u8],
    ) -> Result<(), String> {
        let path = &self.path;
        let host = &self.host;
        let head = match request.op {
            Op::Read => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            Op::Write => {
                format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", payload.len())
            }
        };
        out.extend(head.as_bytes());
        out.extend(payload);
        Ok(())
    }

    fn decode(&mut self, input: &[u8]) -> Result<Decoded, String> {
        let Some(head) = parse_head(input)? else { return Ok(Decoded::NeedMore(input.len() + 1)) };
        let len = head.len + usize::try_from(head.body_len).expect("bodies have a limit");
        if input.len() < len {
            return Ok(Decoded::NeedMore(len));
        }
        // An interim response (1xx) precedes the response to the same request.
        if (100..200).contains(&head.status) {
            return Ok(Decoded::Skip(len));
        }
        self.is_closing |= head.closes;
        let id = self.responses;
        self.responses = self.responses.wrapping_add(1);
        Ok(Decoded::Reply { len, id, payload_start: head.len })
    }

    fn interpret<'a>(&self, _request: IoRequest, reply: &'a [u8], payload_start: usize) -> ReplyStatus<'a> {
        match parse_status(reply) {
            Ok(200..400) => ReplyStatus::Done(Cow::Borrowed(&reply[payload_start..])),
            Ok(status) => ReplyStatus::Failed(format!("the server answered with status {status}")),
            Err(why) => ReplyStatus::Failed(why),
        }
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }
}

/// The head of a response, or `None` if it has not arrived completely.
fn parse_head(input: &[u8]) -> Result<Option<HttpHead>, String> {
    let searched = &input[..input.len().min(HEAD_LEN_MAX)];
    let Some(end) = searched.windows(4).position(|window| window == b"\r\n\r\n") else {
        if searched.len() == HEAD_LEN_MAX {
            return Err(format!("an HTTP head of more than {HEAD_LEN_MAX} bytes"));
        }
        return Ok(None);
    };
    let mut lines = input[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let status = parse_status(lines.next().unwrap_or_default())?;
    // HTTP/1.0 closes unless it says otherwise.
    let mut content_length = None;
    let mut closes = input.starts_with(b"HTTP/1.0");
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Err(format!("HTTP field '{}': expected a colon", String::from_utf8_lossy(line)));
        };
        let name = line[..colon].to_ascii_lowercase();
        let value = line[colon + 1..].trim_ascii();
        match name.as_slice() {
            b"content-length" => content_length = Some(parse_content_length(value, content_length)?),
            b"transfer-encoding" => {
                return Err("the server sends chunked answers, which this client does not read; \
                ask for a file of fixed length"
                    .to_owned());
            }
            b"connection" => closes |= value.eq_ignore_ascii_case(b"close"),
            _ => {}
        }
    }
    let has_body = !matches!(status, 100..200 | 204 | 304);
    let body_len = match (content_length, has_body) {
        (_, false) => 0,
        (Some(length), true) => length,
        (None, true) => {
            return Err("an HTTP answer without Content-Length, which this client does not read".into());
        }
    };
    Ok(Some(HttpHead { status, len: end + 4, body_len, closes }))
}

/// The status of a response that begins with `line`.
fn parse_status(line: &[u8]) -> Result<u16, String> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").or(line.strip_prefix(b"HTTP/1.0 "));
    let digits = rest.and_then(|rest| rest.get(..3)).filter(|digits| digits.iter().all(u8::is_ascii_digit));
    if let Some(digits) = digits {
        let status = digits.iter().fold(0, |value, digit| 10 * value + u16::from(digit - b'0'));
        if status >= 100 {
            return Ok(status);
        }
    }
    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]);
    Err(format!("expected an HTTP/1.1 status line, found '{shown}'"))
}

/// The length in a Content-Length field. Repeated fields have to agree (RFC 9112, 6.3).
fn parse_content_length(value: &[u8], earlier: Option<u64>) -> Result<u64, String> {
    // Only digits, and few enough that the number fits: `parse` alone would accept a sign.
    let is_number = !value.is_empty() && value.len() <= 10 && value.iter().all(u8::is_ascii_digit);
    let parsed: Option<u64> = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    let length = parsed.filter(|length| is_number && *length <= BODY_LEN_MAX).ok_or_else(|| {
        format!("Content-Length '{}': expected a number up to {BODY_LEN_MAX}", String::from_utf8_lossy(value))
    })?;
    match earlier {
        Some(earlier) if earlier != length => {
            Err(format!("Content-Length {earlier} and {length} in one answer"))
        }
        _ => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn http() -> HttpCodec {
        HttpCodec::new("h".into(), "/p".into())
    }

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH: 5\r\n\r\nhello";

    #[test]
    fn responses_end_where_their_bodies_end() {
        for cut in 0..RESPONSE.len() {
            let decoded = http().decode(&RESPONSE[..cut]).unwrap();
            assert!(matches!(decoded, Decoded::NeedMore(needed) if needed > cut), "{cut}");
        }
        let mut http = http();
        let twice = [RESPONSE, RESPONSE].concat();
        for id in 0..2 {
            let decoded = http.decode(&twice[RESPONSE.len() * id as usize..]).unwrap();
            let Decoded::Reply { len, id: found, payload_start } = decoded else { panic!("{decoded:?}") };
            assert_eq!((len, found), (RESPONSE.len(), id));
            let request = IoRequest { op: Op::Read, size: 5, address: 0 };
            assert_eq!(
                http.interpret(request, RESPONSE, payload_start),
                ReplyStatus::Done(Cow::Borrowed(b"hello"))
            );
        }
        assert!(!http.is_closing());
    }

    #[test]
    fn unreadable_responses_are_errors() {
        for (response, part) in [
            (&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], "chunked"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "1 and 2"),
            (b"HTTP/2 200\r\n\r\n", "status line"),
            (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "colon"),
        ] {
            assert!(http().decode(response).unwrap_err().contains(part), "{part}");
        }
        assert!(http().decode(&vec![b'x'; HEAD_LEN_MAX]).unwrap_err().contains("head"));
    }

    #[test]
    fn statuses_and_closing_are_noticed() {
        let mut http = http();
        let responses =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(http.decode(responses), Ok(Decoded::Skip(25)));
        let decoded = http.decode(&responses[25..]).unwrap();
        assert!(matches!(decoded, Decoded::Reply { id: 0, .. }), "{decoded:?}");
        assert!(http.is_closing());
        assert!(matches!(
            http.interpret(IoRequest { op: Op::Read, size: 0, address: 0 }, &responses[25..], 0),
            ReplyStatus::Failed(_)
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), keep in 0..50usize) {
            let mixed = [&RESPONSE[..keep.min(RESPONSE.len())], &bytes].concat();
            for input in [&bytes, &mixed] {
                if let Ok(Decoded::Reply { len, .. } | Decoded::Skip(len)) = http().decode(input) {
                    prop_assert!(len > 0 && len <= input.len());
                }
            }
        }
    }
}
