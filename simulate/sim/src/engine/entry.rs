//! The load of a network: entries with their arrivals, and what each request demands.

use discipline::enforce::DeviceAccess;
use std::ops::Range;
use units::Nanos;

/// The demand that says that a request leaves a step out.
pub const SKIP: Nanos = Nanos(u64::MAX);

/// The demand that says that a step is only its delay, and the station is not visited.
pub const DELAY_ONLY: Nanos = Nanos(u64::MAX - 1);

/// A request, drawn in full before it enters, so that every discipline gets the same work.
#[derive(Debug)]
pub struct RequestDraft<'a> {
    /// Service that it needs at each step; [`SKIP`] to leave a step out, [`DELAY_ONLY`]. Zero for all when it is
    /// handed over.
    pub demands: &'a mut [Nanos],
    /// Network delay before each step; those of the network when it is handed over. Messages of different requests
    /// overtake each other when the later one has so much less.
    pub delays: &'a mut [Nanos],
    /// Network delay between leaving the entry and the first steps; that of the entry when it is handed over.
    pub entry_delay: Nanos,
    /// The steps of this request, none of which waits for others; all when it is handed over. The rest of the network
    /// is not looked at, so that a network may hold a graph for each of many kinds of requests.
    pub steps: Range<usize>,
    /// Its class, below [`super::QueueingNetwork::classes`]; 0 when it is handed over.
    pub class: u32,
    /// What it does at a storage device, for enforcers; nothing is known when it is handed over.
    pub access: Option<DeviceAccess>,
}

/// A way to draw the requests of an entry.
pub trait DrawRequest {
    /// Fills in the next request.
    fn draw(&mut self, draft: &mut RequestDraft<'_>);
}

impl<F: FnMut(&mut RequestDraft<'_>)> DrawRequest for F {
    fn draw(&mut self, draft: &mut RequestDraft<'_>) {
        self(draft);
    }
}

/// The rule by which requests arrive at an entry.
pub enum EntryArrivals {
    /// Requests arrive at these instants, which never decrease, whatever happens to earlier requests.
    Open(Box<dyn Iterator<Item = Nanos>>),
    /// Requests arrive from a fixed number of clients, each of which thinks before its first request and after every
    /// answer.
    Closed {
        /// The number of clients.
        clients: u32,
        /// Times to think; a client for which there is none left goes away.
        think: Box<dyn Iterator<Item = Nanos>>,
    },
}

/// A place where requests arrive and get their global arrival time.
pub struct RequestEntry {
    /// The rule by which requests arrive.
    pub arrivals: EntryArrivals,
    /// How each request is drawn.
    pub draw: Box<dyn DrawRequest>,
    /// Most requests inside at once; the others wait in an unlimited queue, first come, first served. At least 1.
    pub window: Option<u32>,
    /// How far this entry's clock is ahead of the true time, nanoseconds.
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
