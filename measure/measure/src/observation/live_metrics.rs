//! What a running observation counts, for scrapers: OpenMetrics by [`metrics`].
//!
//! The observer counts for itself and hands over copies, so that a scraper never makes it wait. Counters only rise, for as
//! long as the program runs. With Σ X·T of each stage and the sums of its times, shares of the variance of any range of
//! time can be computed where metrics are stored: with n requests, the share of a stage is
//! (n·ΣXT − ΣX·ΣT) ÷ (n·ΣT² − (ΣT)²), where ΣT and ΣT² are the sums of ΣX and of ΣXT over all stages.

use crate::observation::counter_families::{FAMILIES, GrownCounters};
use crate::observation::finding::Finding;
use crate::observation::finding_families::{FINDING_HELP, finding_gauges, finding_labels};
use metrics::prometheus_client::collector::Collector;
use metrics::prometheus_client::encoding::DescriptorEncoder;
use metrics::prometheus_client::registry::Unit;
use metrics::{BucketScale, ExponentialCounts, MetricFamily, encode_version};
use observe::{
    JoinCounts, MeasuredCost, ObservationProgress, ObservedRequest, RequestQuality, STAGE_NAMES, STAGES,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Buckets of latencies per factor of two: neighbours are 19 % apart.
const LATENCY_BUCKETS: u32 = 4;

/// Buckets of times in stages per factor of two: neighbours are a factor of 2 apart.
const STAGE_BUCKETS: u32 = 1;

/// What is said of skipped runs, without a full stop.
pub(super) const SKIPPED_RUNS_HELP: &str =
    "Runs of BPF programs that the kernel skipped; up to as many events are missing";

/// The counters of an observation.
#[derive(Debug, Clone)]
pub(super) struct ObservationCounters {
    ports: BTreeMap<u16, PortMetrics>,
    latency_scale: BucketScale,
    stage_scale: BucketScale,
    counts: JoinCounts,
    doubts: Vec<(&'static str, u64)>,
    events: u64,
    lost_events: u64,
    skipped_runs: u64,
    cost: Option<MeasuredCost>,
    process_cpu_ns: u64,
    kernel: GrownCounters,
}

/// What is counted for a port.
#[derive(Debug, Clone)]
struct PortMetrics {
    latency: ExponentialCounts,
    stages: [ExponentialCounts; STAGES],
    /// Σ X·T of each stage, in square nanoseconds.
    products: [u128; STAGES],
    request_bytes: u64,
    answer_bytes: u64,
}

impl ObservationCounters {
    /// Zeros for these ports.
    pub(super) fn new(ports: impl IntoIterator<Item = u16>) -> Self {
        let latency_scale = BucketScale::new(LATENCY_BUCKETS);
        let stage_scale = BucketScale::new(STAGE_BUCKETS);
        let zeros = |port| (port, PortMetrics::new(&latency_scale, &stage_scale));
        let ports: BTreeMap<u16, PortMetrics> = ports.into_iter().map(zeros).collect();
        Self {
            kernel: GrownCounters::new(ports.keys()),
            ports,
            latency_scale,
            stage_scale,
            counts: JoinCounts::default(),
            doubts: RequestQuality::ALL.map(|(_, name)| (name, 0)).to_vec(),
            events: 0,
            lost_events: 0,
            skipped_runs: 0,
            cost: None,
            process_cpu_ns: 0,
        }
    }

    /// Counts a request with its stages.
    pub(super) fn add(&mut self, request: &ObservedRequest) {
        let latency = &self.latency_scale;
        let stage = &self.stage_scale;
        let port = self.ports.entry(request.port).or_insert_with(|| PortMetrics::new(latency, stage));
        port.add(request);
    }

    /// Notes what is counted elsewhere.
    pub(super) fn note(&mut self, progress: &ObservationProgress<'_>, process_cpu_ns: u64) {
        self.counts = progress.counts;
        self.doubts = progress.statistics.flagged().collect();
        (self.events, self.lost_events) = (progress.events, progress.lost_events);
        self.skipped_runs = progress.skipped_runs;
        (self.cost, self.process_cpu_ns) = (progress.cost, process_cpu_ns);
        self.kernel.note(progress.counters);
    }
}

impl PortMetrics {
    fn new(latency: &BucketScale, stage: &BucketScale) -> Self {
        Self {
            latency: ExponentialCounts::new(latency),
            stages: std::array::from_fn(|_| ExponentialCounts::new(stage)),
            products: [0; STAGES],
            request_bytes: 0,
            answer_bytes: 0,
        }
    }

    fn add(&mut self, request: &ObservedRequest) {
        self.latency.add(request.latency_from_stack());
        let total = u128::from(request.latency_from_wire());
        let sums = self.stages.iter_mut().zip(&mut self.products);
        for ((stage, product), time) in sums.zip(request.stages()) {
            stage.add(time);
            *product += u128::from(time) * total;
        }
        self.request_bytes += request.request_bytes;
        self.answer_bytes += request.answer_bytes;
    }
}

/// Counters as they were when they were last handed over, and the finding of the last part. Clones share them.
#[derive(Debug, Clone)]
pub struct PublishedMetrics {
    counters: Arc<Mutex<Arc<ObservationCounters>>>,
    finding: Arc<Mutex<Option<Arc<Finding>>>>,
}

impl PublishedMetrics {
    /// Zeros for the ports that will be observed.
    pub fn new(ports: impl IntoIterator<Item = u16>) -> Self {
        let counters = Arc::new(ObservationCounters::new(ports));
        Self { counters: Arc::new(Mutex::new(counters)), finding: Arc::new(Mutex::new(None)) }
    }

    /// The text for a scraper.
    pub fn page(&self) -> String {
        let counters = Arc::clone(&self.counters.lock().unwrap_or_else(PoisonError::into_inner));
        let finding = self.finding.lock().unwrap_or_else(PoisonError::into_inner).clone();
        metrics::exposition(CounterCollector { counters, finding })
    }

    /// Hands over a copy; a scraper that is just taking the one before has it for another second.
    pub(super) fn publish(&self, counters: &ObservationCounters) {
        if let Ok(mut place) = self.counters.try_lock() {
            *place = Arc::new(counters.clone());
        }
    }

    /// Hands over the finding of a part of the observation, in place of the one before.
    pub(super) fn publish_finding(&self, finding: Finding) {
        *self.finding.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(finding));
    }
}

/// What the text is made of.
#[derive(Debug)]
struct CounterCollector {
    counters: Arc<ObservationCounters>,
    finding: Option<Arc<Finding>>,
}

impl Collector for CounterCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_latencies(&mut encoder)?;
        self.encode_stages(&mut encoder)?;
        self.encode_bytes(&mut encoder)?;
        self.encode_doubts(&mut encoder)?;
        self.encode_kernel_counters(&mut encoder)?;
        self.encode_finding(&mut encoder)?;
        self.encode_overhead(&mut encoder)
    }
}

