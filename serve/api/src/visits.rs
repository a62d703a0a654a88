//! Sessions of browsers, and streams that clients hold open: both bounded for each token.

use crate::limits::{SESSION, VISITS_MAX};
use crate::secret::{hash_of_secret, new_secret};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sessions and streams. They are in memory: a restart of the controller ends them.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// By the hash of the secret that the browser has.
    sessions: Mutex<BTreeMap<String, Session>>,
    /// Number of streams by hash of token.
    streams: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// A browser that signed in.
#[derive(Debug, Clone)]
struct Session {
    /// Hash of its token. A revoked token thus ends it.
    token: String,
    ends: Instant,
}

/// The right to an open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Mutex<BTreeMap<String, usize>>>,
    token: String,
}

impl Visits {
    /// Begins a session for a token, and returns its secret. Of too many sessions of one token the oldest ends.
    pub(crate) fn begin(&self, token: &str) -> io::Result<String> {
        let secret = new_secret()?;
        let now = Instant::now();
        let mut sessions = unpoisoned(&self.sessions);
        sessions.retain(|_, session| session.ends > now);
        let own = || sessions.iter().filter(|(_, session)| session.token == token);
        if own().count() >= VISITS_MAX {
            let oldest = own().min_by_key(|(_, session)| session.ends).map(|(hash, _)| hash.clone());
            oldest.and_then(|hash| sessions.remove(&hash));
        }
        sessions.insert(hash_of_secret(&secret), Session { token: token.to_owned(), ends: now + SESSION });
        Ok(secret)
    }

    /// Returns the hash of the token of a session.
    pub(crate) fn token_of(&self, secret: &str) -> Option<String> {
        let sessions = unpoisoned(&self.sessions);
        let session = sessions.get(&hash_of_secret(secret))?;
        (session.ends > Instant::now()).then(|| session.token.clone())
    }

    /// Ends a session.
    pub(crate) fn end(&self, secret: &str) {
        unpoisoned(&self.sessions).remove(&hash_of_secret(secret));
    }

    /// Counts a stream of a token; `None` if it has too many.
    pub(crate) fn stream(&self, token: &str) -> Option<StreamPermit> {
        let mut streams = unpoisoned(&self.streams);
        let count = streams.entry(token.to_owned()).or_default();
        if *count >= VISITS_MAX {
            return None;
        }
        *count += 1;
        drop(streams);
        Some(StreamPermit { streams: Arc::clone(&self.streams), token: token.to_owned() })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = unpoisoned(&self.streams);
        if let Some(count) = streams.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.token);
            }
        }
    }
}

/// Each change is complete before anything can panic.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_cannot_end_sessions_of_another() {
        let visits = Visits::default();
        let kept = visits.begin("operator").expect("random numbers");
        let first = visits.begin("tenant").expect("random numbers");
        for _ in 0..VISITS_MAX {
            visits.begin("tenant").expect("random numbers");
        }
        assert_eq!(visits.token_of(&kept).as_deref(), Some("operator"));
        assert_eq!(visits.token_of(&first), None, "the oldest has ended");
        visits.end(&kept);
        assert_eq!(visits.token_of(&kept), None);
    }

    #[test]
    fn streams_of_a_token_are_counted() {
        let visits = Visits::default();
        let held: Vec<_> = (0..VISITS_MAX).map(|_| visits.stream("a").expect("room")).collect();
        assert!(visits.stream("a").is_none());
        assert!(visits.stream("b").is_some());
        drop(held);
        assert!(visits.stream("a").is_some());
    }
}
