//! Spans of many traces, interleaved, grouped by trace.
//!
//! A file does not say when a trace is complete. A bounded number of traces is open; the one that has got no span
//! for longest is closed when there are more, and what comes later for it is a fragment, which
//! [`crate::Counts::without_entry`] and [`crate::Counts::missing_parents`] show.

use crate::Span;
use std::collections::{BTreeMap, HashMap};

/// Groups spans by trace.
#[derive(Debug)]
pub struct Assembler {
    open_max: usize,
    /// Spans, and when the last came.
    open: HashMap<Box<str>, (u64, Vec<Span>)>,
    /// Traces by when their last span came.
    by_age: BTreeMap<u64, Box<str>>,
    clock: u64,
}

impl Assembler {
    /// With at most this many traces open.
    ///
    /// # Panics
    /// If none may be.
    pub fn new(open_max: usize) -> Self {
        assert!(open_max > 0, "a span opens a trace");
        Self { open_max, open: HashMap::new(), by_age: BTreeMap::new(), clock: 0 }
    }

    /// Takes a span; gives the spans of the trace that it closes, if any, in the order in which they came.
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
        self.oldest()
    }

    fn oldest(&mut self) -> Option<Vec<Span>> {
        let (_, trace) = self.by_age.pop_first()?;
        self.open.remove(&trace).map(|(_, spans)| spans)
    }

    /// The traces that are still open, the oldest first.
    pub fn finish(mut self) -> impl Iterator<Item = Vec<Span>> {
        std::iter::from_fn(move || self.oldest())
    }
}
