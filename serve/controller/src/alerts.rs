//! Alerts of a cluster, as its history changes.

use crate::alert::{Alert, AlertKind, AlertState};
use crate::observed::{BurnAlert, ObservedVerdict};
use crate::state::ClusterState;

impl ClusterState {
    /// Returns changes of alerts after a position, and true if some of these were forgotten: the
    /// oldest first, all of one event together, at most `limit` events.
    pub fn alerts_after(&self, seq: u64, limit: usize) -> (Vec<Alert>, bool) {
        self.alerts.after(seq, limit)
    }

    /// Notes a change of an alert on a host, or on the controller itself.
    pub(crate) fn alert_on(
        &mut self,
        at_ns: u64,
        alert: AlertKind,
        state: AlertState,
        (host, reason): (Option<&str>, &str),
    ) {
        let host = host.map(str::to_owned);
        let reason = reason.to_owned();
        let seq = self.seq;
        self.alerts.push(Alert { seq, at_ns, alert, state, tenant: None, workload: None, host, reason });
    }

    /// Notes that the verdict on a workload changed; to none when it leaves.
    pub(crate) fn alert_on_verdict(
        &mut self,
        at_ns: u64,
        (tenant, name): (&str, &str),
        (before, now): (Option<ObservedVerdict>, Option<ObservedVerdict>),
        reason: &str,
    ) {
        let of = |verdict: Option<ObservedVerdict>| verdict.and_then(alert_of);
        let changes = [(of(before), AlertState::Resolved), (of(now), AlertState::Firing)];
        for (alert, state) in changes {
            let Some(alert) = alert.filter(|_| of(before) != of(now)) else { continue };
            self.alert_on_workload(at_ns, (tenant, name), (alert, state), reason);
        }
    }

    /// Notes that an alert on the burn rate of a workload changed.
    pub(crate) fn alert_on_burn(
        &mut self,
        at_ns: u64,
        subject: (&str, &str),
        (burn, state): (BurnAlert, AlertState),
        reason: &str,
    ) {
        let alert = match burn {
            BurnAlert::Fast => AlertKind::BudgetBurnsFast,
            BurnAlert::Slow => AlertKind::BudgetBurnsSlowly,
        };
        self.alert_on_workload(at_ns, subject, (alert, state), reason);
    }

    fn alert_on_workload(
        &mut self,
        at_ns: u64,
        (tenant, name): (&str, &str),
        (alert, state): (AlertKind, AlertState),
        reason: &str,
    ) {
        let seq = self.seq;
        let tenant = Some(tenant.to_owned());
        let workload = Some(name.to_owned());
        let reason = reason.to_owned();
        self.alerts.push(Alert { seq, at_ns, alert, state, tenant, workload, host: None, reason });
    }

    /// Ends the alerts on a workload that has no place any more.
    pub(crate) fn end_alerts_on(&mut self, at_ns: u64, id: u64, reason: &str) {
        let Some(workload) = self.workloads.get_mut(&id) else { return };
        let verdict = workload.verdict;
        let burns = std::mem::take(&mut workload.burns);
        let request = workload.request.clone();
        let subject = (request.tenant.as_str(), request.name.as_str());
        self.alert_on_verdict(at_ns, subject, (verdict, None), reason);
        for burn in burns {
            self.alert_on_burn(at_ns, subject, (burn, AlertState::Resolved), reason);
        }
    }
}

fn alert_of(verdict: ObservedVerdict) -> Option<AlertKind> {
    match verdict {
        ObservedVerdict::NotMet => Some(AlertKind::SloMissed),
        ObservedVerdict::Outgrows => Some(AlertKind::LimitsOutgrown),
        ObservedVerdict::NoData | ObservedVerdict::TooFew | ObservedVerdict::Met => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::ALERTS_MAX;

    #[test]
    fn a_slow_reader_is_told_that_changes_were_forgotten() {
        let mut state = ClusterState::default();
        for seq in 1..=ALERTS_MAX as u64 + 2 {
            state.seq = seq;
            state.alert_on(7, AlertKind::CertificateEnds, AlertState::Firing, (None, "soon"));
        }
        let (alerts, has_missed) = state.alerts_after(0, 3);
        assert_eq!(
            (alerts.iter().map(|alert| alert.seq).collect::<Vec<_>>(), has_missed),
            (vec![3, 4, 5], true)
        );
        assert!(!state.alerts_after(2, 1).1);
        assert!(state.alerts_after(ALERTS_MAX as u64 + 2, 3).0.is_empty());
    }

    #[test]
    fn a_verdict_that_changes_ends_one_alert_and_begins_another() {
        use ObservedVerdict::{Met, NotMet, Outgrows};
        let mut state = ClusterState::default();
        let verdicts =
            [None, Some(Met), Some(Outgrows), Some(NotMet), Some(NotMet), Some(Met), Some(Outgrows), None];
        for pair in verdicts.windows(2) {
            state.seq += 1;
            state.alert_on_verdict(7, ("shop", "mail"), (pair[0], pair[1]), "so it is");
        }
        let (alerts, _) = state.alerts_after(0, 100);
        let seen: Vec<_> = alerts.iter().map(|alert| (alert.seq, alert.alert, alert.state)).collect();
        use AlertKind::{LimitsOutgrown, SloMissed};
        use AlertState::{Firing, Resolved};
        let expected = [
            (2, LimitsOutgrown, Firing),
            (3, LimitsOutgrown, Resolved),
            (3, SloMissed, Firing),
            (5, SloMissed, Resolved),
            (6, LimitsOutgrown, Firing),
            (7, LimitsOutgrown, Resolved),
        ];
        assert_eq!(seen, expected);
        let (some, _) = state.alerts_after(2, 1);
        assert_eq!(some.len(), 2, "changes of one event stay together");
    }
}
