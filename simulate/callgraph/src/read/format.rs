//! The formats of span files, by name and by their first bytes.

use std::fmt;
use std::str::FromStr;
use units::ParseError;

/// A file format of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanFormat {
    /// CSV with one span per row.
    Spans,
    /// JSON as Jaeger exports it.
    Jaeger,
    /// JSON of the OpenTelemetry protocol.
    Otlp,
    /// JSON of Zipkin.
    Zipkin,
    /// CSV of Alibaba's call graphs.
    Alibaba,
}

impl SpanFormat {
    /// All formats that can be read.
    pub const ALL: [Self; 5] = [Self::Spans, Self::Jaeger, Self::Otlp, Self::Zipkin, Self::Alibaba];

    fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Jaeger => "jaeger",
            Self::Otlp => "otlp",
            Self::Zipkin => "zipkin",
            Self::Alibaba => "alibaba",
        }
    }

    /// The format of a file that begins with these bytes, if it is one of them.
    pub(crate) fn detect(beginning: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(beginning);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with(['{', '[']) {
            let has_key = |key: &str| text.contains(&format!("\"{key}\""));
            return Some(if has_key("resourceSpans") || has_key("batches") {
                Self::Otlp
            } else if has_key("traceId") && !has_key("traceID") {
                Self::Zipkin
            } else {
                Self::Jaeger
            });
        }
        let header = text.lines().next()?.to_ascii_lowercase();
        if has_column(&header, "span_id") && has_column(&header, "trace_id") {
            Some(Self::Spans)
        } else if has_column(&header, "traceid") && has_column(&header, "rpctype") {
            Some(Self::Alibaba)
        } else {
            None
        }
    }
}

fn has_column(header: &str, name: &str) -> bool {
    header.split(',').any(|field| field.trim().trim_matches('"') == name)
}

impl fmt::Display for SpanFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SpanFormat {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let format = Self::ALL.into_iter().find(|format| format.name() == text);
        format.ok_or_else(|| ParseError::new(text, "spans, jaeger, otlp, zipkin or alibaba"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_seen_from_the_beginning() {
        for (text, format) in [
            ("trace_id,span_id,parent_id,service\n", Some(SpanFormat::Spans)),
            ("timestamp,traceid,rpcid,um,rpctype,dm,interface,rt\n", Some(SpanFormat::Alibaba)),
            (" {\"data\": []}", Some(SpanFormat::Jaeger)),
            ("{\"resourceSpans\": []}", Some(SpanFormat::Otlp)),
            ("{\"batches\": []}", Some(SpanFormat::Otlp)),
            ("[[{\"traceId\": \"a\"}]]", Some(SpanFormat::Zipkin)),
            ("arrival_ns,size\n", None),
            ("", None),
        ] {
            assert_eq!(SpanFormat::detect(text.as_bytes()), format, "{text}");
        }
    }
}
