//! Shared parts of the benchmarks: workloads from an SLO table, random draws of them, and command-line words.
#![allow(dead_code, reason = "each benchmark uses a part")]

use model::Slo;
use operation::Silent;
use plan::cluster::{ClusterDescription, ClusterSource, SloTableSource};
use plan::prediction::{PredictionProblem, PredictionSource, TracedWorkload};
use rand::RngExt as _;
use rand::rngs::StdRng;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use units::Seconds;

/// Random SLOs of workloads on servers (thesis §5.4.1, "Random SLO"), seconds.
pub(crate) const SERVER_SLOS: [f64; 5] = [0.1, 0.15, 0.25, 0.5, 1.0];

/// A table of workloads for as many servers as it takes.
pub(crate) struct WorkloadTable {
    pub(crate) slos: PathBuf,
    pub(crate) traces: PathBuf,
    /// The rate of the links, such as `125MB/s`.
    pub(crate) network: String,
    pub(crate) link_only: bool,
}

impl WorkloadTable {
    /// The workloads of the table; `None`, loudly, where the published traces are absent.
    pub(crate) fn problem(self) -> Option<PredictionProblem> {
        let folder = testkit::shared("traces")?;
        let table = SloTableSource {
            slos: self.slos,
            traces: Some(self.traces),
            storage: Some(folder.join("ssd-profile.json")),
            network: self.network.parse().expect("a rate such as 125MB/s"),
            servers: NonZeroUsize::new(10_000).expect("not zero"),
            channels: None,
            best_effort_request: None,
        };
        let cluster = ClusterSource::new(ClusterDescription::SloTable(table));
        let source = PredictionSource { link_only: self.link_only, ..PredictionSource::new(cluster) };
        Some(PredictionProblem::read(&source, &Silent).expect("a table of SLOs with traces"))
    }
}

/// So many workloads with random traces of the problem, each with an SLO as `slo` draws it.
pub(crate) fn draw(
    problem: &PredictionProblem,
    count: usize,
    mut random: StdRng,
    slo: impl Fn(&mut StdRng) -> Slo,
) -> PredictionProblem {
    let mut workloads = Vec::new();
    for number in 0..count {
        let mut workload: TracedWorkload =
            problem.cluster.workloads[random.random_range(0..problem.cluster.workloads.len())].clone();
        workload.spec.name = format!("W{number}");
        workload.spec.slo = slo(&mut random);
        workload.group = number;
        workloads.push(workload);
    }
    problem.with_workloads(workloads)
}

/// One of these latencies, in seconds.
pub(crate) fn one_of(latencies: &[f64], random: &mut StdRng) -> Seconds {
    Seconds(latencies[random.random_range(0..latencies.len())])
}

/// The text after a word among the program's arguments.
pub(crate) fn text_after(word: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != word);
    args.nth(1)
}
