//! Distributions of service times that were not used to choose the thresholds: other families, other
//! parameters, and the self times of operations recorded in a benchmark of microservices.

use arrivals::{DistributionFamily, TimeDistribution};
use callgraph::{BadRecords, CallGraphBuilder, Outliving, SpanFormat, TraceAssembler, read};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::BufReader;
use units::{Nanos, Seconds};

/// Mean service time at a tier, nanoseconds; slices of the simulation are in proportion to it.
const MEAN_NS: f64 = 1e7;
/// Number of operations of the recorded services, those with the most work.
const OPERATIONS: usize = 6;

/// Returns the distributions by name.
pub(crate) fn laws() -> Vec<(String, TimeDistribution)> {
    let mean = Seconds(1e-9 * MEAN_NS);
    let mut laws = Vec::new();
    for c2 in [2.0, 4.0, 20.0] {
        laws.push(named(format!("hyperexp {c2}"), DistributionFamily::Hyperexponential { mean, c2 }));
    }
    for c2 in [3.5, 25.0] {
        laws.push(named(format!("lnorm {c2}"), DistributionFamily::LogNormal { mean, c2 }));
    }
    laws.push(named("erlang 0.25".to_owned(), DistributionFamily::Erlang { mean, c2: 0.25 }));
    for shape in [0.5, 0.7, 2.0] {
        let quantiles = (0..10_000).map(|rank| weibull_quantile((f64::from(rank) + 0.5) / 1e4, shape));
        laws.push(empirical(format!("weibull {shape}"), &quantiles.collect::<Vec<_>>()));
    }
    for (shape, span) in [(1.1, 1e3), (1.5, 1e3), (2.5, 1e4)] {
        let quantiles = (0..10_000).map(|rank| pareto_quantile((f64::from(rank) + 0.5) / 1e4, shape, span));
        laws.push(empirical(format!("pareto {shape} 1-{span}"), &quantiles.collect::<Vec<_>>()));
    }
    laws.extend(recorded());
    laws
}

fn named(name: String, family: DistributionFamily) -> (String, TimeDistribution) {
    (name, TimeDistribution::new(family).expect("parameters within their ranges"))
}

/// P(X > x) = exp(−x^shape).
fn weibull_quantile(share: f64, shape: f64) -> f64 {
    (-(-share).ln_1p()).powf(1.0 / shape)
}

/// P(X > x) = x^−shape, given that X is at most `span`.
fn pareto_quantile(share: f64, shape: f64, span: f64) -> f64 {
    let inside = 1.0 - span.powf(-shape);
    (1.0 - share * inside).powf(-1.0 / shape)
}

/// Returns a distribution with these equally likely values, in any unit, scaled to the mean.
fn empirical(name: String, values: &[f64]) -> (String, TimeDistribution) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    #[expect(clippy::cast_possible_truncation, reason = "seconds at most, in nanoseconds")]
    let scaled = values.iter().map(|value| Nanos((value / mean * MEAN_NS) as u64));
    named(name, DistributionFamily::Empirical(scaled.collect()))
}

/// Returns the self times of recorded operations at the lowest recorded load, where they include the
/// least waiting.
fn recorded() -> Vec<(String, TimeDistribution)> {
    let Some(path) = testkit::shared("data/microservices/media_load25.spans.csv.gz") else {
        return Vec::new();
    };
    let mut assembler = TraceAssembler::new(1000);
    let mut builder = CallGraphBuilder::new(Outliving::Clipped);
    let spans = BufReader::new(GzDecoder::new(File::open(path).expect("it exists")));
    let unreadable = read("data", SpanFormat::Spans, BadRecords::Fatal, spans, |span| {
        assembler.push(span).into_iter().for_each(|spans| drop(builder.push(spans)));
    });
    assembler.finish().for_each(|spans| drop(builder.push(spans)));
    let graph = builder.finish(unreadable.expect("published"));
    let mut operations = graph.operations;
    operations.retain(|operation| operation.own.mean_s > 0.0);
    operations.sort_by(|a, b| {
        let work = |of: &callgraph::ServiceOperation| of.own.mean_s * of.own.count as f64;
        work(b).total_cmp(&work(a))
    });
    let most = operations.into_iter().take(OPERATIONS);
    most.map(|operation| {
        let name: String = operation.name.chars().take(14).collect();
        let times: Vec<f64> = operation.own.sample_ns.iter().map(|time| *time as f64).collect();
        empirical(format!("{name} C² {:.1}", operation.own.c2), &times)
    })
    .collect()
}
