//! Which workloads are busy together.

use crate::assumptions::recording::Recording;
use crate::assumptions::settings::AssumptionSettings;
use crate::assumptions::stream::{RecordedStream, Untested};
use confidence::{CommonBursts, WindowedSeries, common_bursts, discoveries};
use operation::ProgressObserver;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;

/// The fewest requests that a stream needs in the common time.
const REQUESTS_MIN: usize = 100;

/// Result of testing two workloads for common bursts.
#[derive(Debug, Clone)]
pub struct PairAssessment {
    /// The index of one stream.
    pub a: usize,
    /// The index of the other, which is larger.
    pub b: usize,
    pub outcome: Result<PairComparison, Untested>,
}

/// Comparison of two streams.
#[derive(Debug, Clone)]
pub struct PairComparison {
    /// The share of time shifts at which the two are busy together at least as much.
    pub p_value: f64,
    /// True if the common bursts are too frequent for chance, corrected for the number of pairs.
    pub dependent: bool,
    /// The scale at which it is most visible, as an index into `scales`.
    pub clearest: usize,
    /// From the shortest windows to the longest.
    pub scales: Vec<ComparedScale>,
}

/// Comparison of two streams in windows of one length.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ComparedScale {
    /// The length of a window, seconds.
    pub window_s: f64,
    /// The rank correlation of work in windows, −1 to 1.
    pub correlation: f64,
    /// The rank correlation that one in twenty time shifts exceeds.
    pub correlation_by_chance: f64,
    /// Frequency with which both are in their busiest 5 % of windows ÷ the frequency under independence;
    /// `None` if one stream is always idle or has a constant load.
    pub busy_together: Option<f64>,
}

impl PairAssessment {
    /// Returns true if the two were found dependent.
    pub fn is_dependent(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|comparison| comparison.dependent)
    }
}

impl PairComparison {
    /// The comparison at the scale at which it is most visible.
    pub fn at_clearest(&self) -> &ComparedScale {
        &self.scales[self.clearest]
    }
}

/// Compares every pair of streams, and decides on all together.
pub(super) fn assess_pairs(
    streams: &[RecordedStream],
    recordings: &[Recording],
    settings: AssumptionSettings,
    observer: &dyn ProgressObserver,
) -> Vec<PairAssessment> {
    let mut pairs = Vec::new();
    for a in 0..streams.len() {
        pairs.extend((a + 1..streams.len()).map(|b| (a, b)));
    }
    let series = prepared(streams, recordings);
    let task = observer.begin("comparing", pairs.len() as u64, "pairs");
    let outcomes = machine::parallel::map(&pairs, |&(a, b)| {
        let outcome = compare(streams, &series, settings, a, b);
        task.advance();
        outcome
    });
    let p_values = outcomes.iter().flatten().map(|found| found.p_value).collect::<Vec<_>>();
    let mut decisions = discoveries(&p_values, settings.false_discoveries).into_iter();
    let mut assessments = Vec::with_capacity(pairs.len());
    for ((a, b), mut outcome) in pairs.into_iter().zip(outcomes) {
        if let Ok(found) = &mut outcome {
            found.dependent = decisions.next().expect("one decision per comparison");
        }
        assessments.push(PairAssessment { a, b, outcome });
    }
    assessments
}

/// A stream in the windows of its recording.
struct PreparedStream {
    /// The index of its recording.
    recording: usize,
    /// The length of a window, seconds.
    window_s: f64,
    series: Result<WindowedSeries, Untested>,
}

/// Each stream in the windows of its recording; `None` where it is in none.
fn prepared(streams: &[RecordedStream], recordings: &[Recording]) -> Vec<Option<PreparedStream>> {
    let indices: Vec<usize> = (0..streams.len()).collect();
    machine::parallel::map(&indices, |&stream| {
        let recording = recordings.iter().position(|recording| recording.members.contains(&stream))?;
        let (series, window_s) = series(&recordings[recording], &streams[stream]);
        Some(PreparedStream { recording, window_s, series })
    })
}

/// A stream in the windows of a recording, and how long a window is, seconds.
fn series(recording: &Recording, stream: &RecordedStream) -> (Result<WindowedSeries, Untested>, f64) {
    let Some(windows) = recording.windows() else {
        return (Err(Untested::TooShort(Recording::seconds_min())), 0.0);
    };
    let window_s = recording.seconds() / windows as f64;
    let (work, found) = recording.work_by_window(stream, windows);
    if found < REQUESTS_MIN {
        return (Err(Untested::TooFewRequests { found, needed: REQUESTS_MIN }), window_s);
    }
    (Ok(WindowedSeries::new(&work)), window_s)
}

fn compare(
    streams: &[RecordedStream],
    series: &[Option<PreparedStream>],
    settings: AssumptionSettings,
    a: usize,
    b: usize,
) -> Result<PairComparison, Untested> {
    if Arc::ptr_eq(&streams[a].traffic, &streams[b].traffic) {
        return Err(Untested::SameTrace);
    }
    if !settings.one_clock {
        return Err(Untested::NoCommonClock);
    }
    let (Some(of_a), Some(of_b)) = (&series[a], &series[b]) else { return Err(Untested::OwnOrigin) };
    if of_a.recording != of_b.recording {
        return Err(Untested::OtherTimes);
    }
    let found =
        common_bursts(of_a.series.as_ref().map_err(|why| *why)?, of_b.series.as_ref().map_err(|why| *why)?);
    Ok(in_seconds(&found, of_a.window_s))
}

/// Converts the windows of a comparison to seconds. `dependent` is decided later, over all pairs.
fn in_seconds(found: &CommonBursts, window_s: f64) -> PairComparison {
    let scales = found.scales.iter().map(|scale| ComparedScale {
        window_s: scale.windows as f64 * window_s,
        correlation: scale.correlation,
        correlation_by_chance: scale.correlation_by_chance,
        busy_together: scale.busy_together,
    });
    PairComparison {
        p_value: found.p_value,
        dependent: false,
        clearest: found.clearest,
        scales: scales.collect(),
    }
}
