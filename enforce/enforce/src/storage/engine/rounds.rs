//! The share of a round that each connection gets.
//!
//! A round does a bounded amount of work, so that an event never waits long for the next round. Events that a
//! round leaves are reported again: readiness is level-triggered. Of many events those of high priority come
//! first; a quarter of the work is for the connections that have waited for longest, whatever their priority.

use super::super::round_work::{EVENT_WORK, EventRank, ROUND_WORK};
use super::super::system::{StreamRole, System, SystemEvent};
use super::ProxyEngine;

/// Work that goes by priority.
const WORK_BY_LEVEL: usize = ROUND_WORK / 4 * 3;
/// Number of events that are handled in any order.
const FEW_EVENTS: usize = 4;
/// Level of connections without a guarantee, and of new ones, which come before these.
const NO_LEVEL: u32 = u32::MAX;
const NEW_LEVEL: u32 = u32::MAX - 1;

impl<S: System> ProxyEngine<S> {
    /// Handles events, as many as fit into a round.
    pub(super) fn handle_events(&mut self, events: &mut Vec<SystemEvent>) {
        self.rounds += 1;
        self.work = 0;
        if events.len() <= FEW_EVENTS {
            for event in events.drain(..) {
                self.handle_event(event);
            }
            return;
        }
        let mut ranked = std::mem::take(&mut self.ranked);
        for event in events.drain(..) {
            match self.rank(&event) {
                Some(rank) => ranked.push((rank, event)),
                None => self.handle_event(event),
            }
        }
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        let handled = self.handle_until(WORK_BY_LEVEL, &ranked);
        let rest = &mut ranked[handled..];
        rest.sort_unstable_by_key(|((_, round), _)| *round);
        self.handle_until(ROUND_WORK, rest);
        ranked.clear();
        self.ranked = ranked;
    }

    /// Handles events until the round has done this much work. Returns their number.
    fn handle_until(&mut self, work: usize, ranked: &[(EventRank, SystemEvent)]) -> usize {
        let mut handled = 0;
        while self.work < work && handled < ranked.len() {
            self.handle_event(ranked[handled].1);
            handled += 1;
        }
        handled
    }

    /// Returns the order of an event; `None` if it is handled in any case.
    fn rank(&self, event: &SystemEvent) -> Option<EventRank> {
        match event {
            SystemEvent::Orders => None,
            SystemEvent::Incoming(_) => Some((NEW_LEVEL, self.accepted_in)),
            SystemEvent::Stream { token, .. } => {
                let (flow, round) = if token.role == StreamRole::Shared {
                    self.pool.rank(token)?
                } else {
                    let session = &self.sessions.get(token.slot as usize)?.session;
                    (session.flow, session.round)
                };
                let rules = self.shared.enforced.rules.flows.get(&flow);
                Some((rules.map_or(NO_LEVEL, |rules| rules.level), round))
            }
        }
    }

    /// Counts the work of an event of a session, and of the writes that follow.
    pub(super) fn count_work(&mut self, slot: usize) {
        self.work += EVENT_WORK;
        if let Some(entry) = self.sessions.get_mut(slot) {
            entry.session.round = self.rounds;
            self.work += entry.session.pending_output();
        }
    }
}
