//! Text formats with one request per line.

use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::input::{BufferedInput, LINE_BYTES_MAX, ReadLineError, damage};
use model::Request;

/// Content of a line.
pub(super) enum ParsedLine {
    Request(Request),
    /// An operation on the device that is neither a read nor a write, such as a flush or a trim.
    OtherOperation,
    /// A header, a comment, or a line that the parser uses internally.
    NoOperation,
}

/// Parses the lines of one format. An error completes "expected …".
pub(super) trait LineParser: Send {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str>;

    /// Checks conditions that only the end of the trace decides.
    fn finish(&mut self) -> Result<(), TraceErrorKind> {
        Ok(())
    }
}

pub(super) struct LineSource<P> {
    input: BufferedInput,
    parser: P,
    line: u64,
    ignored: u64,
}

impl<P: LineParser> LineSource<P> {
    pub(super) fn new(input: BufferedInput, parser: P) -> Self {
        Self { input, parser, line: 0, ignored: 0 }
    }
}

impl<P: LineParser> TraceSource for LineSource<P> {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            let line = match self.input.line() {
                Ok(Some(line)) => line,
                Ok(None) => {
                    let finished = self.parser.finish();
                    return finished
                        .map(|()| None)
                        .map_err(|kind| SourceError::fatal(TracePosition::File, kind));
                }
                Err(error) => {
                    self.line += 1;
                    return Err(unreadable_line(&mut self.input, self.line, error));
                }
            };
            self.line += 1;
            match self.parser.parse(line) {
                Ok(ParsedLine::Request(request)) => return Ok(Some(request)),
                Ok(ParsedLine::OtherOperation) => self.ignored += 1,
                Ok(ParsedLine::NoOperation) => {}
                Err(expected) => {
                    return Err(SourceError::malformed(TracePosition::Line(self.line), expected, line));
                }
            }
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// Returns the error for an unreadable line. The rest of a line that is too long is skipped, so that
/// reading can continue behind it.
pub(super) fn unreadable_line(input: &mut BufferedInput, line: u64, error: ReadLineError) -> SourceError {
    const { assert!(LINE_BYTES_MAX == 65_536) };
    const EXPECTED: &str = "a line of at most 65536 bytes";
    let position = TracePosition::Line(line);
    match error {
        ReadLineError::Io(error) => SourceError::fatal(position, damage(error)),
        ReadLineError::TooLong => {
            let found = input.peek(100).map(<[u8]>::to_vec).unwrap_or_default();
            match input.skip_line() {
                Ok(()) => SourceError::malformed(position, EXPECTED, &found),
                Err(error) => SourceError::fatal(position, damage(error)),
            }
        }
    }
}
