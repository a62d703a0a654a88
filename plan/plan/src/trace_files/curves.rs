//! The burst curves of a trace, whole.

use crate::trace_files::error::TraceFileError;
use crate::trace_files::reader::ObservedReader;
use model::{OperationError, PerStage, Stage};
use operation::ProgressObserver;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use trace::OpenOptions;
use workload::burst::{BurstBuilder, BurstCurve, BurstError, StageArrival};
use workload::device::{NetworkModel, StorageProfile};
use workload::profile_file::read_profile;

/// Burst curves of a trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceCurves {
    /// The trace, as it was named.
    pub file: String,
    /// Curves in path order; without a device profile there is none at the storage.
    pub stages: Vec<StageCurve>,
}

/// The burst curve at a stage: for every rate the least burst of a token bucket that never delays the trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StageCurve {
    pub stage: Stage,
    /// Mean work per second between the first and the last arrival: bytes, or seconds of device time; null for a trace
    /// that arrives in one instant.
    pub mean_rate_per_s: Option<f64>,
    /// Corners by rising duration.
    pub corners: Vec<CurveCorner>,
}

/// A corner of a burst curve.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CurveCorner {
    /// Time from the first to the last arrival of an interval, seconds.
    pub duration_s: f64,
    /// The most work that arrives within that time: bytes, or seconds of device time.
    pub work: f64,
    /// Rate of the bucket whose line is the edge from this corner to the next; 0 at the last one.
    pub rate_per_s: f64,
    /// Burst of that bucket, rounded up: the least at this rate.
    pub burst_work: f64,
}

/// Reads a trace for its burst curves: bytes into and out of a server, and the time of a device.
///
/// # Errors
///
/// When the trace cannot be read, is empty, or its work cannot be counted.
pub fn trace_curves(
    path: &Path,
    options: &OpenOptions,
    profile: Option<&Path>,
    observer: &dyn ProgressObserver,
) -> Result<TraceCurves, TraceFileError> {
    let profile = profile.map(read_profile).transpose()?;
    let network = NetworkModel::default();
    let mut device = profile.as_ref().map(StorageProfile::work_model);
    let mut curves = PerStage::from_fn(|_| BurstBuilder::new());
    let wrong = |error: BurstError| OperationError::input(format_args!("{}: {error}", path.display()));
    let mut count = 0_u64;
    for request in ObservedReader::open(path, options, "reading", observer)? {
        let request = request?;
        count += 1;
        for stage in Stage::ALL {
            let work = match (stage, &mut device) {
                (Stage::Storage, Some(device)) => device.work(&request),
                (Stage::Storage, None) => continue,
                _ => network.work(stage, &request),
            };
            curves[stage].push(StageArrival { at: request.arrival, work }).map_err(wrong)?;
        }
    }
    if count == 0 {
        return Err(OperationError::input(format_args!("{}: the trace is empty", path.display())).into());
    }
    let mut stages = Vec::new();
    for (stage, curve) in Stage::ALL.into_iter().zip(curves.into_array()) {
        if stage != Stage::Storage || profile.is_some() {
            stages.push(stage_curve(stage, &curve.finish().map_err(wrong)?));
        }
    }
    Ok(TraceCurves { file: path.display().to_string(), stages })
}

fn stage_curve(stage: Stage, curve: &BurstCurve) -> StageCurve {
    // Storage work is in nanoseconds of device time.
    let unit = if stage == Stage::Storage { 1e-9 } else { 1.0 };
    let span = (curve.last() - curve.first()).as_secs();
    let envelope = curve.envelope();
    let mut corners = Vec::new();
    for (number, vertex) in envelope.vertices().iter().enumerate() {
        let rate = envelope.vertices().get(number + 1).map_or(0.0, |next| {
            (next.work - vertex.work).base_units() / (next.duration - vertex.duration).as_secs()
        });
        corners.push(CurveCorner {
            duration_s: vertex.duration.as_secs(),
            work: vertex.work.base_units() * unit,
            rate_per_s: rate * unit,
            burst_work: envelope.burst(rate) * unit,
        });
    }
    let mean_rate_per_s = (span > 0.0).then(|| curve.total().base_units() * unit / span);
    StageCurve { stage, mean_rate_per_s, corners }
}
