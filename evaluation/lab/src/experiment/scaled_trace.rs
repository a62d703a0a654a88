//! A workload's requests, stretched or compressed in time until they are a given load.

use model::{CircularTrace, Job, OperationError, PerStage, Request, Stage};
use units::Nanos;
use workload::device::StorageProfile;

/// The requests of a workload, repeated for ever, with time scaled.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaledTrace {
    /// The requests with scaled arrivals; the first arrives at 0.
    pub trace: CircularTrace<Request>,
    /// The factor by which the times of the recorded trace were multiplied.
    pub time_scale: f64,
}

impl ScaledTrace {
    /// Scales time so that the requests take this share of a device's time.
    pub(super) fn with_device_load(
        requests: Vec<Request>,
        profile: &StorageProfile,
        load: f64,
    ) -> Result<Self, OperationError> {
        let mut model = profile.work_model();
        let work = requests.iter().map(|request| model.work(request).base_units() * 1e-9).sum();
        Self::with_load(requests, work, load)
    }

    /// Scales time so that one period takes `work` / `load`. `work` is the work of all requests together,
    /// in seconds; `load` is the wanted utilisation.
    pub(super) fn with_load(
        mut requests: Vec<Request>,
        work: f64,
        load: f64,
    ) -> Result<Self, OperationError> {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Err(OperationError::input("a trace is empty").hint("it is one of the public traces"));
        };
        let origin = first.arrival;
        let span = last.arrival.saturating_sub(first.arrival).as_secs();
        // The first request comes again one mean gap after the last.
        let recorded_period = span * requests.len() as f64 / (requests.len() as f64 - 1.0).max(1.0);
        let time_scale = work / load / recorded_period;
        if !(time_scale.is_finite() && time_scale > 0.0) {
            return Err(
                OperationError::input("a trace has no duration").hint("it is one of the public traces")
            );
        }
        for request in &mut requests {
            request.arrival = saturating_nanos((request.arrival - origin).as_secs() * time_scale);
        }
        let trace = CircularTrace::new(requests, saturating_nanos(work / load))
            .map_err(|error| OperationError::input(error).hint("it is one of the public traces"))?;
        Ok(Self { trace, time_scale })
    }

    /// Rotates the endless sequence to begin at the request with this index.
    #[must_use]
    pub(super) fn rotated_to(self, first: usize) -> Self {
        Self { trace: self.trace.rotated_to(first), ..self }
    }

    /// The requests of one period as work of the device.
    pub(super) fn storage_jobs(&self, profile: &StorageProfile) -> CircularTrace<Job> {
        let mut model = profile.work_model();
        let mut jobs = Vec::with_capacity(self.trace.items().len());
        for request in self.trace.items() {
            let mut work = PerStage::from_fn(|_| Nanos::ZERO);
            work[Stage::Storage] = ceil_nanos(model.work(request).base_units());
            jobs.push(Job { arrival: request.arrival, work });
        }
        CircularTrace::from_first_arrival(jobs, self.trace.period())
            .expect("arrivals and period are those of a circular trace")
    }
}

fn saturating_nanos(seconds: f64) -> Nanos {
    Nanos::from_secs(seconds).unwrap_or(Nanos(u64::MAX))
}

/// The time in whole nanoseconds, rounded up. It must not be negative.
pub(super) fn ceil_nanos(ns: f64) -> Nanos {
    // The work of one request is far below 2⁶⁴ ns, and `as` saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos(ns.ceil() as u64)
}