impl CounterCollector {
    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let family = MetricFamily {
            name: "tailwright_request_duration",
            help: "Latency T6 - T1 of answered requests; ends of buckets are 19 % apart",
            unit: Some(&Unit::Seconds),
        };
        let ports = self.counters.ports.iter();
        family.encode_times(encoder, ports.map(|(port, counted)| (port_label(port), &counted.latency)))
    }

    fn encode_stages(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let family = MetricFamily {
            name: "tailwright_stage_duration",
            help: "Time of answered requests in each stage; ends of buckets are a factor of 2 apart",
            unit: Some(&Unit::Seconds),
        };
        let mut times = Vec::new();
        let mut products = Vec::new();
        for (port, counted) in &self.counters.ports {
            for ((name, stage), product) in STAGE_NAMES.iter().zip(&counted.stages).zip(counted.products) {
                let labels = [("port", port.to_string()), ("stage", (*name).to_owned())];
                times.push((labels.clone(), stage));
                products.push((labels, product as f64 / 1e18));
            }
        }
        family.encode_times(encoder, times)?;
        let family = MetricFamily {
            name: "tailwright_stage_product",
            help: "Sum of the time in a stage times the latency T6 - T0 of its request, for shares of the variance",
            unit: Some(&Unit::Other("square_seconds".to_owned())),
        };
        family.encode_sums(encoder, products)
    }

    fn encode_bytes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = Some(&Unit::Bytes);
        let requests = MetricFamily { name: "tailwright_request", help: "Bytes of answered requests", unit };
        let answers = MetricFamily { name: "tailwright_answer", help: "Bytes of answers", unit };
        let ports = || self.counters.ports.iter();
        requests.encode_counts(
            encoder,
            "port",
            ports().map(|(port, of)| (port.to_string(), of.request_bytes)),
        )?;
        answers.encode_counts(encoder, "port", ports().map(|(port, of)| (port.to_string(), of.answer_bytes)))
    }

    fn encode_doubts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.counters.counts;
        let unjoined = [
            ("no_answer_seen", counts.unanswered),
            ("answer_to_nothing_seen", counts.unrequested),
            ("arrival_not_seen", counts.unseen_arrivals),
            ("discarded_after_lost_events", counts.discarded),
            ("taken_by_unseen_calls", counts.unseen_reads),
        ];
        let named = |(name, count): (&str, u64)| (name.to_owned(), count);
        let help = "Requests, answers and reads that could not be joined and are in no other count";
        let family = MetricFamily { name: "tailwright_unjoined", help, unit: None };
        family.encode_counts(encoder, "reason", unjoined.map(named))?;
        let help = "Answered requests that are uncertain; they are in the percentiles";
        let family = MetricFamily { name: "tailwright_doubtful_requests", help, unit: None };
        family.encode_counts(encoder, "doubt", self.counters.doubts.iter().copied().map(named))?;
        let help = "Events that the kernel reported";
        let family = MetricFamily { name: "tailwright_events", help, unit: None };
        family.encode_count(encoder, self.counters.events)?;
        let help = "Events that were lost because the buffer was full";
        let family = MetricFamily { name: "tailwright_lost_events", help, unit: None };
        family.encode_count(encoder, self.counters.lost_events)?;
        let family = MetricFamily { name: "tailwright_skipped_runs", help: SKIPPED_RUNS_HELP, unit: None };
        family.encode_count(encoder, self.counters.skipped_runs)
    }

    fn encode_kernel_counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for row in &FAMILIES {
            let unit = row.is_time().then_some(&Unit::Seconds);
            let family = MetricFamily { name: row.name, help: row.help, unit };
            let series = self.counters.kernel.series(row);
            match row.label {
                None => family.encode_sum(encoder, series.first().map_or(0.0, |(_, value)| *value))?,
                Some(label) => family.encode_sums(
                    encoder,
                    series.into_iter().map(|(subject, value)| ([(label, subject)], value)),
                )?,
            }
        }
        Ok(())
    }

    fn encode_finding(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(finding) = &self.finding else { return Ok(()) };
        let family = MetricFamily { name: "tailwright_tail_finding", help: FINDING_HELP, unit: None };
        family.encode_gauges(encoder, [(finding_labels(finding), 1.0)])?;
        for gauge in finding_gauges(finding) {
            let (name, unit) = match (gauge.name.strip_suffix("_seconds"), gauge.name.strip_suffix("_ratio"))
            {
                (Some(name), _) => (name, Some(Unit::Seconds)),
                (_, Some(name)) => (name, Some(Unit::Other("ratio".to_owned()))),
                _ => (gauge.name, None),
            };
            MetricFamily { name, help: gauge.help, unit: unit.as_ref() }
                .encode_gauge(encoder, gauge.value)?;
        }
        Ok(())
    }

    fn encode_overhead(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let family = MetricFamily {
            name: "tailwright_observer_cpu",
            help: "CPU time of this process",
            unit: Some(&Unit::Seconds),
        };
        family.encode_sum(encoder, self.counters.process_cpu_ns as f64 / 1e9)?;
        let family = MetricFamily {
            name: "tailwright_probe_cpu",
            help: "Share of one CPU that the programs in the kernel took while that was measured, at the beginning",
            unit: Some(&Unit::Other("ratio".to_owned())),
        };
        let share = self.counters.cost.map(|cost| cost.run_ns as f64 / 1e9 / cost.duration.as_secs_f64());
        family.encode_gauge(encoder, share)?;
        encode_version(encoder, env!("CARGO_PKG_VERSION"))
    }
}

