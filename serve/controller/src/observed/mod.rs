//! Verdicts on promises, from the counters that agents report.
//!
//! **Nothing is counted twice.** Proxies count from their start, and agents report the counters themselves, so that a
//! lost report is made up for by the next. [`ledger`] takes differences: of counters with the same identity, or from
//! zero after a proxy has started anew. The first counters that a controller sees of a server are the point from which
//! it counts. Requests that a proxy answered after its last report and before its end are never counted.
//!
//! **Verdicts are those of `verify`.** The requests of the last hour are judged by [`verify::judge_counted`], in periods
//! of a minute or less. So are requests beyond the limits: bounds do not cover them, and when their share is above the
//! error budget, the workload outgrows what it asked for.
//!
//! **Limits that would hold** follow from burst curves of what clients really send ([`live`]).
//!
//! Everything here is memory of one run of the controller and bounded for each workload. Only changes of verdicts and of
//! alerts on burn rates ([`burn`]) are events.

mod burn;
mod counts;
mod latencies;
mod ledger;
mod live;
pub(crate) mod live_limits;
mod record;
mod verdict;
mod view;

pub use burn::BurnAlert;
pub use latencies::LatencyBucket;
pub use live_limits::{LiveLimit, LiveTraffic, LiveWindow, NormalisedCurves};
pub use verdict::ObservedVerdict;
pub use view::{ServerCounts, WindowObservation, WorkloadObservation};

use crate::alert::AlertState;
use crate::event::Event;
use crate::state::ClusterState;
use agent::ServerObservation;
use burn::Burn;
use ledger::ServerLedger;
use live::CurveLedger;
use record::WorkloadRecord;
use std::collections::BTreeMap;
use workload::live::CurveMark;

/// Least time between two verdict events of a workload, and between two events of an alert on it.
const EVENT_INTERVAL_NS: u64 = 60_000_000_000;

/// Observations of all workloads. Instants are nanoseconds of a clock of the caller that never goes back.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    servers: BTreeMap<String, ServerLedger>,
    /// Burst curves that were read, by server.
    curves: BTreeMap<String, CurveLedger>,
    workloads: BTreeMap<u64, WorkloadRecord>,
    /// Instant of the latest report of each host.
    reported: BTreeMap<String, u64>,
}

impl Observations {
    /// Adds the counters of a report of `host`. Counters of servers of other hosts are ignored. Returns verdicts and
    /// alerts that have changed.
    pub(crate) fn add(
        &mut self,
        state: &ClusterState,
        host: &str,
        observations: &[ServerObservation],
        now: u64,
    ) -> Vec<Event> {
        self.reported.insert(host.to_owned(), now);
        self.servers.retain(|server, _| state.servers.contains_key(server));
        self.curves.retain(|server, _| state.servers.contains_key(server));
        self.workloads.retain(|id, _| state.workload(*id).is_some_and(|workload| workload.gone.is_none()));
        let mut changed = Vec::new();
        for observation in observations {
            let server = &observation.server;
            if state.servers.get(server).is_none_or(|server| server.host != host) {
                continue;
            }
            self.add_curves(state, observation, now);
            let ledger = self.servers.entry(server.clone()).or_default();
            let since = ledger.read_at.unwrap_or(now);
            for (name, increment) in ledger.read(observation, now) {
                let Some(id) = state.present.get(&name) else { continue };
                if state.workloads[id].server != *server {
                    continue;
                }
                let record = self.workloads.entry(*id).or_insert_with(|| WorkloadRecord::new(since));
                record.add(now, &increment);
                changed.extend(self.verdict_event(state, *id, now));
                changed.extend(self.burn_events(state, *id, now));
            }
        }
        changed
    }

    /// Adds the burst curves of a server that were not read before.
    fn add_curves(&mut self, state: &ClusterState, observation: &ServerObservation, now: u64) {
        let ServerObservation { server, curves: Some(report), .. } = observation else { return };
        let (life, chunks) = self.curves.entry(server.clone()).or_default().read(report);
        for chunk in chunks {
            let Some(id) = state.present.get(&chunk.workload) else { continue };
            if state.workloads[id].server == *server {
                let record = self.workloads.entry(*id).or_insert_with(|| WorkloadRecord::new(now));
                record.live.add(now, life, &chunk.curves);
            }
        }
    }

    /// Returns the burst curves of a host's servers that were read.
    pub(crate) fn curves_read(&self, state: &ClusterState, host: &str) -> BTreeMap<String, CurveMark> {
        let is_own = |server: &String| state.servers.get(server).is_some_and(|server| server.host == host);
        let own = self.curves.iter().filter(|(server, _)| is_own(server));
        own.map(|(server, ledger)| (server.clone(), ledger.mark.clone())).collect()
    }

    /// Returns the event of a verdict that is certain and other than the recorded one.
    fn verdict_event(&mut self, state: &ClusterState, id: u64, now: u64) -> Option<Event> {
        let record = self.workloads.get_mut(&id)?;
        if record.told_at.is_some_and(|told| now < told + EVENT_INTERVAL_NS) {
            return None;
        }
        let workload = state.workload(id)?;
        let judged = verdict::judge_record(record, workload.slo, now);
        if !judged.verdict.is_certain() || workload.verdict == Some(judged.verdict) {
            return None;
        }
        record.told_at = Some(now);
        let live = LiveTraffic::of(&record.live, state, workload, now);
        let needed = live.and_then(|live| live.limits_needed());
        Some(Event::VerdictChanged {
            workload: id,
            tenant: workload.request.tenant.clone(),
            name: workload.request.name.clone(),
            verdict: judged.verdict,
            reason: judged.reason(workload.slo, needed.as_deref()),
        })
    }

    /// Returns the events of alerts on the burn rate that begin or end. After a start of the controller none ends before all
    /// of its short window is known.
    fn burn_events(&mut self, state: &ClusterState, id: u64, now: u64) -> Vec<Event> {
        let Some((workload, record)) = state.workload(id).zip(self.workloads.get_mut(&id)) else {
            return Vec::new();
        };
        let mut events = Vec::new();
        for (index, alert) in BurnAlert::ALL.into_iter().enumerate() {
            let is_firing = workload.burns.contains(&alert);
            if record.burns_told_at[index].is_some_and(|told| now < told + EVENT_INTERVAL_NS) {
                continue;
            }
            let burn = Burn::new(alert, record, workload.slo, now);
            if burn.fires() == is_firing || (is_firing && !burn.knows_short) {
                continue;
            }
            record.burns_told_at[index] = Some(now);
            events.push(Event::BurnChanged {
                workload: id,
                tenant: workload.request.tenant.clone(),
                name: workload.request.name.clone(),
                burn: alert,
                state: if is_firing { AlertState::Resolved } else { AlertState::Firing },
                reason: burn.reason(),
            });
        }
        events
    }

    /// Returns the time since the latest report of a host, nanoseconds; `None` without any in this run.
    pub fn report_age(&self, host: &str, now: u64) -> Option<u64> {
        self.reported.get(host).map(|at| now.saturating_sub(*at))
    }
}
