//! HTTP/1.1 (RFC 9112) as far as a generator of load needs it: GET and PUT of one path, kept alive, pipelined, bodies
//! with a Content-Length.

use super::{Ask, Heard, Said, Speak};
use model::Op;
use std::borrow::Cow;

/// Most bytes of a head.
const HEAD_MAX: usize = 64 << 10;
/// Most bytes of a body.
const BODY_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub(crate) struct Http {
    host: String,
    path: String,
    /// Answers that were heard.
    answers: u32,
    is_closing: bool,
}

/// A head that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Head, with the empty line.
    len: usize,
    body: u64,
    closes: bool,
}

impl Http {
    /// Asks `host` for `path`.
    pub(crate) fn new(host: String, path: String) -> Self {
        Self { host, path, answers: 0, is_closing: false }
    }
}

impl Speak for Http {
    fn ask(&mut self, out: &mut Vec<u8>, _id: u64, ask: Ask, data: &[u8]) -> Result<(), String> {
        let (path, host) = (&self.path, &self.host);
        let head = match ask.op {
            Op::Read => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            Op::Write => {
                format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", data.len())
            }
        };
        out.extend(head.as_bytes());
        out.extend(data);
        Ok(())
    }

    fn hear(&mut self, input: &[u8]) -> Result<Heard, String> {
        let Some(head) = head(input)? else { return Ok(Heard::More(input.len() + 1)) };
        let used = head.len + usize::try_from(head.body).expect("bodies have a limit");
        if input.len() < used {
            return Ok(Heard::More(used));
        }
        if (100..200).contains(&head.status) {
            return Ok(Heard::Skip(used));
        }
        self.is_closing |= head.closes;
        let id = self.answers;
        self.answers = self.answers.wrapping_add(1);
        Ok(Heard::Answer { used, id, head: head.len })
    }

    fn said<'a>(&self, _ask: Ask, raw: &'a [u8], head: usize) -> Said<'a> {
        match status(raw) {
            Ok(200..400) => Said::Done(Cow::Borrowed(&raw[head..])),
            Ok(status) => Said::Failed(format!("the server answered with status {status}")),
            Err(why) => Said::Failed(why),
        }
    }

    fn is_closing(&self) -> bool {
        self.is_closing
    }
}

/// The head of an answer, if all of it is there.
fn head(input: &[u8]) -> Result<Option<Head>, String> {
    let searched = &input[..input.len().min(HEAD_MAX)];
    let Some(end) = searched.windows(4).position(|four| four == b"\r\n\r\n") else {
        if searched.len() == HEAD_MAX {
            return Err(format!("an HTTP head of more than {HEAD_MAX} bytes"));
        }
        return Ok(None);
    };
    let mut lines = input[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let status = status(lines.next().unwrap_or_default())?;
    let (mut length, mut closes) = (None, input.starts_with(b"HTTP/1.0"));
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return Err(format!("HTTP field '{}': expected a colon", String::from_utf8_lossy(line)));
        };
        let (name, value) = (line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii());
        match name.as_slice() {
            b"content-length" => length = Some(content_length(value, length)?),
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
    let body = match (length, has_body) {
        (_, false) => 0,
        (Some(length), true) => length,
        (None, true) => {
            return Err("an HTTP answer without Content-Length, which this client does not read".into());
        }
    };
    Ok(Some(Head { status, len: end + 4, body, closes }))
}

/// Of a status line.
fn status(line: &[u8]) -> Result<u16, String> {
    let digits =
        line.strip_prefix(b"HTTP/1.1 ").or(line.strip_prefix(b"HTTP/1.0 ")).and_then(|rest| rest.get(..3));
    let read = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
    digits
        .filter(|digits| digits.iter().all(u8::is_ascii_digit))
        .and_then(read)
        .filter(|status| *status >= 100)
        .ok_or_else(|| {
            format!(
                "expected an HTTP/1.1 status line, found '{}'",
                String::from_utf8_lossy(&line[..line.len().min(60)])
            )
        })
}

/// Repeated fields have to agree (RFC 9112, 6.3).
fn content_length(value: &[u8], before: Option<u64>) -> Result<u64, String> {
    let found =
        || format!("Content-Length '{}': expected a number up to {BODY_MAX}", String::from_utf8_lossy(value));
    let digits = !value.is_empty() && value.len() <= 10 && value.iter().all(u8::is_ascii_digit);
    let length: u64 = std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok())
        .filter(|length| *length <= BODY_MAX)
        .ok_or_else(found)?;
    match before {
        Some(before) if before != length => {
            Err(format!("Content-Length {before} and {length} in one answer"))
        }
        _ => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn http() -> Http {
        Http::new("h".into(), "/p".into())
    }

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-LENGTH: 5\r\n\r\nhello";

    #[test]
    fn answers_are_cut_where_they_end() {
        for cut in 0..ANSWER.len() {
            let heard = http().hear(&ANSWER[..cut]).unwrap();
            assert!(matches!(heard, Heard::More(more) if more > cut), "{cut}");
        }
        let mut http = http();
        let twice = [ANSWER, ANSWER].concat();
        for id in 0..2 {
            let heard = http.hear(&twice[ANSWER.len() * id as usize..]).unwrap();
            let Heard::Answer { used, id: found, head } = heard else { panic!("{heard:?}") };
            assert_eq!((used, found), (ANSWER.len(), id));
            let ask = Ask { op: Op::Read, size: 5, place: 0 };
            assert_eq!(http.said(ask, ANSWER, head), Said::Done(Cow::Borrowed(b"hello")));
        }
        assert!(!http.is_closing());
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (answer, part) in [
            (&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..], "chunked"),
            (b"HTTP/1.1 200 OK\r\n\r\n", "without Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "1 and 2"),
            (b"HTTP/2 200\r\n\r\n", "status line"),
            (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "colon"),
        ] {
            assert!(http().hear(answer).unwrap_err().contains(part), "{part}");
        }
        assert!(http().hear(&vec![b'x'; HEAD_MAX]).unwrap_err().contains("head"));
    }

    #[test]
    fn statuses_and_closing_are_noticed() {
        let mut http = http();
        let answer =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(http.hear(answer), Ok(Heard::Skip(25)));
        let heard = http.hear(&answer[25..]).unwrap();
        assert!(matches!(heard, Heard::Answer { id: 0, .. }), "{heard:?}");
        assert!(http.is_closing());
        assert!(matches!(
            http.said(Ask { op: Op::Read, size: 0, place: 0 }, &answer[25..], 0),
            Said::Failed(_)
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_heard_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), keep in 0..50usize) {
            let mixed = [&ANSWER[..keep.min(ANSWER.len())], &bytes].concat();
            for input in [&bytes, &mixed] {
                if let Ok(Heard::Answer { used, .. } | Heard::Skip(used)) = http().hear(input) {
                    prop_assert!(used > 0 && used <= input.len());
                }
            }
        }
    }
}
