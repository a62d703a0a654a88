//! A recording as observations: arrivals are the intended times, and the stages are those of the proxy.

use super::order::ArrivalOrder;
use super::rows::{RecordingRows, RowError};
use crate::error::{TraceError, TraceErrorKind, TracePosition};
use model::{Observation, Observations, RequestOutcome};
use std::collections::HashMap;
use std::path::Path;
use units::Nanos;

/// Names of the stages: the time until a request was sent on, and the rest.
const STAGES: [&str; 2] = ["proxy", "server"];

/// Reads the recording in `folder` into memory. Instants count from the first arrival.
pub(crate) fn read_observations(folder: &Path) -> Result<Observations, TraceError> {
    let wrong = |error| TraceError::new(folder, TracePosition::File, TraceErrorKind::Io(error));
    let mut rows = RecordingRows::of_folder(folder).map_err(wrong)?;
    let mut collector = RecordedObservations::default();
    let mut order = ArrivalOrder::default();
    let failed = |error: RowError| {
        TraceError::new(error.segment.as_deref().unwrap_or(folder), error.position, error.kind)
    };
    loop {
        let taken = rows.next(|row| {
            let number = collector.number_of(&row.workload);
            order.push(row.request, row.answered, (number, row.waited))
        });
        if taken.map_err(failed)?.is_none() {
            order.end();
        }
        while let Some(first) = order.pop() {
            collector.add(first.request, first.with);
        }
        if order.has_ended() {
            return Ok(collector.finish());
        }
    }
}

/// Observations collected so far.
#[derive(Default)]
struct RecordedObservations {
    numbers: HashMap<String, u32>,
    origin: Option<Nanos>,
    observations: Observations,
}

impl RecordedObservations {
    fn number_of(&mut self, workload: &str) -> u32 {
        if let Some(number) = self.numbers.get(workload) {
            return *number;
        }
        let number = u32::try_from(self.numbers.len()).expect("fewer workloads than 2³²");
        self.numbers.insert(workload.to_owned(), number);
        self.observations.workloads.push(workload.to_owned());
        number
    }

    fn add(&mut self, request: model::Request, (workload, waited): (u32, Nanos)) {
        let intended = request.arrival - *self.origin.get_or_insert(request.arrival);
        let response = request.response.unwrap_or_default();
        let outcome = RequestOutcome::Done(intended + response);
        let op = request.op;
        let size = request.size;
        // The client sent the request when it arrived; the time in the proxy is a stage.
        self.observations.requests.push(Observation {
            workload,
            op,
            size,
            intended,
            sent: intended,
            outcome,
        });
        self.observations.stage_times.extend([waited, response - waited]);
    }

    fn finish(self) -> Observations {
        Observations { stages: STAGES.map(str::to_owned).to_vec(), ..self.observations }
    }
}
