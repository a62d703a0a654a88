//! Sets up a workload's connections, and lost ones again, in a thread of its own: the timing thread never waits.

use crate::setup::{Opened, Site};
use model::OperationError;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Between attempts: doubled up to the second after each that fails.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A connection that works again.
pub(crate) struct Repaired {
    /// Its index among those of the run.
    pub(crate) link: usize,
    pub(crate) opened: Opened,
}

/// Opens `count` connections.
pub(crate) fn open_all(site: &Site, count: usize) -> Result<Vec<Opened>, OperationError> {
    (0..count).map(|_| site.open()).collect()
}

/// Repairs what is ordered until nobody can order any more. `bell` is rung for each.
pub(crate) fn repair(site: &Site, orders: &Receiver<usize>, done: &Sender<Repaired>, bell: &Arc<OwnedFd>) {
    let mut wanted = VecDeque::new();
    let mut pause = PAUSE;
    let mut repaired: BTreeMap<usize, Instant> = BTreeMap::new();
    loop {
        let Some(link) = wanted.front().copied() else {
            match orders.recv() {
                Ok(link) => wanted.push_back(link),
                Err(_) => return,
            }
            continue;
        };
        // A server that takes connections and hangs up at once is not asked without end.
        if repaired.get(&link).is_some_and(|at| at.elapsed() < PAUSE_MAX) {
            std::thread::sleep(PAUSE);
        }
        match site.open() {
            Ok(opened) => {
                wanted.pop_front();
                repaired.insert(link, Instant::now());
                pause = PAUSE;
                if done.send(Repaired { link, opened }).is_err() {
                    return;
                }
                // An eventfd is full after 2^64 − 2 repairs.
                let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
            }
            Err(_) => {
                match orders.recv_timeout(pause) {
                    Ok(link) => wanted.push_back(link),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}
