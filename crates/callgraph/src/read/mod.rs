//! Readers of the formats that traces come in, one record at a time.
//!
//! | format | records |
//! |---|---|
//! | `spans` | CSV with a header: `trace_id,span_id,parent_id,service,operation,start_us,duration_us`, and `kind` if known |
//! | `jaeger` | JSON as the query service and the interface of Jaeger export it |
//! | `otlp` | JSON of the OpenTelemetry protocol, as the collector's file exporter writes it |
//! | `alibaba` | call-graph table of the published microservice traces, 2021 and 2022 |
//!
//! JSON files may hold several documents, one after the other; memory is that of one trace (`jaeger`) or of one
//! resource's spans (`otlp`).
//!
//! What cannot be read ends reading with file, line and what was expected, or is counted and left out
//! ([`Errors::Counted`]). JSON that is no JSON always ends it: nothing behind it can be trusted.

mod alibaba;
mod csv;
mod jaeger;
mod json;
mod otlp;
mod spans;

use crate::Span;
use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;
use units::{Nanos, ParseError};

/// How spans are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Span CSV.
    Spans,
    /// JSON of Jaeger.
    Jaeger,
    /// JSON of the OpenTelemetry protocol.
    Otlp,
    /// CSV of Alibaba's call graphs.
    Alibaba,
}

impl Format {
    /// All.
    pub const ALL: [Self; 4] = [Self::Spans, Self::Jaeger, Self::Otlp, Self::Alibaba];

    fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Jaeger => "jaeger",
            Self::Otlp => "otlp",
            Self::Alibaba => "alibaba",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| ParseError::new(text, "spans, jaeger, otlp or alibaba"))
    }
}

/// What becomes of a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Errors {
    /// It ends reading.
    #[default]
    Fatal,
    /// It is left out and counted.
    Counted,
}

/// Why reading ended.
#[derive(Debug)]
pub struct ReadError {
    /// As it was named by the caller.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// What was expected, and what was found.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// A line and what is wrong there.
#[derive(Debug)]
struct Wrong {
    line: u64,
    message: String,
}

impl Wrong {
    fn expected(line: u64, what: &str, found: &str) -> Self {
        Self { line, message: format!("expected {what}, found '{found}'") }
    }

    fn io(line: u64, error: &io::Error) -> Self {
        Self { line, message: format!("cannot be read: {error}") }
    }
}

/// What readers give: spans and mistakes.
struct Sink<'a> {
    span: &'a mut dyn FnMut(Span),
    errors: Errors,
    unreadable: u64,
}

impl Sink<'_> {
    fn take(&mut self, record: Result<Span, Wrong>) -> Result<(), Wrong> {
        match record {
            Ok(span) => (self.span)(span),
            Err(wrong) if self.errors == Errors::Fatal => return Err(wrong),
            Err(_) => self.unreadable += 1,
        }
        Ok(())
    }
}

/// Hands every span of a file over; gives the number of records that were left out. `file` is what errors name.
///
/// # Errors
/// When the file cannot be read, or a record in strict reading; the spans before it have been handed over.
pub fn read(
    file: &str,
    format: Format,
    errors: Errors,
    from: impl BufRead,
    mut span: impl FnMut(Span),
) -> Result<u64, ReadError> {
    let mut sink = Sink { span: &mut span, errors, unreadable: 0 };
    let done = match format {
        Format::Spans => spans::read(from, &mut sink),
        Format::Alibaba => alibaba::read(from, &mut sink),
        Format::Jaeger | Format::Otlp => json::read(from, format, &mut sink),
    };
    let named = |wrong: Wrong| ReadError { file: file.to_owned(), line: wrong.line, message: wrong.message };
    done.map_err(named)?;
    Ok(sink.unreadable)
}

/// An integer number of microseconds, or of others of that many nanoseconds.
fn time(text: &str, unit_ns: u64, line: u64, what: &str) -> Result<Nanos, Wrong> {
    let value = text.trim().parse::<u64>().ok().and_then(|value| value.checked_mul(unit_ns));
    value.map(Nanos).ok_or_else(|| Wrong::expected(line, what, text))
}
