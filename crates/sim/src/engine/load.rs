//! What comes in: entry points with their arrivals, and what each request demands.

use std::ops::Range;
use units::Nanos;

/// As a demand: the request leaves this step out.
pub const SKIP: Nanos = Nanos(u64::MAX);

/// As a demand: the step is its delay, and the station is not visited.
pub const DELAY_ONLY: Nanos = Nanos(u64::MAX - 1);

/// What a request is, drawn in full before it enters, so that every discipline gets the same work.
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
}

/// Draws requests.
pub trait DrawRequest {
    /// Fills in the next one.
    fn draw(&mut self, draft: &mut RequestDraft<'_>);
}

impl<F: FnMut(&mut RequestDraft<'_>)> DrawRequest for F {
    fn draw(&mut self, draft: &mut RequestDraft<'_>) {
        self(draft);
    }
}

/// When requests come.
pub enum EntryArrivals {
    /// At these instants, which never decrease, whatever happens to earlier requests.
    Open(Box<dyn Iterator<Item = Nanos>>),
    /// From a fixed number of clients, each of which thinks before its first request and after every answer.
    Closed {
        /// How many.
        clients: u32,
        /// Times to think; a client for which there is none left goes away.
        think: Box<dyn Iterator<Item = Nanos>>,
    },
}

/// Where requests come in and get their global arrival time.
pub struct RequestEntry {
    /// When.
    pub arrivals: EntryArrivals,
    /// What.
    pub draw: Box<dyn DrawRequest>,
    /// Most requests inside at once; the others wait in an unlimited queue, first come, first served. At least 1.
    pub window: Option<u32>,
    /// How far this entry's clock is ahead of the true time, nanoseconds.
    pub skew_ns: i64,
    /// Network delay between leaving the entry and the first steps.
    pub delay: Nanos,
}

impl RequestEntry {
    /// Open arrivals, no window, no skew, no delay.
    pub fn open(arrivals: impl Iterator<Item = Nanos> + 'static, draw: impl DrawRequest + 'static) -> Self {
        Self {
            arrivals: EntryArrivals::Open(Box::new(arrivals)),
            draw: Box::new(draw),
            window: None,
            skew_ns: 0,
            delay: Nanos::ZERO,
        }
    }

    /// Clients that wait for answers and think.
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
