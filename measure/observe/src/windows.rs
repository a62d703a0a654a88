//! An observation in windows, as `sampling` plans them.

use crate::join::JoinCounts;
use crate::observing::{ObservationEnd, ObservationReport, ObservationSettings, ObservationWatcher};
use crate::probe::{AttachedProbes, may_measure_cost, types_of_kernel};
use crate::running::{DRAIN_INTERVAL, RunningObservation};
use crate::sampling::{
    COUNTED, CostLimit, MeasuredBeginning, SampledTime, TAIL_MAX, WARM_UP, WindowCost, WindowPlan,
};
use machine::clock::now;
use machine::cpu_time;
use model::OperationError;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Observes in windows, between which nothing is attached, so that observing takes a share of one CPU on average.
pub(crate) fn watch_in_windows(
    settings: &ObservationSettings,
    limit: CostLimit,
    stop: &AtomicBool,
    watcher: &mut dyn ObservationWatcher,
) -> Result<ObservationReport, OperationError> {
    if !may_measure_cost() {
        return Err(OperationError::machine("a limit of the cost takes CAP_SYS_ADMIN, which this process lacks")
            .hint("the kernel measures the run time of programs only for those who have it; a share of connections costs less, too"));
    }
    let mut cpu_before = cpu_time::of_thread();
    let types = types_of_kernel()?;
    let mut plan = WindowPlan::new(limit);
    let mut probes = AttachedProbes::attach_knowing(&settings.probes, &types)?;
    let mut observation = RunningObservation::new(settings, false);
    let mut window =
        ObservationWindow { settings, stop, end: None, lost_events: 0, skipped_runs: 0, cut_off: 0 };
    let mut counted = Duration::ZERO;
    let mut has_pauses = false;
    let end = loop {
        // With what the last pause took.
        let attaching_ns = cpu_time::of_thread() - cpu_before;
        let (mut cost, counted_now) =
            window.observe(&plan, attaching_ns, &mut observation, &mut probes, watcher)?;
        let cpu_observed = cpu_time::of_thread();
        drop(probes);
        counted += counted_now;
        cpu_before = cpu_time::of_thread();
        cost.attaching_ns += cpu_before - cpu_observed;
        let next = plan.next(observation.start.elapsed(), cost);
        has_pauses |= window.end.is_none();
        while window.end.is_none() && observation.start.elapsed() < next {
            std::thread::park_timeout(DRAIN_INTERVAL.min(next.saturating_sub(observation.start.elapsed())));
            watcher.progress(&observation.progress(window.lost_events));
            window.end = observation.reason_to_stop(settings, stop);
        }
        if let Some(end) = window.end {
            break end;
        }
        probes = AttachedProbes::attach_knowing(&settings.probes, &types)?;
    };
    let sampled = SampledTime {
        windows: plan.windows(),
        counted,
        has_pauses,
        cost_ns: plan.cost_ns(),
        first_attaching_ns: plan.first_attaching_ns(),
        limit,
        cut_off: window.cut_off,
    };
    let report = observation.finish(end, window.lost_events, window.skipped_runs);
    Ok(ObservationReport { sampled: Some(sampled), ..report })
}

/// The part of a window in which arrivals count, and what was counted before it.
struct CountingWindow {
    /// When it began, in nanoseconds of CLOCK_MONOTONIC.
    from: u64,
    retransmits_before: u64,
    counts_before: JoinCounts,
}

impl CountingWindow {
    fn begin(observation: &mut RunningObservation, probes: &AttachedProbes) -> Result<Self, OperationError> {
        observation.counters.begin();
        let retransmits_before = probes.retransmits()?;
        let counts_before = observation.joiner.counts();
        let from = now();
        observation.counted = from..u64::MAX;
        Ok(Self { from, retransmits_before, counts_before })
    }
}

/// What is the same in all windows, and what they add up to.
struct ObservationWindow<'a> {
    settings: &'a ObservationSettings,
    stop: &'a AtomicBool,
    end: Option<ObservationEnd>,
    lost_events: u64,
    skipped_runs: u64,
    cut_off: u64,
}

