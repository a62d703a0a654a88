//! Checks of an observer at the server on every request that the proxy hands on: no request of a higher
//! level was ready, and its workload keeps its limits.

use super::configuration::{NO_LEVEL, PriorityOrder};
use super::plan::MS;
use super::session::{HandedRequest, ObservedSession};
use super::world::World;

/// Maximum delay between reading a request and queueing it.
const SLACK_NS: u64 = MS;

impl World {
    /// Checks a request that the proxy has just handed to the server.
    pub fn check_handed(&mut self, number: usize, handed: &HandedRequest) {
        if handed.is_added || !handed.request.work.is_data() {
            return;
        }
        if self.checks.are_levels_checked {
            self.check_level(number, handed);
        }
        if self.checks.are_limits_checked {
            self.check_limit(number, handed);
        }
    }

    /// Checks that no request of a higher level was ready.
    fn check_level(&mut self, number: usize, handed: &HandedRequest) {
        let session = &self.sessions[number];
        let level = self.configuration.level(session.network);
        // A streaming or blocked request was dispatched earlier. Loops take orders also for a blocked connection.
        let was_blocked = self.orders_late_ns > 0 && session.blocked_since.is_some();
        let was_late = session.has_streamed || handed.begun_at < self.now || was_blocked;
        let since = self.now.saturating_sub(SLACK_NS);
        let is_ending = self.is_draining || self.is_holding;
        if level == 0 || was_late || session.generation != self.generation || is_ending {
            return;
        }
        let blocked_at = session.blocked_at;
        let overtaken = self.sessions.iter().enumerate().find(|(_, other)| {
            let ready_at = self.ready_request(other, level);
            ready_at.is_some_and(|at| at.max(self.configured_at) < since && blocked_at < at)
        });
        if let Some((other, session)) = overtaken {
            let waited = self.now - self.ready_request(session, level).unwrap_or(self.now);
            let text = format!(
                "level: a request of level {level} (session {number}) went before one of level {} (session {other}) \
                that was ready for {} us",
                self.configuration.level(session.network),
                waited / 1000
            );
            // Both may leave in the same round, in which the order does not matter.
            let confirmed_at = self.now + self.orders_late_ns;
            self.overtaken.push((confirmed_at, other, level, text));
        }
    }

    /// Confirms overtaken requests when the proxy waits, and no order of its last round is on its way to a loop:
    /// those still not handed on were passed over.
    pub fn confirm_overtaken(&mut self) {
        for (confirmed_at, session, level, text) in std::mem::take(&mut self.overtaken) {
            if confirmed_at > self.now {
                self.overtaken.push((confirmed_at, session, level, text));
                continue;
            }
            let since = self.now.saturating_sub(SLACK_NS);
            let is_waiting = self.ready_request(&self.sessions[session], level).is_some_and(|at| at < since);
            if is_waiting {
                self.violate(&text);
            }
        }
    }

    /// Returns the time since when a session has a ready request of a level above this one.
    fn ready_request(&self, session: &ObservedSession, below: u32) -> Option<u64> {
        let own = self.configuration.level(session.network);
        // The third workload may be beyond its limits.
        let is_free = own < below && own < 2;
        // A workload is first in, first out: requests of its odd clients hold up the others.
        let clients = &self.plan.clients;
        let has_odd =
            clients.iter().any(|client| client.network == session.network && !client.style.is_ordinary());
        let is_hindered = has_odd
            || session.is_over
            || session.excuse.is_some()
            || session.has_streamed
            || session.is_blocked
            || (session.is_sharing && (self.is_sharing_blocked() || self.may_change_over(session)))
            || session.deaf_since.is_some()
            || self.has_overdue(session.network)
            || session.generation != self.generation;
        if !is_free || is_hindered {
            return None;
        }
        session
            .held
            .front()
            .filter(|held| held.work.is_data())
            .map(|held| held.read_at.max(session.blocked_at).max(self.sharing_blocked_at(session)))
    }

    /// Returns true if a shared connection accepts no bytes now: it is not known whose they are.
    fn is_sharing_blocked(&self) -> bool {
        self.open_links
            .iter()
            .any(|link| self.links[*link].shared.as_ref().is_some_and(|shared| shared.is_blocked))
    }

    /// Returns true if a sharing session may wait for a connection of its own.
    fn may_change_over(&self, session: &ObservedSession) -> bool {
        let is_same = |other: &&ObservedSession| other.network == session.network;
        session.wants_own || self.sessions.iter().filter(is_same).any(|other| other.has_large_replies)
    }

    fn sharing_blocked_at(&self, session: &ObservedSession) -> u64 {
        if session.is_sharing { self.shared_blocked_at } else { 0 }
    }

    /// Checks the third workload against its limit: the work served since the limit is in force.
    fn check_limit(&mut self, number: usize, handed: &HandedRequest) {
        let session = &self.sessions[number];
        let is_limited = self.configuration.workload(session.network) == Some(2)
            && self.configuration.order != PriorityOrder::Without
            && self.configuration.level(session.network) != NO_LEVEL
            && session.generation == self.generation;
        if !is_limited {
            return;
        }
        let (permille, burst_ms) = self.plan.limit;
        let limited = self.plan.clients.iter().filter(|client| client.network == 2);
        let size_max = limited.map(|client| client.size_max).max().unwrap_or(0);
        let (served, since) = self.limit_level;
        let served = served + self.plan.profiled_ns(handed.request.work.bytes()) as f64;
        self.limit_level.0 = served;
        // A burst, the excess of the largest request over it, and the surprise of gets, whose size only
        // the reply shows, including those that wait with them.
        let largest = self.plan.profiled_ns(size_max.max(64 << 10));
        let excess = 2 * (u64::from(self.plan.outstanding) + 1) * largest;
        let allowed = (self.now - since) as f64 * permille as f64 / 1e3 + (burst_ms * MS + excess) as f64;
        if served > allowed {
            let text = format!(
                "limit: {:.1} ms of device time were served within {:.1} ms, and {:.1} ms are allowed",
                served / 1e6,
                (self.now - since) as f64 / 1e6,
                allowed / 1e6
            );
            self.violate(&text);
        }
    }

    /// Restarts the accounting of limits: a policy has changed, or a proxy has begun.
    pub fn restart_limits(&mut self) {
        self.limit_level = (0.0, self.now);
    }
}
