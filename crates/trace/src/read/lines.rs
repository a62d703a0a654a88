//! Text formats with one request per line.

use super::{Fault, Source};
use crate::error::{ErrorKind, Place, excerpt};
use crate::source::{Buffered, LINE_BYTES_MAX, LineError};
use model::Request;

/// What a line holds.
pub(crate) enum Parsed {
    Request(Request),
    /// Something done to the device that is neither read nor write.
    Other,
    /// A header, a comment, bookkeeping.
    Nothing,
}

/// One format's view of one line; the error completes "expected …".
pub(crate) trait LineParser: Send {
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str>;

    /// What only the end of the trace reveals.
    fn finish(&mut self) -> Result<(), ErrorKind> {
        Ok(())
    }
}

pub(crate) struct LineSource<P> {
    input: Buffered,
    parser: P,
    line: u64,
    ignored: u64,
}

impl<P: LineParser> LineSource<P> {
    pub(crate) fn new(input: Buffered, parser: P) -> Self {
        Self { input, parser, line: 0, ignored: 0 }
    }
}

impl<P: LineParser> Source for LineSource<P> {
    fn next(&mut self) -> Result<Option<Request>, Fault> {
        loop {
            self.line += 1;
            let line = match self.input.line() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    self.line -= 1;
                    let fault = |kind| Fault { place: Place::File, kind, resumes: false };
                    return self.parser.finish().map(|()| None).map_err(fault);
                }
                Err(error) => return Err(line_fault(&mut self.input, self.line, error)),
            };
            match self.parser.parse(line) {
                Ok(Parsed::Request(request)) => return Ok(Some(request)),
                Ok(Parsed::Other) => self.ignored += 1,
                Ok(Parsed::Nothing) => {}
                Err(expected) => return Err(malformed(self.line, expected, line)),
            }
        }
    }

    fn place(&self) -> Place {
        Place::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// A line that does not follow its format.
pub(crate) fn malformed(number: u64, expected: &'static str, line: &[u8]) -> Fault {
    let kind = ErrorKind::Malformed { expected, found: excerpt(line) };
    Fault { place: Place::Line(number), kind, resumes: true }
}

/// A line that could not be had; passes over the rest of one that is too long.
pub(crate) fn line_fault(input: &mut Buffered, number: u64, error: LineError) -> Fault {
    let place = Place::Line(number);
    let error = match error {
        LineError::Io(error) => error,
        LineError::TooLong => {
            let found = input.peek(100).map(excerpt).unwrap_or_default();
            match input.skip_line() {
                Err(error) => error,
                Ok(()) => {
                    const { assert!(LINE_BYTES_MAX == 65_536) };
                    let kind = ErrorKind::Malformed { expected: "a line of at most 65536 bytes", found };
                    return Fault { place, kind, resumes: true };
                }
            }
        }
    };
    Fault { place, kind: crate::source::damage(error), resumes: false }
}
