//! Readers of the formats in which distributed traces are written, one record at a time.
//!
//! | format | records |
//! |---|---|
//! | `spans` | CSV with a header: `trace_id,span_id,parent_id,service,operation,start_us,duration_us`, and `kind` if known |
//! | `jaeger` | JSON as the query service and the interface of Jaeger export it |
//! | `otlp` | JSON of the OpenTelemetry protocol, as the collector's file exporter and Tempo write it |
//! | `zipkin` | JSON of version 2 of Zipkin's API |
//! | `alibaba` | call-graph table of the published microservice traces, 2021 and 2022 |
//!
//! JSON files may hold several concatenated documents; memory is that of one trace (`jaeger`, `zipkin`) or of
//! one resource's spans (`otlp`).
//!
//! An unreadable record ends reading with an error that gives file, line and expectation, or is counted
//! and skipped ([`BadRecords::Counted`]). Broken JSON always ends it, because nothing behind it can be
//! trusted.

mod alibaba;
mod csv;
mod error;
mod format;
mod ids;
mod jaeger;
mod json;
mod otlp;
mod record;
mod span_csv;
mod zipkin;

pub use error::{BadRecords, SpanReadError};
pub use format::SpanFormat;

use crate::Span;
use record::SpanSink;
use std::io::BufRead;

/// Hands every span of a file over and returns the number of records that were left out. `file` is what errors name.
///
/// # Errors
/// When the file cannot be read, or a record where this is fatal; the spans before it have been handed over.
pub fn read(
    file: &str,
    format: SpanFormat,
    bad_records: BadRecords,
    from: impl BufRead,
    mut span: impl FnMut(Span),
) -> Result<u64, SpanReadError> {
    let mut sink = SpanSink { span: &mut span, bad_records, unreadable: 0 };
    let result = match format {
        SpanFormat::Spans => span_csv::read(from, &mut sink),
        SpanFormat::Alibaba => alibaba::read(from, &mut sink),
        SpanFormat::Jaeger | SpanFormat::Otlp | SpanFormat::Zipkin => json::read(from, format, &mut sink),
    };
    result.map_err(|error| SpanReadError {
        file: file.to_owned(),
        line: error.line,
        message: error.message,
    })?;
    Ok(sink.unreadable)
}
