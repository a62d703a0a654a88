//! Metrics of a cluster for scrapers: OpenMetrics by [`metrics`].
//!
//! Values are collected under the lock of the cluster, and written without it. Counters of requests begin at zero with the
//! controller.

use controller::{Controller, DecisionAnswer, ObservedVerdict, ServerView, WorkloadObservation};
use metrics::prometheus_client::collector::Collector;
use metrics::prometheus_client::encoding::DescriptorEncoder;
use metrics::prometheus_client::registry::Unit;
use metrics::{BucketScale, ExponentialCounts, MetricFamily, encode_version};
use model::Stage;
use std::fmt;

/// Answers of decisions.
const ANSWERS: [&str; 4] = ["admitted", "refused", "removed", "withdrawn"];

/// Values of the text.
#[derive(Debug)]
pub(crate) struct ClusterMetrics {
    workloads: Vec<WorkloadMetrics>,
    agents: Vec<AgentMetrics>,
    /// Shares of each stage that workloads may use for ever, by server and stage.
    promised: Vec<([(&'static str, String); 2], f64)>,
    /// Requests in proxies, by server and place.
    in_proxies: Vec<([(&'static str, String); 2], f64)>,
    decisions: [u64; 4],
}

#[derive(Debug)]
struct WorkloadMetrics {
    observation: WorkloadObservation,
    latencies: ExponentialCounts,
    /// Percentile of the SLO, in percent.
    percentile: String,
    slo_s: f64,
    /// Share of requests that may be late.
    budget: f64,
}

#[derive(Debug)]
struct AgentMetrics {
    host: String,
    age_s: Option<f64>,
    applied: u64,
    wanted: u64,
}

/// Collects the metrics at an instant of the controller's observations.
pub(crate) fn metrics_page(controller: &Controller, now: u64) -> ClusterMetrics {
    let state = controller.state();
    let observations = controller.observations();
    let scale = BucketScale::new(4);
    let workload = |(id, workload): (u64, &controller::WorkloadState)| {
        let mut latencies = ExponentialCounts::new(&scale);
        if let Some((buckets, sum_s)) = observations.total_latencies(id) {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a time, and not negative"
            )]
            let has_fitted = latencies.add_parts(&buckets, (sum_s * 1e9) as u128);
            debug_assert!(has_fitted, "both have the buckets of proxies");
        }
        WorkloadMetrics {
            observation: observations.of(id, workload, now),
            latencies,
            percentile: workload.slo.percentile.percent().to_string(),
            slo_s: workload.slo.latency.0,
            budget: 1.0 - workload.slo.percentile.fraction(),
        }
    };
    let agents = state.hosts().filter(|(_, host)| host.agent.is_some());
    let agent = |(name, host): (&str, &controller::HostState)| AgentMetrics {
        host: name.to_owned(),
        age_s: observations.report_age(name, now).map(|age| age as f64 / 1e9),
        applied: host.applied,
        wanted: state.wanted_epoch(name),
    };
    let mut decisions = [0; 4];
    for decision in state.decisions_after(0) {
        decisions[match decision.answer {
            DecisionAnswer::Admitted { .. } => 0,
            DecisionAnswer::Refused { .. } => 1,
            DecisionAnswer::Removed => 2,
            DecisionAnswer::Withdrawn { .. } => 3,
        }] += 1;
    }
    let place = |server: &str, place: &str| [("server", server.to_owned()), ("place", place.to_owned())];
    ClusterMetrics {
        workloads: state.workloads().map(workload).collect(),
        agents: agents.map(agent).collect(),
        promised: state.servers().flat_map(promised).collect(),
        in_proxies: observations
            .servers()
            .flat_map(|counts| {
                [
                    (place(counts.server, "queue"), counts.waiting as f64),
                    (place(counts.server, "server"), counts.outstanding as f64),
                ]
            })
            .collect(),
        decisions,
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
    fn labels(&self) -> [(&'static str, String); 2] {
        let WorkloadObservation { tenant, name, .. } = &self.observation;
        [("tenant", tenant.clone()), ("workload", name.clone())]
    }

    fn labels_and(&self, name: &'static str, value: &str) -> [(&'static str, String); 3] {
        let [tenant, workload] = self.labels();
        [tenant, workload, (name, value.to_owned())]
    }
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
        family.encode_gauges(encoder, workloads().map(|of| (of.labels(), of.observation.bound_s)))?;
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
        let total = |value: fn(&WorkloadObservation) -> f64| {
            self.workloads.iter().map(move |of| (of.labels(), value(&of.observation)))
        };
        let help = "Requests that took longer than the SLO allows";
        let family = MetricFamily { name: "tailwright_controller_late_requests", help, unit: None };
        family.encode_sums(encoder, total(|of| of.total.late as f64))?;
        let help = "Requests that the limits did not cover";
        let family = MetricFamily { name: "tailwright_controller_beyond_limits_requests", help, unit: None };
        family.encode_sums(encoder, total(|of| of.total.beyond_limits as f64))?;
        let help = "Time that requests beyond the limits waited in proxies";
        let family = MetricFamily { name: "tailwright_controller_beyond_limits_wait", help, unit };
        family.encode_sums(encoder, total(|of| of.total.beyond_limits_waited_s))?;
        let help = "Bytes that were read and written";
        let unit = Some(&Unit::Bytes);
        let family = MetricFamily { name: "tailwright_controller_request", help, unit };
        family.encode_sums(encoder, total(|of| of.total.bytes as f64))
    }

    fn encode_verdicts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut verdicts = Vec::new();
        let mut burn_rates = Vec::new();
        for of in &self.workloads {
            for verdict in ObservedVerdict::ALL {
                let is_it = of.observation.verdict == verdict;
                verdicts.push((of.labels_and("verdict", verdict.word()), f64::from(u8::from(is_it))));
            }
            for window in &of.observation.windows {
                if let Some(rate) = window.burn_rate {
                    burn_rates.push((of.labels_and("window", &window_name(window.window_s)), rate));
                }
            }
        }
        let help = "1 for the verdict on the promise, 0 for the others";
        let family = MetricFamily { name: "tailwright_controller_verdict", help, unit: None };
        family.encode_gauges(encoder, verdicts)?;
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
        family.encode_gauges(encoder, self.agents.iter().map(|of| (host(of), of.wanted as f64)))
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
        let help = "Decisions in the history";
        let family = MetricFamily { name: "tailwright_controller_decisions", help, unit: None };
        let decisions = ANSWERS.iter().zip(self.decisions);
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
