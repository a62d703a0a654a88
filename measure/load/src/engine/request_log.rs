//! Every request of a run, from the moment when the generator handles it.

use crate::progress::ProgressGauges;
use model::{Observation, RequestOutcome};
use std::sync::atomic::Ordering;
use units::Nanos;

/// The position of a request in the [`RequestLog`].
pub(super) type RequestIndex = u32;

/// A request and its observations.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestRecord {
    /// Instants count from the start of the run. The outcome is `Lost` until the request ends otherwise.
    /// A request counts as sent when the generator handles it. A later wait for a connection or for room
    /// in a socket is caused by the server, so the run must not be rejected for it as lag of the
    /// generator.
    pub(super) observation: Observation,
    /// An offset in bytes, or the number of a key.
    pub(super) address: u64,
    /// The version of the expected contents when the request was encoded; 0 where contents are not tracked.
    pub(super) content_version: u64,
}

/// All requests, in the order in which the generator handled them.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    records: Vec<RequestRecord>,
    /// Number of requests that have not ended.
    unfinished: usize,
}

impl RequestLog {
    pub(super) fn push(&mut self, record: RequestRecord) -> RequestIndex {
        let index = RequestIndex::try_from(self.records.len()).expect("fewer than 2³² requests");
        self.records.push(record);
        self.unfinished += 1;
        index
    }

    pub(super) fn get(&self, request: RequestIndex) -> &RequestRecord {
        &self.records[request as usize]
    }

    pub(super) fn get_mut(&mut self, request: RequestIndex) -> &mut RequestRecord {
        &mut self.records[request as usize]
    }

    /// Ends a request and counts it as answered or failed.
    pub(super) fn finish(&mut self, request: RequestIndex, outcome: RequestOutcome, gauges: &ProgressGauges) {
        let gauge = match outcome {
            RequestOutcome::Done(_) => &gauges.answered,
            RequestOutcome::Failed(_) | RequestOutcome::Lost => &gauges.failed,
        };
        gauge.fetch_add(1, Ordering::Relaxed);
        let record = self.get_mut(request);
        debug_assert_eq!(record.observation.outcome, RequestOutcome::Lost, "a request ends once");
        record.observation.outcome = outcome;
        self.unfinished -= 1;
    }

    pub(super) fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the requests with an intended time from the end of the warm-up on, ordered by that time.
    /// Their instants count from the end of the warm-up.
    pub(super) fn into_observations(mut self, warm_up: Nanos) -> Vec<Observation> {
        self.records.retain(|record| record.observation.intended >= warm_up);
        self.records.sort_by_key(|record| record.observation.intended);
        self.records.iter().map(|record| since_warm_up(record.observation, warm_up)).collect()
    }
}

fn since_warm_up(observation: Observation, warm_up: Nanos) -> Observation {
    let outcome = match observation.outcome {
        RequestOutcome::Done(at) => RequestOutcome::Done(at - warm_up),
        RequestOutcome::Failed(at) => RequestOutcome::Failed(at - warm_up),
        RequestOutcome::Lost => RequestOutcome::Lost,
    };
    let intended = observation.intended - warm_up;
    let sent = observation.sent - warm_up;
    Observation { intended, sent, outcome, ..observation }
}
