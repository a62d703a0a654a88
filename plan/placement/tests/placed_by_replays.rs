//! Servers filled by replays that leave out what is certain, judged by replays that leave out nothing.

use model::{CircularTrace, Job, LatencyModel, PerStage, Slo};
use placement::SearchEffort;
use placement::admission::{AdmissionProcedure, Applicant, ByModel, IdenticalServers, SharedServer, by_slo};
use placement::packing::{Packing, PackingControl, PackingProblem, SecondJudgement, pack};
use predict::Replayed;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::{Alignment, PreemptionMode, ReplayStream, ReplaySystem, alignment_percentiles};
use std::sync::Arc;
use units::{Nanos, Percentile, Seconds};

type Sketch = <Replayed as LatencyModel>::Sketch;

const SEED: u64 = 2;

/// Three seconds of bursts, with work at all stages or at two of them.
fn bursty(random: &mut StdRng) -> CircularTrace<Job> {
    let mut at = 0u64;
    let mut jobs = Vec::new();
    let overtakes = random.random_range(0..4) == 0;
    while at < 3_000_000_000 {
        let pause = if random.random_range(0..40) == 0 { 1_500_000_000 } else { 8_000_000 };
        at += random.random_range(0..pause);
        let is_read = overtakes && random.random_range(0..2) == 0;
        let [into, storage, out] = [1_000_000, 3_000_000, 1_000_000].map(|most| random.random_range(1..most));
        let work = [if is_read { 0 } else { into }, storage, out];
        jobs.push(Job { arrival: Nanos(at), work: PerStage::from_fn(|stage| Nanos(work[stage as usize])) });
    }
    CircularTrace::new(jobs, Nanos(at + 1)).expect("in order of arrival")
}

/// Random copies of a few traces.
fn applicants(count: usize) -> (Vec<Applicant<Sketch>>, Vec<PerStage<f64>>) {
    let mut random = StdRng::seed_from_u64(SEED);
    let traces: Vec<CircularTrace<Job>> = (0..6).map(|_| bursty(&mut random)).collect();
    let sketches: Vec<Arc<Sketch>> = traces.iter().map(|t| Arc::new(Replayed::default().sketch(t))).collect();
    let mut applicants = Vec::new();
    let mut loads = Vec::new();
    for number in 0..count {
        let drawn = random.random_range(0..traces.len());
        let latency = [0.02, 0.03, 0.05, 0.1, 0.2][random.random_range(0..5)];
        let slo = Slo::new(Percentile::new(99.0).expect("a percentile"), Seconds(latency));
        applicants.push(Applicant {
            name: format!("w{number}"),
            slo: slo.expect("a positive latency"),
            base_latency: 0.0,
            group: None,
            sketch: Arc::clone(&sketches[drawn]),
        });
        loads.push(traces[drawn].utilisation());
    }
    (applicants, loads)
}

const SERVERS: IdenticalServers = IdenticalServers { count: 400, slo_factor: 1.0, levels_max: 7 };

/// Returns true if every percentile is within its SLO in all of a number of alignments, each replayed
/// completely.
fn holds_by_complete_replays(members: &[&Applicant<Sketch>], seed: u64, alignments: usize) -> bool {
    let view = SharedServer { members, slo_factor: 1.0, levels_max: 7 };
    let priorities = by_slo(&view);
    let groups = view.groups();
    let mut streams = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let trace = member.sketch.as_ref().as_ref().expect("seconds, not years");
        streams.push(ReplayStream { trace, priority: priorities[number], group: groups[number] });
    }
    let Ok(system) = ReplaySystem::new(streams) else { return false };
    let alignments: Vec<Alignment> = Alignment::random(seed, alignments).collect();
    let percentiles: Vec<Percentile> = members.iter().map(|member| member.slo.percentile).collect();
    let runs = alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &percentiles);
    let is_kept = |member: usize, value: Option<Nanos>| {
        value.is_none_or(|value| value.as_secs() <= members[member].slo.latency.0)
    };
    runs.iter().all(|(values, _)| values.iter().enumerate().all(|(member, value)| is_kept(member, *value)))
}

fn placed(applicants: &[Applicant<Sketch>], loads: &[PerStage<f64>], threads: usize) -> Packing {
    let searching = Replayed::new(14, 0.8, 0.95, SEED).expect("14 alignments are enough");
    let judge = Replayed::default().remembering();
    let procedure = ByModel::by_slo(&judge);
    let members_of = |members: &[usize]| members.iter().map(|&m| &applicants[m]).collect::<Vec<_>>();
    let confirms = |members: &[usize]| {
        let members = members_of(members);
        let view = SharedServer { members: &members, slo_factor: 1.0, levels_max: 7 };
        procedure.fits(&view, &procedure.priorities(&view))
    };
    let missing = |_: &[usize]| Vec::new();
    let judgement = Some(SecondJudgement { confirms: &confirms, missing: &missing });
    let models: Vec<_> = (0..threads).map(|_| searching.remembering()).collect();
    let procedures: Vec<_> = models.iter().map(ByModel::by_slo).collect();
    let problem = PackingProblem { servers: SERVERS, applicants, loads, servers_min: 1 };
    let control = PackingControl { judgement, ..PackingControl::UNWATCHED };
    pack(&procedures, &problem, SearchEffort::FirstFound, &control)
}

#[test]
fn every_server_holds_by_complete_replays_whatever_the_number_of_threads() {
    for count in [40, 304] {
        let (applicants, loads) = applicants(count);
        let packing = placed(&applicants, &loads, 1);
        assert!(packing.servers.iter().any(|members| members.len() > 2), "{:?}", packing.servers);
        for members in &packing.servers {
            let members: Vec<_> = members.iter().map(|&member| &applicants[member]).collect();
            assert!(holds_by_complete_replays(&members, 1, 59), "of {count}: {}", members[0].name);
        }
        assert_eq!(placed(&applicants, &loads, 2), packing);
    }
}
