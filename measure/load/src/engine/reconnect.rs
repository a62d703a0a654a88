//! Sets up the connections of a workload, and lost ones again, in a thread of its own, so that the timing thread never
//! waits.

use crate::setup::{Connector, ReadyConnection};
use model::OperationError;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// The pause after a failed attempt, which doubles with every further failure up to the longest one.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// A connection that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedConnection {
    /// Its position among the connections of the run.
    pub(crate) slot: usize,
    /// True if the connection ended because it had taken all its requests; false if it was lost.
    pub(crate) is_spent: bool,
}

/// A connection that was set up again.
pub(crate) struct Reconnected {
    /// The connection that it replaces.
    pub(crate) ended: EndedConnection,
    pub(crate) connection: ReadyConnection,
}

/// Sets up `count` connections.
pub(crate) fn connect_all(
    connector: &Connector,
    count: usize,
) -> Result<Vec<ReadyConnection>, OperationError> {
    (0..count).map(|_| connector.connect()).collect()
}

/// Sets up a replacement for each connection from `lost`, until all senders are dropped. Sends it to
/// `reconnected`, and wakes the timing thread through the eventfd `waker`.
pub(crate) fn reconnect_lost(
    connector: &Connector,
    lost: &Receiver<EndedConnection>,
    reconnected: &Sender<Reconnected>,
    waker: &OwnedFd,
) {
    let mut queue = VecDeque::new();
    let mut pause = PAUSE;
    let mut last_success: BTreeMap<usize, Instant> = BTreeMap::new();
    loop {
        let Some(ended) = queue.front().copied() else {
            match lost.recv() {
                Ok(ended) => queue.push_back(ended),
                Err(_) => return,
            }
            continue;
        };
        // A server that accepts connections and closes them at once must not be flooded with attempts.
        let was_just_made = last_success.get(&ended.slot).is_some_and(|at| at.elapsed() < PAUSE_MAX);
        if was_just_made && !ended.is_spent {
            std::thread::sleep(PAUSE);
        }
        match connector.connect() {
            Ok(connection) => {
                queue.pop_front();
                last_success.insert(ended.slot, Instant::now());
                pause = PAUSE;
                if reconnected.send(Reconnected { ended, connection }).is_err() {
                    return;
                }
                // This fails only if the counter of the eventfd would exceed 2⁶⁴ − 2.
                let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
            }
            Err(_) => {
                match lost.recv_timeout(pause) {
                    Ok(ended) => queue.push_back(ended),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}
