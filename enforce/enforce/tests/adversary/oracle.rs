//! Counts at the server, by the tag that every request carries.

use std::collections::BTreeMap;
use units::Nanos;

/// Tag of requests that do not use the server, and may be present beside those that do.
pub const UNCOUNTED: u8 = b'-';

/// A served request: the end of its service, and its cost.
#[derive(Debug, Clone, Copy)]
pub struct ServedRequest {
    pub tag: u8,
    pub end_ns: u64,
    pub cost_ns: u64,
}

/// Counts of one tag.
#[derive(Debug, Clone, Copy, Default)]
pub struct TagCount {
    pub arrived: u64,
    pub answered: u64,
    pub at_once: u64,
    pub most_at_once: u64,
    last: u64,
    /// Requests that came again, came too late, or were skipped: for tags whose requests come in order.
    pub duplicated: u64,
    pub disordered: u64,
    pub skipped: u64,
}

/// Counts of a server.
#[derive(Debug, Default)]
pub struct ServerCounts {
    pub tags: BTreeMap<u8, TagCount>,
    pub at_once: u64,
    pub most_at_once: u64,
    pub served: Vec<ServedRequest>,
    /// Times that clients took to answer the server's own calls.
    pub callbacks_ns: Vec<u64>,
    pub connections: u64,
}

impl ServerCounts {
    /// Counts a request that is complete at the server. Places count from 1; 0 is none.
    pub fn arrive(&mut self, tag: u8, place: u64) {
        self.at_once += u64::from(tag != UNCOUNTED);
        self.most_at_once = self.most_at_once.max(self.at_once);
        let count = self.tags.entry(tag).or_default();
        count.arrived += 1;
        count.at_once += 1;
        count.most_at_once = count.most_at_once.max(count.at_once);
        if place > 0 {
            count.duplicated += u64::from(place == count.last);
            count.disordered += u64::from(place < count.last);
            count.skipped += place.saturating_sub(count.last + 1);
            count.last = place.max(count.last);
        }
    }

    pub fn serve(&mut self, request: ServedRequest) {
        self.at_once -= u64::from(request.tag != UNCOUNTED);
        let count = self.tags.entry(request.tag).or_default();
        count.at_once -= 1;
        count.answered += 1;
        self.served.push(request);
    }

    pub fn tag(&self, tag: u8) -> TagCount {
        self.tags.get(&tag).copied().unwrap_or_default()
    }

    /// Returns the burst, in seconds of device time, that the served work of a tag needs beside a rate,
    /// over all intervals.
    pub fn needed_burst(&self, tag: u8, rate: f64) -> f64 {
        let of_tag = self.served.iter().filter(|request| request.tag == tag);
        let mut work: Vec<(Nanos, f64)> =
            of_tag.map(|request| (Nanos(request.end_ns), request.cost_ns as f64 / 1e9)).collect();
        work.sort_unstable_by_key(|(end, _)| *end);
        verify::measure_conformance(work, rate, 0.0).needed_burst
    }

    /// Returns the longest service of a tag in seconds.
    pub fn longest(&self, tag: u8) -> f64 {
        let of_tag = self.served.iter().filter(|request| request.tag == tag);
        of_tag.map(|request| request.cost_ns).max().unwrap_or_default() as f64 / 1e9
    }
}
