//! Placement by replays at scale: random draws of the published traces with random SLOs, filled server by server.
//! Measures questions to the model, the growth of time, and the cost of one decision against a complete
//! replay.
//!
//! `cargo bench -p placement --bench packing`; with `-- all` up to 10,000 workloads.

mod support;

use model::{LatencyModel, ServerMember, Slo};
use placement::SearchEffort;
use placement::admission::{Applicant, ByModel, IdenticalServers, SharedServer, by_slo};
use placement::packing::{PackingControl, PackingProblem, pack};
use predict::{BudgetCheck, Replayed};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::sync::Arc;
use std::time::Instant;
use support::Through;
use units::{Percentile, Seconds};

/// SLOs of thesis §5.4.1, "Random SLO", seconds.
const SLOS: [f64; 5] = [0.1, 0.15, 0.25, 0.5, 1.0];

type Sketch = <Replayed as LatencyModel>::Sketch;

fn main() {
    let Some(traces) = support::traces(Through::Server) else { return };
    let all = std::env::args().any(|arg| arg == "all");
    let model = Replayed::new(14, 0.8, 0.95, 2).expect("14 alignments are enough");
    let sketches: Vec<Arc<Sketch>> = traces.iter().map(|traffic| Arc::new(model.sketch(traffic))).collect();
    let mut random = StdRng::seed_from_u64(1);
    let counts: &[usize] = if all { &[62, 250, 1000, 10_000] } else { &[62, 250, 1000] };
    println!("workloads  servers  refused  questions  seconds  per workload");
    let mut first = None;
    for &count in counts {
        let mut applicants = Vec::with_capacity(count);
        let mut loads = Vec::with_capacity(count);
        for number in 0..count {
            let drawn = random.random_range(0..traces.len());
            loads.push(traces[drawn].utilisation());
            let slo = SLOS[random.random_range(0..SLOS.len())];
            applicants.push(applicant(number, slo, &sketches[drawn]));
        }
        let servers = IdenticalServers { count, slo_factor: 1.0, levels_max: usize::MAX };
        let problem = PackingProblem { servers, applicants: &applicants, loads: &loads, servers_min: 1 };
        let begin = Instant::now();
        let remembering = model.remembering();
        let packing = pack(
            &[ByModel::by_slo(&remembering)],
            &problem,
            SearchEffort::FirstFound,
            &PackingControl::UNWATCHED,
        );
        let seconds = begin.elapsed().as_secs_f64();
        let each = seconds / count as f64;
        let growth = each / *first.get_or_insert(each);
        println!(
            "{count:>9}  {:>7}  {:>7}  {:>9}  {seconds:>7.1}  {growth:.2}× that of the smallest",
            packing.servers.len(),
            packing.refused.len(),
            packing.asked
        );
        let members: Vec<_> = packing.servers[0].iter().map(|&member| &applicants[member]).collect();
        one_decision(&model, &members);
    }
}

fn applicant(number: usize, slo: f64, sketch: &Arc<Sketch>) -> Applicant<Sketch> {
    let percentile = Percentile::new(99.9).expect("a percentile");
    Applicant {
        name: format!("w{number}"),
        slo: Slo::new(percentile, Seconds(slo)).expect("a positive latency"),
        base_latency: 0.0,
        group: None,
        sketch: Arc::clone(sketch),
    }
}

/// The decision on a server whose members fit, against the prediction of all latencies by the same alignments.
fn one_decision(model: &Replayed, applicants: &[&Applicant<Sketch>]) {
    let view = SharedServer { members: applicants, slo_factor: 1.0, levels_max: usize::MAX };
    let priorities = by_slo(&view);
    let groups = view.groups();
    let mut members = Vec::new();
    for (number, applicant) in applicants.iter().enumerate() {
        members.push(ServerMember {
            sketch: applicant.sketch.as_ref(),
            priority: priorities[number],
            group: groups[number],
            percentile: applicant.slo.percentile,
        });
    }
    let budgets: Vec<f64> = applicants.iter().map(|applicant| applicant.slo.latency.0).collect();
    let begin = Instant::now();
    let decided = model.check_budgets(&members, &budgets) == BudgetCheck::Fits;
    let decision = begin.elapsed();
    let begin = Instant::now();
    let predictions = model.predict(&members);
    let prediction = begin.elapsed();
    let kept = predictions.iter().zip(&budgets).all(|(p, budget)| p.is_ok_and(|p| p.bound <= *budget));
    assert_eq!(decided, kept, "decisions are those of complete replays");
    println!(
        "           one decision on {} of them: a complete replay takes {:.1} times as long",
        members.len(),
        prediction.as_secs_f64() / decision.as_secs_f64()
    );
}
