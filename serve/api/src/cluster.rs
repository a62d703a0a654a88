//! A controller with its store: the one place where events are stored and applied.

use crate::error::ApiError;
use crate::visits::Visits;
use axum::http::StatusCode;
use controller::{Alert, Controller, Event, RecordedEvent};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use tokio::sync::watch;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    /// Taken before the lock of `core`, and left when that is taken: the thread that waits for the lock is the next one, and
    /// one that takes it again and again holds up another for no longer than once.
    turn: Mutex<()>,
    core: Mutex<ClusterCore>,
    /// Number of events, for those that wait for news; `u64::MAX` at the end.
    changed: watch::Sender<u64>,
    folder: PathBuf,
    /// Beginning of the clock of observations.
    began: Instant,
    pub(crate) visits: Visits,
    /// End of the certificate, seconds since 1970; 0 without one.
    certificate_end_s: AtomicU64,
}

/// Values that the lock protects.
#[derive(Debug)]
pub(crate) struct ClusterCore {
    pub(crate) controller: Controller,
    pub(crate) store: Store,
    /// Reason why nothing is decided any more: memory and history differ.
    broken: Option<String>,
}

impl Cluster {
    /// Takes over a store and the controller that its history was applied to.
    pub fn new(controller: Controller, store: Store, folder: &Path) -> Self {
        let (changed, _) = watch::channel(controller.state().seq);
        let core = Mutex::new(ClusterCore { controller, store, broken: None });
        let visits = Visits::default();
        Self {
            turn: Mutex::default(),
            core,
            changed,
            folder: folder.to_owned(),
            began: Instant::now(),
            visits,
            certificate_end_s: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ClusterCore> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // After a panic memory may be behind the history: the lock stays poisoned, and `commit` refuses.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if commands are decided.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.core.is_poisoned() && self.lock().broken.is_none()
    }

    /// Stores events and applies them, in order.
    pub(crate) fn commit(
        &self,
        core: &mut ClusterCore,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Option<RecordedEvent>, ApiError> {
        let mut last = None;
        if self.core.is_poisoned() {
            return Err(broken("an earlier command failed in the middle"));
        }
        if let Some(reason) = &core.broken {
            return Err(broken(reason));
        }
        for event in events {
            let recorded = core.store.append(now_ns(), event)?;
            if let Err(reason) = core.controller.apply(&recorded) {
                core.broken = Some(reason.clone());
                return Err(broken(&reason));
            }
            last = Some(recorded);
        }
        if last.is_some() {
            let seq = core.controller.state().seq;
            // The end stays the end, whatever is decided until then.
            self.changed.send_if_modified(|news| {
                let goes_on = *news != u64::MAX;
                if goes_on {
                    *news = seq;
                }
                goes_on
            });
        }
        Ok(last)
    }

    /// Returns a receiver of the number of events.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Wakes all that wait for news, so that they see whether they may still have them.
    pub(crate) fn wake(&self) {
        self.changed.send_modify(|_| ());
    }

    /// Wakes all that wait for news, because the service ends.
    pub(crate) fn stop(&self) {
        self.changed.send_replace(u64::MAX);
    }

    /// Returns the instant of observations: nanoseconds since the controller began.
    pub(crate) fn instant(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the number of events; `None` when the service ends.
    pub fn position(&self) -> Option<u64> {
        Some(*self.changed.borrow()).filter(|news| *news != u64::MAX)
    }

    /// Returns changes of alerts after a position, of at most `limit` events, and true if some before them were forgotten.
    pub fn alerts_after(&self, seq: u64, limit: usize) -> (Vec<Alert>, bool) {
        self.lock().controller.state().alerts_after(seq, limit)
    }

    /// Returns the identity of the cluster.
    pub fn identity(&self) -> String {
        self.lock().controller.state().cluster.clone()
    }

    /// Records agents that have not reported for this long.
    pub(crate) fn note_silence(&self, silence_max: Duration) {
        let silence_max = u64::try_from(silence_max.as_nanos()).unwrap_or(u64::MAX);
        let mut core = self.lock();
        let events = core.controller.silent_agents(self.instant(), silence_max);
        // An event that cannot be stored now is found again at the next look.
        let _ = self.commit(&mut core, events);
    }

    /// Records the end of the certificate, with a sentence if that is soon; `None` without a certificate.
    pub(crate) fn note_certificate(&self, certificate: Option<(Duration, Option<String>)>) {
        let end = certificate.as_ref().map_or(0, |(end, _)| end.as_secs());
        self.certificate_end_s.store(end, Ordering::Relaxed);
        let complaint = certificate.and_then(|(_, complaint)| complaint);
        let mut core = self.lock();
        let event = core.controller.certificate_alert(complaint.as_deref());
        let _ = self.commit(&mut core, event);
    }

    /// Returns the end of the certificate, seconds since 1970; `None` without one.
    pub(crate) fn certificate_end_s(&self) -> Option<u64> {
        Some(self.certificate_end_s.load(Ordering::Relaxed)).filter(|end| *end > 0)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

fn broken(reason: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, format_args!("the controller stopped deciding: {reason}"))
        .hint("restart it; what was acknowledged is stored")
}

/// Wall clock, nanoseconds since 1970; 0 before that.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
