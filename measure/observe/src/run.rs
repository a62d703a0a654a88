//! An observation from its beginning to its end: attach, drain, join, sum up.

use crate::causes::Cause;
use crate::observing::{ObservationReport, ObservationSettings, ObservationWatcher};
use crate::probe::AttachedProbes;
use crate::request::ObservedRequest;
use crate::running::{DRAIN_INTERVAL, RunningObservation};
use crate::windows::watch_in_windows;
use model::OperationError;
use std::sync::atomic::AtomicBool;

/// A watcher of two functions.
struct FunctionWatcher<'a, F> {
    attached: Option<F>,
    take: &'a mut dyn FnMut(&ObservedRequest),
}

impl<F: FnOnce()> ObservationWatcher for FunctionWatcher<'_, F> {
    fn attached(&mut self) {
        if let Some(attached) = self.attached.take() {
            attached();
        }
    }

    fn take(&mut self, request: &ObservedRequest, _cause: Cause) {
        (self.take)(request);
    }
}

/// Observes until the time is over, `stop` is set or the server has ended. Every request is given to `take` as soon as it
/// is complete; `attached` is called once, when nothing is missed any more.
///
/// # Errors
/// As [`AttachedProbes::attach`].
pub fn observe(
    settings: &ObservationSettings,
    stop: &AtomicBool,
    attached: impl FnOnce(),
    take: &mut dyn FnMut(&ObservedRequest),
) -> Result<ObservationReport, OperationError> {
    watch(settings, stop, &mut FunctionWatcher { attached: Some(attached), take })
}

/// Observes as [`observe`] does, with a watcher that is told how it is getting on.
///
/// # Errors
/// As [`AttachedProbes::attach`]; and with a cost limit when this process may not have the cost measured.
pub fn watch(
    settings: &ObservationSettings,
    stop: &AtomicBool,
    watcher: &mut dyn ObservationWatcher,
) -> Result<ObservationReport, OperationError> {
    if let Some(limit) = settings.cost_limit {
        return watch_in_windows(settings, limit, stop, watcher);
    }
    let mut probes = AttachedProbes::attach(&settings.probes)?;
    let is_measuring = !settings.cost_duration.is_zero() && probes.begin_measuring_cost();
    let mut observation = RunningObservation::new(settings, is_measuring);
    watcher.attached();
    let end = loop {
        if let Some(end) = observation.reason_to_end(settings, stop, watcher) {
            break end;
        }
        std::thread::park_timeout(DRAIN_INTERVAL);
        observation.step(settings, &mut probes, watcher);
        observation.follow_parts(&probes, watcher)?;
        watcher.progress(&observation.progress(probes.lost()?));
    };
    observation.step(settings, &mut probes, watcher);
    observation.end_measuring(&mut probes);
    observation.end_joining(watcher);
    observation.counters.retransmits = probes.retransmits()?;
    Ok(observation.finish(end, probes.lost()?, probes.skipped_runs()))
}
