//! One workload in a run: which request comes next, where it goes, what it carries.

use super::aim::Aim;
use super::book::{Number, Record};
use crate::check::small;
use crate::content::{Ended, Ledger, Pattern, Units};
use crate::setup::{Space, block};
use crate::speak::Ask;
use crate::{Counts, Demand, Options, Workload, check};
use arrivals::split_seed;
use model::{Observation, Op, Outcome, Request};
use std::collections::VecDeque;
use std::ops::Range;
use units::{Bytes, Nanos};

/// Units of contents.
const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

pub(crate) struct Flow {
    pub(crate) name: String,
    index: u32,
    demand: Demand,
    /// Requests of the demand that were taken.
    taken: usize,
    /// Its connections among those of the run.
    pub(crate) links: Range<usize>,
    /// The connection whose turn it is, from the start of `links`.
    pub(crate) turn: usize,
    /// Requests that wait for any connection.
    pub(crate) waiting: VecDeque<Number>,
    aim: Aim,
    has_keys: bool,
    ledger: Option<Ledger>,
    /// What writes carry that nobody verifies.
    noise: Vec<u8>,
    pub(crate) counts: Counts,
    /// Requests that failed, and why the first did.
    pub(crate) failed: (u64, Option<String>),
    /// Why the first connection was lost.
    pub(crate) first_loss: Option<String>,
}

impl Flow {
    pub(crate) fn new(
        index: usize,
        workload: Workload,
        space: Space,
        links: Range<usize>,
        options: &Options,
    ) -> Self {
        let sizes = check::sizes(&workload.demand);
        let pattern = Pattern::new(options.seed, index);
        let has_keys = matches!(space, Space::Keys(_));
        let units = if has_keys { Units::Values } else { Units::Blocks(unit(&workload.demand)) };
        let largest = sizes.iter().filter(|(op, _)| *op == Op::Write).map(|(_, size)| small(*size)).max();
        let mut noise = Vec::new();
        if !options.verify_data {
            pattern.put(&mut noise, 0, 0, largest.unwrap_or(0) as usize);
        }
        let mut demand = workload.demand;
        if let Demand::Open(requests) = &mut demand {
            requests.sort_by_key(|request| request.arrival);
        }
        Self {
            name: workload.name,
            index: u32::try_from(index).expect("checked before"),
            demand,
            taken: 0,
            links,
            turn: 0,
            waiting: VecDeque::new(),
            aim: Aim::new(space, split_seed(split_seed(options.seed, 1 << 32), index as u64)),
            has_keys,
            ledger: options.verify_data.then(|| Ledger::new(pattern, units)),
            noise,
            counts: Counts::default(),
            failed: (0, None),
            first_loss: None,
        }
    }

    /// When the next request is due, if it is known.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match &self.demand {
            Demand::Open(requests) => requests.get(self.taken).map(|request| request.arrival),
            Demand::Closed { .. } => None,
        }
    }

    /// Requests that begin at once, and one after each answer.
    pub(crate) fn outstanding(&self) -> u32 {
        match self.demand {
            Demand::Open(_) => 0,
            Demand::Closed { outstanding, .. } => outstanding,
        }
    }

    /// The next request, which the generator gets to at `now`.
    pub(crate) fn next(&mut self, now: Nanos) -> Record {
        let (intended, op, size, place) = match &self.demand {
            Demand::Open(requests) => {
                let Request { arrival, op, size, offset, .. } = requests[self.taken];
                (arrival, op, size, self.aim.place(offset, small(size.0)))
            }
            Demand::Closed { op, size, sequential: true, .. } => {
                (now, *op, *size, self.aim.next(small(size.0)))
            }
            Demand::Closed { op, size, .. } => (now, *op, *size, self.aim.place(None, small(size.0))),
        };
        self.taken += 1;
        let (workload, outcome) = (self.index, Outcome::Lost);
        let observation = Observation { workload, op, size, intended, sent: intended, outcome };
        Record { observation, lag: now.saturating_sub(intended), place, mark: 0, is_sent: false }
    }

    /// The request goes out: what is asked, its mark, and what it carries (`scratch` holds that).
    pub(crate) fn begin<'a>(
        &'a mut self,
        record: &Record,
        now: Nanos,
        scratch: &'a mut Vec<u8>,
    ) -> (Ask, u64, &'a [u8]) {
        let ask = ask(record);
        let place = self.content_place(ask);
        scratch.clear();
        match (ask.op, &mut self.ledger) {
            (Op::Read, ledger) => (ask, ledger.as_ref().map_or(0, Ledger::read_begins), &[]),
            (Op::Write, None) => (ask, 0, &self.noise[..ask.size as usize]),
            (Op::Write, Some(ledger)) => {
                let mark = ledger.write_begins(place, ask.size, now.0, scratch);
                (ask, mark, scratch)
            }
        }
    }

    /// A write that went out ended.
    pub(crate) fn written(&mut self, record: &Record, ended: Ended, now: Nanos) {
        let ask = ask(record);
        let place = self.content_place(ask);
        if let (Op::Write, Some(ledger)) = (ask.op, &mut self.ledger) {
            ledger.write_ends(place, ask.size, record.mark, ended, now.0);
        }
    }

    /// A read brought this.
    pub(crate) fn read(&mut self, record: &Record, data: &[u8]) {
        let place = self.content_place(ask(record));
        if let (Op::Read, Some(ledger)) = (record.observation.op, &mut self.ledger) {
            ledger.read_ends(place, data, record.mark, &self.name);
        }
    }

    pub(crate) fn failed_because(&mut self, why: impl FnOnce() -> String) {
        self.failed.0 += 1;
        self.failed.1.get_or_insert_with(why);
    }

    pub(crate) fn compared(&mut self) -> crate::Compared {
        self.ledger.as_mut().map(|ledger| std::mem::take(&mut ledger.compared)).unwrap_or_default()
    }

    fn content_place(&self, ask: Ask) -> u64 {
        if self.has_keys { block(ask.size, ask.place) } else { ask.place }
    }
}

pub(crate) fn ask(record: &Record) -> Ask {
    let Observation { op, size: Bytes(size), .. } = record.observation;
    Ask { op, size: small(size), place: record.place }
}

/// Pages, unless requests divide them.
fn unit(demand: &Demand) -> u64 {
    let whole = |value: u64| value % PAGE == 0;
    let fits = match demand {
        Demand::Open(requests) => {
            requests.iter().all(|request| whole(request.size.0) && request.offset.is_none())
        }
        Demand::Closed { size, .. } => whole(size.0),
    };
    if fits { PAGE } else { SECTOR }
}
