//! Accuracy of predictions for another rate: recorded requests are replayed at it, and compared with the
//! latencies recorded there.
//!
//! `cargo bench -p scenario --bench media`
//!
//! A microservice application was recorded at 25, 50, 75 and 125 requests per second, all of them traced.
//! A scenario from the spans of one rate is simulated at the others, with Poisson arrivals. The number of
//! workers of a service is not recorded. Three assumptions use only the source: one; as many as its spans
//! ever worked at once; enough that no request waits. Nothing is fitted to the predicted rates.

use callgraph::{BadRecords, Outliving, RuleCounts, Trace, TraceNode};
use scenario::ScenarioDocument;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use units::Percentile;

const RATES: [u32; 4] = [25, 50, 75, 125];
const PERCENT: [f64; 3] = [50.0, 90.0, 99.0];

fn main() {
    let path = |rate| testkit::shared(&format!("data/microservices/media_load{rate}.spans.csv.gz"));
    let Some(files) = RATES.map(path).into_iter().collect::<Option<Vec<PathBuf>>>() else { return };
    let records: Vec<Record> = files.iter().map(|file| Record::read(file)).collect();
    println!("milliseconds: p50, p90, p99, and their errors against the record at that rate");
    println!("{:>6} {:>5}  {:34} {:>26}", "source", "rate", "workers", "p50 / p90 / p99");
    for (rate, record) in RATES.iter().zip(&records) {
        println!("{:>6} {rate:>5}  {:34} {}", "", "recorded", shown(&record.percentiles(), None));
    }
    for source in 0..2 {
        for (name, workers) in assumptions(&records[source]) {
            for (rate, record) in RATES.iter().zip(&records) {
                let recorded = record.percentiles();
                let found = simulated(&files[source], *rate, &workers);
                let text = found.map_or("unstable".to_owned(), |found| shown(&found, Some(&recorded)));
                println!("{:>6} {rate:>5}  {name:34} {text}", RATES[source]);
            }
        }
        println!("  most at once at {}/s: {:?}", RATES[source], records[source].at_once);
    }
}

fn shown(values: &[f64; 3], recorded: Option<&[f64; 3]>) -> String {
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        let _ = write!(text, "{value:>8.2}");
        if let Some(recorded) = recorded {
            let _ = write!(text, " ({:+5.1} %)", 100.0 * (value / recorded[index] - 1.0));
        }
    }
    text
}

/// One run of the application.
struct Record {
    /// Nanoseconds, ascending.
    latencies: Vec<u64>,
    /// Most spans of a service that work themselves at the same time.
    at_once: BTreeMap<String, i64>,
}

impl Record {
    fn read(path: &Path) -> Self {
        let mut counts = RuleCounts::default();
        let mut latencies = Vec::new();
        let mut events: BTreeMap<String, Vec<(u64, i64)>> = BTreeMap::new();
        callgraph::traces(path, None, BadRecords::Fatal, |spans| {
            let trace = Trace::new(spans, Outliving::Clipped, &mut counts);
            let entry = &trace.nodes()[trace.entry().expect("whole traces")];
            latencies.push((entry.end - entry.start).0);
            for node in trace.nodes() {
                let service = events.entry(node.span.service.to_string()).or_default();
                working(trace.nodes(), node, |from, to| service.extend([(from, 1), (to, -1)]));
            }
        })
        .expect("published");
        latencies.sort_unstable();
        let most = |mut events: Vec<(u64, i64)>| {
            events.sort_unstable();
            let at_once = events.iter().scan(0, |now, (_, step)| {
                *now += step;
                Some(*now)
            });
            at_once.max().unwrap_or(0)
        };
        Self { latencies, at_once: events.into_iter().map(|(name, events)| (name, most(events))).collect() }
    }

    /// Milliseconds, of the nearest rank.
    fn percentiles(&self) -> [f64; 3] {
        PERCENT.map(|percent| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rank = (percent / 100.0 * self.latencies.len() as f64).ceil() as usize;
            self.latencies[rank - 1] as f64 / 1e6
        })
    }
}

/// Calls `interval` for the intervals of a span in which none of its calls is open.
fn working(nodes: &[TraceNode], node: &TraceNode, mut interval: impl FnMut(u64, u64)) {
    let mut at = node.start.0;
    for child in node.children.iter().map(|child| &nodes[*child]).filter(|child| child.is_waited_for) {
        if child.start.0 > at {
            interval(at, child.start.0.min(node.end.0));
        }
        at = at.max(child.end.0);
    }
    if node.end.0 > at {
        interval(at, node.end.0);
    }
}

/// Workers by service.
fn assumptions(source: &Record) -> Vec<(&'static str, BTreeMap<String, i64>)> {
    let all = |workers: i64| source.at_once.keys().map(|name| (name.clone(), workers)).collect();
    vec![
        ("1 each", all(1)),
        ("as many as worked at once", source.at_once.clone()),
        ("1000 each: nobody waits", all(1000)),
    ]
}

/// Milliseconds; none when the number of requests inside grows without bound.
fn simulated(spans: &Path, rate: u32, workers: &BTreeMap<String, i64>) -> Option<[f64; 3]> {
    let mut text = format!(
        "[run]\nrequests = 20000\nreplications = 8\n[call_graph]\nspans = \"{}\"\nworkers = 1\ndiscipline = \"fifo\"\n\
         [[entry]]\narrivals = \"poisson({rate}/s)\"\n",
        spans.display()
    );
    for (name, workers) in workers {
        let _ = write!(text, "[[station]]\nname = \"{name}\"\nworkers = {workers}\ndiscipline = \"fifo\"\n");
    }
    let document = ScenarioDocument::parse(Path::new("media.toml"), &text).expect("a scenario");
    let run = document.variants().expect("one")[0].run(1).expect("it runs");
    let at = |percent| run.report.percentile(Percentile::new(percent).expect("in range")).expect("requests");
    run.is_stable().then(|| PERCENT.map(|percent| at(percent).value / 1e6))
}
