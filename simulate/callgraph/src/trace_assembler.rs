//! The spans of many traces, which come interleaved, grouped by trace.
//!
//! A file does not say when a trace is complete. A bounded number of traces is open; the one that has got no span
//! for longest is closed when there are more, and spans that come later for it are a fragment, which
//! [`crate::RuleCounts::without_entry`] and [`crate::RuleCounts::missing_parents`] show.

use crate::span::Span;
use std::collections::{BTreeMap, HashMap};

/// Groups the spans of a file by trace.
#[derive(Debug)]
pub struct TraceAssembler {
    open_max: usize,
    /// The spans of each open trace, and when the last one came.
    open: HashMap<Box<str>, (u64, Vec<Span>)>,
    /// The open traces by when their last span came.
    by_age: BTreeMap<u64, Box<str>>,
    /// Number of spans added so far.
    clock: u64,
}

impl TraceAssembler {
    /// An assembler that has at most this many traces open.
    ///
    /// # Panics
    /// When no trace may be open.
    pub fn new(open_max: usize) -> Self {
        assert!(open_max > 0, "a span opens a trace");
        Self { open_max, open: HashMap::new(), by_age: BTreeMap::new(), clock: 0 }
    }

    /// Adds a span. If this closes a trace, returns its spans in order of arrival.
    pub fn push(&mut self, span: Span) -> Option<Vec<Span>> {
        self.clock += 1;
        let (last, spans) = self.open.entry(span.trace.clone()).or_default();
        self.by_age.remove(&*last);
        *last = self.clock;
        self.by_age.insert(self.clock, span.trace.clone());
        spans.push(span);
        if self.open.len() <= self.open_max {
            return None;
        }
        self.close_oldest()
    }

    fn close_oldest(&mut self) -> Option<Vec<Span>> {
        let (_, trace) = self.by_age.pop_first()?;
        self.open.remove(&trace).map(|(_, spans)| spans)
    }

    /// The spans of each trace that is still open, the oldest first.
    pub fn finish(mut self) -> impl Iterator<Item = Vec<Span>> {
        std::iter::from_fn(move || self.close_oldest())
    }
}
