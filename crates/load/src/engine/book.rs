//! Every request of a run.

use model::{Observation, Outcome};
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// Index of a request.
pub(crate) type Number = u32;

/// A request, and what the generator knows of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Instants count from the start of the run. Lost until it ends otherwise.
    pub(crate) observation: Observation,
    /// The generator's own lag.
    pub(crate) lag: Nanos,
    /// Offset or key.
    pub(crate) place: u64,
    /// What the ledger said when it went out.
    pub(crate) mark: u64,
    pub(crate) is_sent: bool,
}

/// Requests in the order in which the generator got to them.
#[derive(Debug, Default)]
pub(crate) struct Book {
    records: Vec<Record>,
    /// Without an end.
    open: usize,
}

/// What others may see of a run while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) elapsed: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) draining: std::sync::atomic::AtomicBool,
}

impl Book {
    pub(crate) fn enter(&mut self, record: Record) -> Number {
        let number = Number::try_from(self.records.len()).expect("fewer than four thousand million requests");
        self.records.push(record);
        self.open += 1;
        number
    }

    pub(crate) fn get(&self, number: Number) -> &Record {
        &self.records[number as usize]
    }

    pub(crate) fn get_mut(&mut self, number: Number) -> &mut Record {
        &mut self.records[number as usize]
    }

    pub(crate) fn sent(&mut self, number: Number, at: Nanos) {
        let record = self.get_mut(number);
        (record.observation.sent, record.is_sent) = (at, true);
    }

    /// Done or failed.
    pub(crate) fn end(&mut self, number: Number, outcome: Outcome, gauges: &Gauges) {
        let gauge = match outcome {
            Outcome::Done(_) => &gauges.answered,
            Outcome::Failed(_) | Outcome::Lost => &gauges.failed,
        };
        gauge.fetch_add(1, Ordering::Relaxed);
        let record = self.get_mut(number);
        debug_assert_eq!(record.observation.outcome, Outcome::Lost, "a request ends once");
        record.observation.outcome = outcome;
        if !record.is_sent {
            // It failed while a part of it was on its way.
            if let Outcome::Failed(at) = outcome {
                (record.observation.sent, record.is_sent) = (at, true);
            }
        }
        self.open -= 1;
    }

    /// Requests without an end.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Observations and lags of what was meant to be sent from `warm_up` on, counted from there, in order. What was
    /// never sent has `end` instead.
    pub(crate) fn close(mut self, warm_up: Nanos, end: Nanos) -> (Vec<Observation>, Vec<Nanos>) {
        self.records.retain(|record| record.observation.intended >= warm_up);
        self.records.sort_by_key(|record| record.observation.intended);
        let shifted = |record: &Record| {
            let observation = record.observation;
            let outcome = match observation.outcome {
                Outcome::Done(at) => Outcome::Done(at - warm_up),
                Outcome::Failed(at) => Outcome::Failed(at - warm_up),
                Outcome::Lost => Outcome::Lost,
            };
            let sent = if record.is_sent { observation.sent } else { end.max(observation.intended) };
            let (intended, sent) = (observation.intended - warm_up, sent - warm_up);
            Observation { intended, sent, outcome, ..observation }
        };
        (self.records.iter().map(shifted).collect(), self.records.iter().map(|record| record.lag).collect())
    }
}
