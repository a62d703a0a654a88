//! Counters of a running proxy for scrapers: OpenMetrics by [`metrics`].
//!
//! A page is cached for half a second, so that any number of scrapers query the proxy at most twice a
//! second. Counters only rise while the proxy runs.

use crate::storage::{ProxiedWorkload, ProxyConfigurator, ProxyMetrics, ProxySnapshot};
use metrics::prometheus_client::collector::Collector;
use metrics::prometheus_client::encoding::DescriptorEncoder;
use metrics::prometheus_client::registry::Unit;
use metrics::{MetricFamily, encode_version};
use model::{Policy, PolicyWorkload};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum age of a page.
const PAGE_AGE_MAX: Duration = Duration::from_millis(500);

/// The page of a proxy, created on demand.
#[derive(Debug)]
pub struct ProxyMetricsPage {
    proxy: ProxyConfigurator,
    server: String,
    last: Mutex<Option<(Instant, String)>>,
}

impl ProxyMetricsPage {
    /// Creates the page of the proxy before the server with this name.
    pub fn new(proxy: ProxyConfigurator, server: &str) -> Self {
        Self { proxy, server: server.to_owned(), last: Mutex::new(None) }
    }

    /// Returns the text for a scraper; the last one after the proxy has ended, or one without metrics.
    pub fn text(&self) -> String {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|(made, _)| made.elapsed() > PAGE_AGE_MAX)
            && let Ok(counted) = self.proxy.handle().metrics()
        {
            let policy = self.proxy.current().policy;
            let promises = policy.map_or_else(Vec::new, |policy| promises_at(&policy, &self.server));
            let counted = counted.with_workloads(promises.iter().map(|promise| promise.workload.as_str()));
            let text = metrics::exposition(ProxyCollector { counted, promises });
            *last = Some((Instant::now(), text));
        }
        last.as_ref().map_or_else(|| "# EOF\n".to_owned(), |(_, text)| text.clone())
    }
}

/// Promise of a policy to a workload.
#[derive(Debug, Clone)]
struct WorkloadPromise {
    workload: String,
    /// Percentile of the SLO, in percent.
    percentile: String,
    slo_s: f64,
    bound_s: Option<f64>,
}

fn promises_at(policy: &Policy, server: &str) -> Vec<WorkloadPromise> {
    let is_here =
        |workload: &&PolicyWorkload| workload.admitted && workload.server.as_deref() == Some(server);
    let promise = |workload: &PolicyWorkload| WorkloadPromise {
        workload: workload.name.clone(),
        percentile: workload.slo.percentile.percent().to_string(),
        slo_s: workload.slo.latency.0,
        bound_s: workload.bound_s,
    };
    policy.workloads.iter().filter(is_here).map(promise).collect()
}

/// Source data of the text.
#[derive(Debug)]
struct ProxyCollector {
    counted: ProxyMetrics,
    promises: Vec<WorkloadPromise>,
}

impl Collector for ProxyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_times(&mut encoder)?;
        self.encode_workloads(&mut encoder)?;
        self.encode_promises(&mut encoder)?;
        self.encode_proxy(&mut encoder)?;
        encode_version(&mut encoder, env!("CARGO_PKG_VERSION"))
    }
}

fn label(workload: &str) -> [(&'static str, String); 1] {
    [("workload", workload.to_owned())]
}

impl ProxyCollector {
    fn encode_times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let times = || self.counted.times.iter();
        let unit = Some(&Unit::Seconds);
        let help = "From the arrival of reads and writes to their answers; ends of buckets are 19 % apart";
        let family = MetricFamily { name: "tailwright_proxy_request_duration", help, unit };
        family.encode_times(encoder, times().map(|of| (label(&of.workload), &of.answered)))?;
        let help = "The part of it before they went to the server; ends of buckets are a factor of 2 apart";
        let family = MetricFamily { name: "tailwright_proxy_wait_duration", help, unit };
        family.encode_times(encoder, times().map(|of| (label(&of.workload), &of.waited)))
    }

    fn encode_workloads(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counts = |count: fn(&ProxiedWorkload) -> u64| {
            let one = |seen: &ProxiedWorkload| (seen.workload.clone(), count(seen));
            self.counted.snapshot.workloads.iter().map(one).collect::<Vec<_>>()
        };
        let name = "tailwright_proxy_request";
        let help = "Bytes that were read and written";
        let family = MetricFamily { name, help, unit: Some(&Unit::Bytes) };
        family.encode_counts(encoder, "workload", counts(|seen| seen.bytes))?;
        let name = "tailwright_proxy_control_requests";
        let help = "Requests that neither read nor write";
        let family = MetricFamily { name, help, unit: None };
        family.encode_counts(encoder, "workload", counts(|seen| seen.control))?;
        let help = "Best-effort requests that are larger than bounds count";
        let family = MetricFamily { name: "tailwright_proxy_uncounted_requests", help, unit: None };
        family.encode_counts(encoder, "workload", counts(|seen| seen.unexpected))
    }

    fn encode_promises(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let help = "The SLO that the policy has for the workload, over all stages";
        let family = MetricFamily { name: "tailwright_proxy_slo", help, unit };
        let slo = |of: &WorkloadPromise| {
            ([("workload", of.workload.clone()), ("percentile", of.percentile.clone())], of.slo_s)
        };
        family.encode_gauges(encoder, self.promises.iter().map(slo))?;
        let help = "The latency that the policy bounds, over all stages";
        let family = MetricFamily { name: "tailwright_proxy_bound", help, unit };
        let bound = |of: &WorkloadPromise| of.bound_s.map(|bound| (label(&of.workload), bound));
        family.encode_gauges(encoder, self.promises.iter().filter_map(bound))
    }

    fn encode_proxy(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let ProxySnapshot {
            connections,
            cut,
            turned_away,
            waiting,
            outstanding,
            buffered_bytes,
            released,
            changes,
            ..
        } = &self.counted.snapshot;
        for (name, help, value) in [
            ("tailwright_proxy_connections", "Connections of clients that are open", connections),
            ("tailwright_proxy_waiting_requests", "Requests that wait in the proxy", waiting),
            ("tailwright_proxy_outstanding_requests", "Requests at the device of the server", outstanding),
        ] {
            MetricFamily { name, help, unit: None }.encode_gauge(encoder, Some(*value as f64))?;
        }
        let name = "tailwright_proxy_held";
        let help = "Bytes of requests and answers that the proxy holds";
        MetricFamily { name, help, unit: Some(&Unit::Bytes) }
            .encode_gauge(encoder, Some(*buffered_bytes as f64))?;
        for (name, help, value) in [
            ("tailwright_proxy_cut_connections", "Connections that were cut off", cut),
            ("tailwright_proxy_refused_connections", "Connections beyond the greatest number", turned_away),
            (
                "tailwright_proxy_released_requests",
                "Requests that took too long to count as outstanding",
                released,
            ),
            ("tailwright_proxy_policy_changes", "How often the policy was changed", changes),
        ] {
            MetricFamily { name, help, unit: None }.encode_count(encoder, *value)?;
        }
        Ok(())
    }
}
