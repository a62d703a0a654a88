//! A controller with its store: the one place where events are stored and applied.

use crate::error::ApiError;
use crate::visits::Visits;
use axum::http::StatusCode;
use controller::{Controller, Event, RecordedEvent};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use tokio::sync::watch;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    core: Mutex<ClusterCore>,
    /// Number of events, for those that wait for news; `u64::MAX` at the end.
    changed: watch::Sender<u64>,
    folder: PathBuf,
    /// Beginning of the clock of observations.
    began: Instant,
    pub(crate) visits: Visits,
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
        Self { core, changed, folder: folder.to_owned(), began: Instant::now(), visits }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ClusterCore> {
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
