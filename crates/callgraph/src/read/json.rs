//! JSON documents, one after the other, of which only one list is looked at, element by element.

use super::{Format, Sink, Wrong, jaeger, otlp};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{BufRead, Read};
use std::rc::Rc;

/// Counts lines as they are read, so that an error in the meaning of a document has a place.
struct Lines<R> {
    inner: R,
    line: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        // A byte at a time is how the parser asks.
        let n = self.inner.read(to)?;
        let ends = to[..n].iter().filter(|byte| **byte == b'\n').count();
        self.line.set(self.line.get() + ends as u64);
        Ok(n)
    }
}

pub(super) fn read(from: impl BufRead, format: Format, sink: &mut Sink<'_>) -> Result<(), Wrong> {
    let line = Rc::new(Cell::new(1));
    let mut json = serde_json::Deserializer::from_reader(Lines { inner: from, line: line.clone() });
    let failed = RefCell::new(None);
    loop {
        let at = line.get();
        match json.end() {
            Ok(()) => return Ok(()),
            Err(error) if error.is_io() => return Err(broken(&error, at)),
            Err(_) => {}
        }
        let mut taken = Taken { format, sink, line: &line, failed: &failed };
        let done = Document(&mut taken).deserialize(&mut json);
        if let Some(wrong) = failed.take() {
            return Err(wrong);
        }
        done.map_err(|error| broken(&error, line.get()))?;
    }
}

fn broken(error: &serde_json::Error, line: u64) -> Wrong {
    Wrong { line, message: format!("expected traces as JSON: {error}") }
}

struct Taken<'a, 'b> {
    format: Format,
    sink: &'a mut Sink<'b>,
    line: &'a Cell<u64>,
    failed: &'a RefCell<Option<Wrong>>,
}

impl Taken<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<bool, A::Error> {
        let from = self.line.get();
        let Some(value) = list.next_element::<serde_json::Value>()? else { return Ok(false) };
        let mut failed = None;
        let mut take = |span: Result<_, String>| {
            let record = span.map_err(|message| Wrong { line: from, message });
            failed = failed.take().or(self.sink.take(record).err());
        };
        match self.format {
            Format::Otlp => otlp::spans(&value, &mut take),
            _ => jaeger::spans(&value, &mut take),
        }
        match failed {
            None => Ok(true),
            Some(wrong) => {
                *self.failed.borrow_mut() = Some(wrong);
                Err(A::Error::custom("a record cannot be read"))
            }
        }
    }
}

struct Document<'a, 'b, 'c>(&'a mut Taken<'b, 'c>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl Document<'_, '_, '_> {
    fn list(&self) -> &'static str {
        if self.0.format == Format::Otlp { "resourceSpans" } else { "data" }
    }
}

impl<'de> Visitor<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with a list \"{}\"", self.list())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (wanted, mut found) = (self.list(), false);
        while let Some(key) = map.next_key::<String>()? {
            if key == wanted {
                found = true;
                map.next_value_seed(List(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(A::Error::custom(format!("expected a list \"{wanted}\""))) }
    }
}

struct List<'a, 'b, 'c>(&'a mut Taken<'b, 'c>);

impl<'de> DeserializeSeed<'de> for List<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while self.0.element(&mut list)? {}
        Ok(())
    }
}
