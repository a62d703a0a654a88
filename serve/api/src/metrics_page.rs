//! Metrics of a cluster for scrapers: OpenMetrics by [`metrics`].
//!
//! Values are collected under the lock of the cluster, of a few workloads at a time, and written without it. Counters of
//! requests begin at zero with the controller.

use crate::cluster::Cluster;
use crate::turns::each_workload;
use controller::{
    Controller, DecisionAnswer, HostState, LiveLimit, ObservedVerdict, ServerView, WorkloadObservation,
    WorkloadState,
};
use metrics::prometheus_client::collector::Collector;
use metrics::prometheus_client::encoding::DescriptorEncoder;
use metrics::prometheus_client::registry::Unit;
use metrics::{BucketScale, ExponentialCounts, MetricFamily, encode_version};
use model::Stage;
use std::collections::BTreeMap;
use std::fmt;

/// Servers whose shares are added up under one lock.
const LOCKED_MAX: usize = 50;

/// Values of the text.
#[derive(Debug)]
pub(crate) struct ClusterMetrics {
    workloads: Vec<WorkloadMetrics>,
    agents: Vec<AgentMetrics>,
    /// Shares of each stage that workloads may use for ever, by server and stage.
    promised: Vec<([(&'static str, String); 2], f64)>,
    /// Requests in proxies, by server and place.
    in_proxies: Vec<([(&'static str, String); 2], f64)>,
    /// Numbers of decisions by answer.
    decisions: BTreeMap<&'static str, u64>,
    /// Seconds since 1970.
    certificate_end_s: Option<u64>,
}

#[derive(Debug)]
struct WorkloadMetrics {
    tenant: String,
    name: String,
    latencies: ExponentialCounts,
    /// Percentile of the SLO, in percent.
    percentile: String,
    slo_s: f64,
    bound_s: f64,
    /// Share of requests that may be late.
    budget: f64,
    late: u64,
    beyond_limits: u64,
    beyond_limits_waited_s: f64,
    bytes: u64,
    verdict: ObservedVerdict,
    /// Burn rates by window, seconds.
    burn_rates: Vec<(f64, f64)>,
    /// Bursts that would have held in the last hour over the promised ones, by stage.
    bursts_needed: Vec<(Stage, f64)>,
}

#[derive(Debug)]
struct AgentMetrics {
    host: String,
    age_s: Option<f64>,
    applied: u64,
    wanted: u64,
    warnings: usize,
}

impl ClusterMetrics {
    /// Collects the metrics of a cluster.
    pub(crate) fn collect(cluster: &Cluster) -> Self {
        let now = cluster.instant();
        let scale = BucketScale::new(4);
        let mut workloads = Vec::new();
        each_workload(cluster, None, String::new(), usize::MAX, |controller, id, workload| {
            workloads.push(WorkloadMetrics::new(controller, id, workload, (now, &scale)));
        });
        let mut shares = Vec::new();
        loop {
            let core = cluster.lock();
            let before = shares.len() / Stage::ALL.len();
            shares.extend(core.controller.state().servers().skip(before).take(LOCKED_MAX).flat_map(promised));
            if shares.len() / Stage::ALL.len() < before + LOCKED_MAX {
                break;
            }
        }
        let core = cluster.lock();
        let state = core.controller.state();
        let observations = core.controller.observations();
        let agents = state.hosts().filter(|(_, host)| host.agent.is_some());
        let agent = |(name, host): (&str, &HostState)| AgentMetrics {
            host: name.to_owned(),
            age_s: observations.report_age(name, now).map(|age| age as f64 / 1e9),
            applied: host.applied,
            wanted: state.wanted_epoch(name),
            warnings: host.warnings.len(),
        };
        let place = |server: &str, place: &str| [("server", server.to_owned()), ("place", place.to_owned())];
        Self {
            workloads,
            agents: agents.map(agent).collect(),
            promised: shares,
            in_proxies: observations
                .servers()
                .flat_map(|counts| {
                    [
                        (place(counts.server, "queue"), counts.waiting as f64),
                        (place(counts.server, "server"), counts.outstanding as f64),
                    ]
                })
                .collect(),
            decisions: state.decision_counts().clone(),
            certificate_end_s: cluster.certificate_end_s(),
        }
    }
}

/// Returns the sums of the rates that the latest policy of a server promises, by stage.
fn promised(server: ServerView<'_>) -> Vec<([(&'static str, String); 2], f64)> {
    let share = |stage: Stage| {
        let rates = server.decided.workloads.iter().filter_map(|workload| {
            // A stage may have several limits; the least rate holds for ever.
            let limits = workload.limits.iter().filter(|limit| limit.stage == stage);
            limits.map(|limit| limit.limit.rate).reduce(f64::min)
        });
        ([("server", server.name.to_owned()), ("stage", stage.to_string())], rates.sum())
    };
    Stage::ALL.map(share).to_vec()
}

impl WorkloadMetrics {
    fn new(
        controller: &Controller,
        id: u64,
        workload: &WorkloadState,
        (now, scale): (u64, &BucketScale),
    ) -> Self {
        let observations = controller.observations();
        let mut latencies = ExponentialCounts::new(scale);
        if let Some((buckets, sum_s)) = observations.total_latencies(id) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a time, and not negative"
            )]
            let has_fitted = latencies.add_parts(&buckets, (sum_s * 1e9) as u128);
            debug_assert!(has_fitted, "both have the buckets of proxies");
        }
        let observation = observations.of(controller.state(), id, workload, now);
        let windows = observation.windows.iter();
        Self {
            latencies,
            percentile: workload.slo.percentile.percent().to_string(),
            slo_s: workload.slo.latency.0,
            budget: 1.0 - workload.slo.percentile.fraction(),
            bound_s: observation.bound_s,
            late: observation.total.late,
            beyond_limits: observation.total.beyond_limits,
            beyond_limits_waited_s: observation.total.beyond_limits_waited_s,
            bytes: observation.total.bytes,
            verdict: observation.verdict,
            burn_rates: windows.filter_map(|window| Some((window.window_s, window.burn_rate?))).collect(),
            bursts_needed: bursts_needed(&observation),
            tenant: observation.tenant,
            name: observation.name,
        }
    }

    fn labels(&self) -> [(&'static str, String); 2] {
        [("tenant", self.tenant.clone()), ("workload", self.name.clone())]
    }

    fn labels_and(&self, name: &'static str, value: &str) -> [(&'static str, String); 3] {
        let [tenant, workload] = self.labels();
        [tenant, workload, (name, value.to_owned())]
    }
}

/// Returns the shares of promised bursts that were needed in the last hour, by stage.
fn bursts_needed(observation: &WorkloadObservation) -> Vec<(Stage, f64)> {
    let live = observation.live.iter().flat_map(|live| &live.windows);
    let hour = live.filter(|window| window.window_s == 3600.0);
    let limits: Vec<&LiveLimit> = hour.flat_map(|window| &window.limits).collect();
    let share = |stage: Stage| {
        let own = limits.iter().filter(|limit| limit.stage == stage);
        Some((stage, own.filter_map(|limit| limit.burst_share).reduce(f64::max)?))
    };
    Stage::ALL.into_iter().filter_map(share).collect()
}

impl Collector for ClusterMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_promises(&mut encoder)?;
        self.encode_requests(&mut encoder)?;
        self.encode_verdicts(&mut encoder)?;
        self.encode_agents(&mut encoder)?;
        self.encode_servers(&mut encoder)?;
        encode_version(&mut encoder, env!("CARGO_PKG_VERSION"))
    }
}