fn port_label(port: &u16) -> [(&'static str, String); 1] {
    [("port", port.to_string())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use observe::{CounterReport, KernelCount, QUOTA_THROTTLED_TIME, RequestStatistics, STEAL, UDP_DROPS};

    fn sample(page: &str, series: &str) -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} in {page}")).parse().expect("a number")
    }

    fn progress<'a>(
        statistics: &'a RequestStatistics,
        counters: &'a CounterReport,
    ) -> ObservationProgress<'a> {
        ObservationProgress {
            statistics,
            counts: JoinCounts { unanswered: 3, ..JoinCounts::default() },
            events: 70,
            lost_events: 2,
            skipped_runs: 5,
            readers: 1,
            elapsed: std::time::Duration::from_secs(1),
            cost: None,
            counters,
        }
    }

    #[test]
    fn what_is_published_is_what_was_counted() {
        let published = PublishedMetrics::new([80]);
        assert_eq!(sample(&published.page(), "tailwright_request_duration_seconds_count{port=\"80\"}"), 0.0);
        let mut counters = ObservationCounters::new([80]);
        let mut statistics = RequestStatistics::default();
        for wait in [0, 5_000, 70_000, 1_000_000] {
            let request = request(0, wait, 1_000);
            counters.add(&request);
            statistics.add(&request);
        }
        let count =
            |counter, subject: &str, amount| KernelCount { counter, subject: subject.to_owned(), amount };
        let kernel = CounterReport {
            counts: vec![
                count(&UDP_DROPS, "port 80", 7),
                count(&QUOTA_THROTTLED_TIME, "/web \"1\"", 250_000_000),
                count(&STEAL, "", 20_000_000),
            ],
            ..CounterReport::default()
        };
        counters.note(&progress(&statistics, &kernel), 1_500_000_000);
        // A namespace is not that of the server after all: counters do not fall.
        counters.note(&progress(&statistics, &CounterReport::default()), 1_500_000_000);
        published.publish(&counters);
        let page = published.page();
        for (series, value) in [
            ("tailwright_request_duration_seconds_count{port=\"80\"}", 4.0),
            ("tailwright_request_duration_seconds_bucket{le=\"0.000001\",port=\"80\"}", 1.0),
            ("tailwright_request_duration_seconds_bucket{le=\"+Inf\",port=\"80\"}", 4.0),
            ("tailwright_request_duration_seconds_sum{port=\"80\"}", 0.001079),
            ("tailwright_stage_duration_seconds_sum{port=\"80\",stage=\"wakeup\"}", 0.001075),
            ("tailwright_request_bytes_total{port=\"80\"}", 80.0),
            ("tailwright_unjoined_total{reason=\"no_answer_seen\"}", 3.0),
            ("tailwright_lost_events_total", 2.0),
            ("tailwright_skipped_runs_total", 5.0),
            ("tailwright_observer_cpu_seconds_total", 1.5),
            ("tailwright_udp_drops_total{port=\"80\"}", 7.0),
            ("tailwright_listen_drops_total{port=\"80\"}", 0.0),
            ("tailwright_softnet_drops_total", 0.0),
            ("tailwright_cpu_quota_throttled_seconds_total{group=\"/web \\\"1\\\"\"}", 0.25),
            ("tailwright_steal_seconds_total", 0.02),
        ] {
            assert_eq!(sample(&page, series), value, "{series}");
        }
        assert!(
            page.ends_with("# EOF\n")
                && page.contains("# UNIT tailwright_request_duration_seconds seconds\n")
        );
        assert!(page.contains("tailwright_build_info{version="), "{page}");
    }

    #[test]
    fn the_last_finding_has_its_words_and_figures() {
        let published = PublishedMetrics::new([80]);
        assert!(!published.page().contains("tailwright_tail_"), "nothing is known yet");
        published.publish_finding(crate::observation::testing::unusual_finding());
        let page = published.page();
        let finding =
            page.lines().find(|line| line.starts_with("tailwright_tail_finding{")).expect("it is there");
        for label in [
            "verdict=\"unusual\"",
            "cause=\"other processes\"",
            "spent_on=\"waits behind hog (4711)\"",
            "next=\"tailwright experiment demote=4711 --pid 9 --port 80\"",
        ] {
            assert!(finding.contains(label), "{label}: {finding}");
        }
        for (series, value) in [
            ("tailwright_tail_unusual", 1.0),
            ("tailwright_tail_p99_seconds", 0.0249),
            ("tailwright_tail_ideal_ratio", 650.0),
            ("tailwright_tail_cause_ratio", 0.97),
            ("tailwright_tail_requests", 5000.0),
        ] {
            assert_eq!(sample(&page, series), value, "{series}");
        }
        assert!(page.contains("# UNIT tailwright_tail_p99_seconds seconds\n"), "{page}");
    }

    #[test]
    fn shares_of_the_variance_follow_from_the_counters() {
        let mut counters = ObservationCounters::new([80]);
        let mut statistics = RequestStatistics::default();
        for n in 0..1_000u64 {
            let request = request(0, n * 7 % 1_000, 100 + n * 13 % 777);
            counters.add(&request);
            statistics.add(&request);
        }
        let port = &counters.ports[&80];
        let n = port.latency.count() as f64;
        let times = port.stages.each_ref().map(ExponentialCounts::sum_seconds);
        let products = port.products.map(|product| product as f64 / 1e18);
        let all = times.iter().sum::<f64>();
        let squares = products.iter().sum::<f64>();
        for ((stage, time), product) in statistics.stages().iter().zip(times).zip(products) {
            let share = (n * product - time * all) / (n * squares - all * all);
            assert!((share - stage.share_of_variance).abs() < 1e-9, "{stage:?}: {share}");
        }
    }
}
