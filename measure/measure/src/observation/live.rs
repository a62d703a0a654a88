//! An observation that somebody watches: what the last seconds and the whole run have in common, about once a second, and
//! counters that a scraper reads at any time.

use crate::observation::live_metrics::{ObservationCounters, PublishedMetrics};
use observe::{ObservationProgress, ObservedRequest, RecentStatistics};

/// The length of the window of recent requests, in seconds.
pub(crate) const RECENT_SECONDS: usize = 10;

/// What there is to see of a running observation.
#[derive(Debug, Clone, Copy)]
pub struct LiveView<'a> {
    /// How the whole run is getting on.
    pub progress: ObservationProgress<'a>,
    /// Sums over the requests that were reported in the last whole seconds.
    pub recent: &'a observe::RequestStatistics,
    /// Number of these seconds: `RECENT_SECONDS`, or fewer at the beginning.
    pub recent_seconds: usize,
    /// CPU time of this process since it began, in nanoseconds: what joining events costs.
    pub process_cpu_ns: u64,
}

/// Who watches the observation of a server.
pub trait ServerWatcher {
    /// Nothing is missed any more; called once.
    fn attached(&mut self);

    /// Whether [`ServerWatcher::refresh`] is wanted: without, nothing is kept for it.
    fn wants_refresh(&self) -> bool {
        false
    }

    /// Called once each second.
    fn refresh(&mut self, _view: &LiveView<'_>) {}

    /// Called about 50 times a second.
    fn tick(&mut self) {}

    /// Called once when the last event has been taken, before the rest is computed.
    fn ended(&mut self) {}

    /// Whether the observation ends when every process that was seen to serve has ended.
    fn ends_with_server(&self) -> bool {
        true
    }
}

/// Keeps what a watcher and a scraper see.
pub(super) struct LiveState<'a> {
    watcher: &'a mut dyn ServerWatcher,
    recent: Option<RecentStatistics>,
    metrics: Option<(ObservationCounters, PublishedMetrics)>,
    second: u64,
}

impl<'a> LiveState<'a> {
    pub(super) fn new(
        watcher: &'a mut dyn ServerWatcher,
        metrics: Option<PublishedMetrics>,
        ports: impl IntoIterator<Item = u16>,
    ) -> Self {
        let recent = watcher.wants_refresh().then(|| RecentStatistics::new(RECENT_SECONDS));
        let metrics = metrics.map(|published| (ObservationCounters::new(ports), published));
        Self { watcher, recent, metrics, second: 0 }
    }

    /// Metrics that a scraper reads.
    pub(super) fn published(&self) -> Option<&PublishedMetrics> {
        self.metrics.as_ref().map(|(_, published)| published)
    }

    pub(super) fn attached(&mut self) {
        self.watcher.attached();
    }

    pub(super) fn ends_with_server(&self) -> bool {
        self.watcher.ends_with_server()
    }

    pub(super) fn take(&mut self, request: &ObservedRequest) {
        if let Some(recent) = &mut self.recent {
            recent.add(request);
        }
        if let Some((counters, _)) = &mut self.metrics {
            counters.add(request);
        }
    }

    pub(super) fn progress(&mut self, progress: &ObservationProgress<'_>) {
        self.watcher.tick();
        let second = progress.elapsed.as_secs();
        if second == self.second {
            return;
        }
        self.second = second;
        let process_cpu_ns = machine::cpu_time::of_process();
        if let Some((counters, published)) = &mut self.metrics {
            counters.note(progress, process_cpu_ns);
            published.publish(counters);
        }
        if let Some(recent) = &mut self.recent {
            recent.advance(progress.elapsed);
            let view = LiveView {
                progress: *progress,
                recent: &recent.sum(),
                recent_seconds: recent.seconds(),
                process_cpu_ns,
            };
            self.watcher.refresh(&view);
        }
    }

    pub(super) fn ended(&mut self) {
        self.watcher.ended();
    }
}
