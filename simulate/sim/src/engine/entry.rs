//! Load of a network: entries with their arrivals, and the demands of each request.

use discipline::enforce::DeviceAccess;
use std::ops::Range;
use units::Nanos;

/// Demand of a step that the request skips.
pub const SKIP: Nanos = Nanos(u64::MAX);

/// Demand of a step that consists of its delay only, without a visit to the station.
pub const DELAY_ONLY: Nanos = Nanos(u64::MAX - 1);

/// A request, drawn in full before it enters, so that every discipline gets the same work.
#[derive(Debug)]
pub struct RequestDraft<'a> {
    /// Service that it needs at each step; [`SKIP`] and [`DELAY_ONLY`] are special. Initially zero.
    pub demands: &'a mut [Nanos],
    /// Network delay before each step; initially the network's. A request overtakes earlier ones if its delay
    /// is shorter by more than the time between them.
    pub delays: &'a mut [Nanos],
    /// Network delay between leaving the entry and the first steps; initially the entry's.
    pub entry_delay: Nanos,
    /// Steps of this request, none of which waits for others; initially all. The rest of the network is
    /// ignored, so that one network may hold a graph for each of many kinds of requests.
    pub steps: Range<usize>,
    /// Class, below [`super::QueueingNetwork::classes`]; initially 0.
    pub class: u32,
    /// Access to a storage device, for enforcers; initially unknown.
    pub access: Option<DeviceAccess>,
}

/// Draws the requests of an entry.
pub trait DrawRequest {
    /// Fills in the next request.
    fn draw(&mut self, draft: &mut RequestDraft<'_>);
}

impl<F: FnMut(&mut RequestDraft<'_>)> DrawRequest for F {
    fn draw(&mut self, draft: &mut RequestDraft<'_>) {
        self(draft);
    }
}

/// Arrival process of an entry.
pub enum EntryArrivals {
    /// Requests arrive at these instants, which never decrease, regardless of earlier requests.
    Open(Box<dyn Iterator<Item = Nanos>>),
    /// Requests arrive from a fixed number of clients, each of which thinks before its first request and
    /// after every response.
    Closed {
        /// Number of clients.
        clients: u32,
        /// Think times; a client leaves when none is left.
        think: Box<dyn Iterator<Item = Nanos>>,
    },
}

/// Source of requests, which get their global arrival time here.
pub struct RequestEntry {
    /// Arrival process.
    pub arrivals: EntryArrivals,
    /// Generator of requests.
    pub draw: Box<dyn DrawRequest>,
    /// Maximum number of requests inside; the others wait in an unlimited queue, first come, first served. At
    /// least 1.
    pub window: Option<u32>,
    /// Offset of this entry's clock from the true time, nanoseconds.
    pub skew_ns: i64,
    /// Network delay between leaving the entry and the first steps.
    pub delay: Nanos,
}

impl RequestEntry {
    /// An entry with open arrivals, without window, skew and delay.
    pub fn open(arrivals: impl Iterator<Item = Nanos> + 'static, draw: impl DrawRequest + 'static) -> Self {
        Self {
            arrivals: EntryArrivals::Open(Box::new(arrivals)),
            draw: Box::new(draw),
            window: None,
            skew_ns: 0,
            delay: Nanos::ZERO,
        }
    }

    /// An entry of clients that wait for answers and think, without window, skew and delay.
    pub fn closed(
        clients: u32,
        think: impl Iterator<Item = Nanos> + 'static,
        draw: impl DrawRequest + 'static,
    ) -> Self {
        Self {
            arrivals: EntryArrivals::Closed { clients, think: Box::new(think) },
            ..Self::open(std::iter::empty(), draw)
        }
    }
}