impl ClusterMetrics {
    fn encode_promises(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let workloads = || self.workloads.iter();
        let unit = Some(&Unit::Seconds);
        let help = "Latency of the SLO, over all stages";
        let family = MetricFamily { name: "tailwright_controller_slo", help, unit };
        let slo = |of: &WorkloadMetrics| (of.labels_and("percentile", &of.percentile), of.slo_s);
        family.encode_gauges(encoder, workloads().map(slo))?;
        let help = "Latency that the latest policy bounds, over all stages";
        let family = MetricFamily { name: "tailwright_controller_bound", help, unit };
        family.encode_gauges(encoder, workloads().map(|of| (of.labels(), of.bound_s)))?;
        let help = "Share of requests that the SLO allows to be late";
        let ratio = Unit::Other("ratio".to_owned());
        let family = MetricFamily { name: "tailwright_controller_error_budget", help, unit: Some(&ratio) };
        family.encode_gauges(encoder, workloads().map(|of| (of.labels(), of.budget)))
    }

    fn encode_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let help = "From the arrival of requests at proxies to their replies; ends of buckets are 19 % apart";
        let family = MetricFamily { name: "tailwright_controller_request_duration", help, unit };
        family.encode_times(encoder, self.workloads.iter().map(|of| (of.labels(), &of.latencies)))?;
        let total = |value: fn(&WorkloadMetrics) -> f64| {
            self.workloads.iter().map(move |of| (of.labels(), value(of)))
        };
        let help = "Requests that took longer than the SLO allows";
        let family = MetricFamily { name: "tailwright_controller_late_requests", help, unit: None };
        family.encode_sums(encoder, total(|of| of.late as f64))?;
        let help = "Requests that the limits did not cover";
        let family = MetricFamily { name: "tailwright_controller_beyond_limits_requests", help, unit: None };
        family.encode_sums(encoder, total(|of| of.beyond_limits as f64))?;
        let help = "Time that requests beyond the limits waited in proxies";
        let family = MetricFamily { name: "tailwright_controller_beyond_limits_wait", help, unit };
        family.encode_sums(encoder, total(|of| of.beyond_limits_waited_s))?;
        let help = "Bytes that were read and written";
        let unit = Some(&Unit::Bytes);
        let family = MetricFamily { name: "tailwright_controller_request", help, unit };
        family.encode_sums(encoder, total(|of| of.bytes as f64))
    }

    fn encode_verdicts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut verdicts = Vec::new();
        let mut burn_rates = Vec::new();
        for of in &self.workloads {
            for verdict in ObservedVerdict::ALL {
                let is_it = of.verdict == verdict;
                verdicts.push((of.labels_and("verdict", verdict.word()), f64::from(u8::from(is_it))));
            }
            for (window_s, rate) in &of.burn_rates {
                burn_rates.push((of.labels_and("window", &window_name(*window_s)), *rate));
            }
        }
        let help = "1 for the verdict on the promise, 0 for the others";
        let family = MetricFamily { name: "tailwright_controller_verdict", help, unit: None };
        family.encode_gauges(encoder, verdicts)?;
        let bursts = self.workloads.iter().flat_map(|of| {
            of.bursts_needed.iter().map(|(stage, share)| (of.labels_and("stage", stage.name()), *share))
        });
        let help = "Burst that would have held in the last hour at the promised rate, over the promised one";
        let ratio = Unit::Other("ratio".to_owned());
        let family = MetricFamily { name: "tailwright_controller_burst_needed", help, unit: Some(&ratio) };
        family.encode_gauges(encoder, bursts)?;
        let help = "Share of late requests over the share that may be late; none without requests";
        let family = MetricFamily { name: "tailwright_controller_burn_rate", help, unit: None };
        family.encode_gauges(encoder, burn_rates)
    }

    fn encode_agents(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let host = |of: &AgentMetrics| [("host", of.host.clone())];
        let help = "Time since the latest report of the agent; none before the first to this controller";
        let unit = Some(&Unit::Seconds);
        let family = MetricFamily { name: "tailwright_controller_agent_report_age", help, unit };
        family.encode_gauges(encoder, self.agents.iter().filter_map(|of| Some((host(of), of.age_s?))))?;
        let help = "Epoch of the assignment that the host enforces";
        let family = MetricFamily { name: "tailwright_controller_agent_applied_epoch", help, unit: None };
        family.encode_gauges(encoder, self.agents.iter().map(|of| (host(of), of.applied as f64)))?;
        let help = "Epoch of the latest assignment of the host";
        let family = MetricFamily { name: "tailwright_controller_agent_wanted_epoch", help, unit: None };
        family.encode_gauges(encoder, self.agents.iter().map(|of| (host(of), of.wanted as f64)))?;
        let help = "Warnings of the agent, such as of a proxy that cannot be started";
        let family = MetricFamily { name: "tailwright_controller_agent_warnings", help, unit: None };
        family.encode_gauges(encoder, self.agents.iter().map(|of| (host(of), of.warnings as f64)))
    }

    fn encode_servers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let ratio = Unit::Other("ratio".to_owned());
        let help = "Share of the stage that workloads may use for ever by the latest policy";
        let family = MetricFamily { name: "tailwright_controller_promised", help, unit: Some(&ratio) };
        family.encode_gauges(encoder, self.promised.iter().cloned())?;
        let help =
            "Requests without a reply at the latest report, in the queue of the proxy and at the server";
        let family = MetricFamily { name: "tailwright_controller_unanswered_requests", help, unit: None };
        family.encode_gauges(encoder, self.in_proxies.iter().cloned())?;
        let help = "End of the certificate that the controller serves, since 1970";
        let unit = Some(&Unit::Seconds);
        let family = MetricFamily { name: "tailwright_controller_certificate_end_timestamp", help, unit };
        family.encode_gauge(encoder, self.certificate_end_s.map(|end| end as f64))?;
        let help = "Decisions in the history";
        let family = MetricFamily { name: "tailwright_controller_decisions", help, unit: None };
        let count = |answer: &str| self.decisions.get(answer).copied().unwrap_or(0);
        let decisions = DecisionAnswer::WORDS.iter().map(|answer| (answer, count(answer)));
        family.encode_counts(
            encoder,
            "answer",
            decisions.map(|(answer, count)| ((*answer).to_owned(), count)),
        )
    }
}

/// The name of a window in labels, as Prometheus writes durations.
fn window_name(window_s: f64) -> String {
    let minutes = (window_s / 60.0).round();
    if minutes < 60.0 { format!("{minutes}m") } else { format!("{}h", minutes / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_named_as_prometheus_does() {
        assert_eq!([300.0, 1800.0, 3600.0, 21600.0].map(window_name), ["5m", "30m", "1h", "6h"]);
    }
}