impl ObservationWindow<'_> {
    /// Observes a window that took so much CPU time to attach. Returns its cost, and for how long arrivals counted.
    fn observe(
        &mut self,
        plan: &WindowPlan,
        attaching_ns: u64,
        observation: &mut RunningObservation,
        probes: &mut AttachedProbes,
        watcher: &mut dyn ObservationWatcher,
    ) -> Result<(WindowCost, Duration), OperationError> {
        let began = Instant::now();
        let cpu_attached = cpu_time::of_thread();
        let events_before = observation.events;
        observation.begin_window(self.settings);
        if !probes.begin_measuring_cost() {
            return Err(OperationError::machine("the kernel does not measure the run time of programs")
                .hint("a limit of the cost takes that; a share of connections costs less, too"));
        }
        let counting = if plan.windows() == 0 {
            // Everything counts from the beginning, as without a limit.
            let counting = CountingWindow::begin(observation, probes)?;
            watcher.attached();
            Some(counting)
        } else {
            watcher.window_begins();
            None
        };
        let cpu_began = cpu_time::of_thread();
        let attaching_ns = attaching_ns + cpu_began - cpu_attached;
        self.step_until(began + WARM_UP, observation, probes, watcher)?;
        let cost = probes.cost();
        probes.end_measuring_cost();
        let measured = MeasuredBeginning {
            run_ns: cost.run_ns,
            runs: cost.runs,
            events: observation.events - events_before,
            duration: began.elapsed(),
        };
        let CountingWindow { from, retransmits_before, counts_before } = match counting {
            Some(counting) => counting,
            None => CountingWindow::begin(observation, probes)?,
        };
        let mut until = began + WARM_UP;
        loop {
            until += COUNTED;
            self.step_until(until, observation, probes, watcher)?;
            let kernel_ns = measured.cost_of(observation.events - events_before, began.elapsed());
            let running_ns = kernel_ns + cpu_time::of_thread() - cpu_began;
            let cost = WindowCost { attaching_ns, running_ns, took: began.elapsed() };
            let elapsed = observation.start.elapsed();
            let left = self.settings.duration.saturating_sub(elapsed);
            if self.end.is_some() || !plan.may_go_on(elapsed, left, cost) {
                break;
            }
        }
        let until = now();
        observation.counted = from..until;
        let tail_end = Instant::now() + TAIL_MAX;
        loop {
            // What arrived in the last moment is reported by now.
            self.step_until(Instant::now() + DRAIN_INTERVAL, observation, probes, watcher)?;
            let is_complete = observation.joiner.open_between(&observation.counted) == 0;
            if is_complete || self.end.is_some() || Instant::now() >= tail_end {
                break;
            }
        }
        observation.step(self.settings, probes, watcher);
        observation.counters.end();
        observation.counters.retransmits += probes.retransmits()? - retransmits_before;
        self.lost_events += probes.lost()?;
        self.skipped_runs += probes.skipped_runs();
        self.cut_off += observation.end_window(counts_before, watcher);
        let took = began.elapsed();
        let kernel_ns = measured.cost_of(observation.events - events_before, took);
        let running_ns = kernel_ns + cpu_time::of_thread() - cpu_began;
        let cost = WindowCost { attaching_ns, running_ns, took };
        Ok((cost, Duration::from_nanos(until - from)))
    }

    /// Looks at events until this instant, or a reason to end.
    fn step_until(
        &mut self,
        until: Instant,
        observation: &mut RunningObservation,
        probes: &mut AttachedProbes,
        watcher: &mut dyn ObservationWatcher,
    ) -> Result<(), OperationError> {
        while self.end.is_none() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            std::thread::park_timeout(DRAIN_INTERVAL.min(left));
            observation.step(self.settings, probes, watcher);
            watcher.progress(&observation.progress(self.lost_events + probes.lost()?));
            self.end = observation.reason_to_end(self.settings, self.stop, watcher);
        }
        Ok(())
    }
}
