//! Reads the list of traces or resources from each of several concatenated JSON documents, element by
//! element, so that memory is that of one element. The list is the document, or a member of it, or of
//! the object around it in answers of a server.

use super::format::SpanFormat;
use super::record::{RecordError, SpanSink};
use super::{jaeger, otlp, zipkin};
use crate::Span;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{BufRead, Read};
use std::rc::Rc;

/// Counts lines as they are read, so that errors in the content of a document have a position.
struct LineCounter<R> {
    inner: R,
    line: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for LineCounter<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        // The parser asks for one byte at a time.
        let n = self.inner.read(to)?;
        let ends = to[..n].iter().filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get() + ends as u64);
        Ok(n)
    }
}

pub(super) fn read(
    from: impl BufRead,
    format: SpanFormat,
    sink: &mut SpanSink<'_>,
) -> Result<(), RecordError> {
    let line = Rc::new(Cell::new(1));
    let mut json = serde_json::Deserializer::from_reader(LineCounter { inner: from, line: line.clone() });
    let failed = RefCell::new(None);
    loop {
        let begins_at = line.get();
        match json.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_io() => return Err(broken_json(&error, begins_at)),
            Err(_) => {}
        }
        let mut reader = ElementReader { format, sink, line: &line, failed: &failed };
        let result = DocumentSeed(&mut reader).deserialize(&mut json);
        // An element that cannot be read ends the document with an error of the parser; the cause is kept here.
        if let Some(error) = failed.take() {
            return Err(error);
        }
        result.map_err(|error| broken_json(&error, line.get()))?;
    }
}

fn broken_json(error: &serde_json::Error, line: u64) -> RecordError {
    RecordError { line, message: format!("expected traces as JSON: {error}") }
}

/// Reads the elements of the list, each of which holds spans.
struct ElementReader<'a, 'b> {
    format: SpanFormat,
    sink: &'a mut SpanSink<'b>,
    line: &'a Cell<u64>,
    failed: &'a RefCell<Option<RecordError>>,
}

impl ElementReader<'_, '_> {
    /// Reads the next element; `false` at the end of the list.
    fn next_element<'de, A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<bool, A::Error> {
        let from = self.line.get();
        let Some(value) = list.next_element::<serde_json::Value>()? else { return Ok(false) };
        let mut failed = None;
        let mut untimed = 0;
        let mut take = |span: Result<Span, String>| {
            let record = span.map_err(|message| RecordError { line: from, message });
            failed = failed.take().or(self.sink.take(record).err());
        };
        match self.format {
            SpanFormat::Otlp => otlp::spans(&value, &mut take),
            SpanFormat::Zipkin => untimed = zipkin::spans(&value, &mut take),
            _ => jaeger::spans(&value, &mut take),
        }
        self.sink.unreadable += untimed;
        match failed {
            None => Ok(true),
            Some(error) => {
                *self.failed.borrow_mut() = Some(error);
                Err(A::Error::custom("a record cannot be read"))
            }
        }
    }
}

/// Members that contain the whole document in answers of Tempo and of Jaeger's third API.
const WRAPPERS: [&str; 2] = ["trace", "result"];

/// Deserializes a document, of which it reads one list.
struct DocumentSeed<'a, 'b, 'c>(&'a mut ElementReader<'b, 'c>);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl DocumentSeed<'_, '_, '_> {
    /// The names of the list; the first is the usual one.
    fn list_names(&self) -> &'static [&'static str] {
        match self.0.format {
            SpanFormat::Otlp => &["resourceSpans", "batches"],
            SpanFormat::Zipkin => &["traces"],
            _ => &["data"],
        }
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of traces, or an object with a list \"{}\"", self.list_names()[0])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let wanted = self.list_names();
        let mut is_there = false;
        while let Some(key) = map.next_key::<String>()? {
            if wanted.contains(&key.as_str()) {
                is_there = true;
                map.next_value_seed(ElementsSeed(&mut *self.0))?;
            } else if WRAPPERS.contains(&key.as_str()) {
                is_there = true;
                map.next_value_seed(DocumentSeed(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if is_there { Ok(()) } else { Err(A::Error::custom(format!("expected a list \"{}\"", wanted[0]))) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        ElementsSeed(self.0).visit_seq(list)
    }
}

/// Deserializes the list, one element at a time.
struct ElementsSeed<'a, 'b, 'c>(&'a mut ElementReader<'b, 'c>);

impl<'de> DeserializeSeed<'de> for ElementsSeed<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ElementsSeed<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while self.0.next_element(&mut list)? {}
        Ok(())
    }
}
