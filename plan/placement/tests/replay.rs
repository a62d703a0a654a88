//! The independent judge of a plan: the traces themselves, replayed through queues that know nothing of
//! curves and limits. Whatever the relative shift of the workloads, no request may take longer than its bound.

use model::{PerStage, Request, Slo, Stage};
use placement::{
    Guarantee, LimitMethod, Normalisation, PlacementOrder, PlannedServer, PlanningClass, PlanningProblem,
    PlanningWorkload, SearchEffort, place,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{MILLI, Seconds};
use workload::FootprintBuilder;
use workload::device::{NetworkModel, StorageProfile};

const LINK_BYTES_PER_S: f64 = 125e6;

/// A request as the queues see it: seconds of work at each stage.
#[derive(Clone, Copy)]
struct Job {
    arrival: f64,
    work: PerStage<f64>,
}

/// One workload's jobs and its priority on the server.
struct Stream {
    workload: usize,
    priority: usize,
    jobs: Vec<Job>,
}

/// Preemptive strict priority, first come first served within a priority. `queue` holds (arrival, priority,
/// work) by arrival; gives the time at which each is done.
fn serve(queue: &[(f64, usize, f64)]) -> Vec<f64> {
    let mut done = vec![0.0; queue.len()];
    let mut left: Vec<f64> = queue.iter().map(|job| job.2).collect();
    let mut waiting = BinaryHeap::new();
    let mut now = 0.0f64;
    for (index, &(arrival, priority, _)) in queue.iter().enumerate() {
        advance(&mut waiting, &mut left, &mut done, &mut now, arrival);
        waiting.push(Reverse((priority, index)));
    }
    advance(&mut waiting, &mut left, &mut done, &mut now, f64::INFINITY);
    done
}

/// Serves the workloads in order of priority until `until`.
fn advance(
    waiting: &mut BinaryHeap<Reverse<(usize, usize)>>,
    left: &mut [f64],
    done: &mut [f64],
    now: &mut f64,
    until: f64,
) {
    while let Some(&Reverse((_, index))) = waiting.peek() {
        if *now + left[index] > until {
            left[index] -= until - *now;
            break;
        }
        *now += left[index];
        done[index] = *now;
        waiting.pop();
    }
    *now = until.max(*now);
}

/// The longest response time of each stream when stream i starts `shifts[i]` seconds late.
fn replay(streams: &[Stream], shifts: &[f64]) -> Vec<f64> {
    let mut at: Vec<(f64, usize, usize)> = Vec::new();
    for (s, stream) in streams.iter().enumerate() {
        at.extend(stream.jobs.iter().enumerate().map(|(j, job)| (job.arrival + shifts[s], s, j)));
    }
    for stage in Stage::ALL {
        at.sort_by(|a, b| a.0.total_cmp(&b.0));
        let job =
            |&(time, s, j): &(f64, usize, usize)| (time, streams[s].priority, streams[s].jobs[j].work[stage]);
        let done = serve(&at.iter().map(job).collect::<Vec<_>>());
        at.iter_mut().zip(done).for_each(|(request, time)| request.0 = time);
    }
    let mut longest = vec![0.0f64; streams.len()];
    for (time, s, j) in at {
        longest[s] = longest[s].max(time - streams[s].jobs[j].arrival - shifts[s]);
    }
    longest
}

/// When the workload's worst burst at storage ends, for the rate that it was given there.
fn worst_burst_end(jobs: &[Job], rate: f64) -> f64 {
    let mut bucket = 0.0f64;
    let mut before = 0.0;
    let mut most = 0.0;
    let mut end = 0.0;
    for job in jobs {
        bucket = (bucket - rate * (job.arrival - before)).max(0.0) + job.work[Stage::Storage];
        before = job.arrival;
        if bucket > most {
            (most, end) = (bucket, job.arrival);
        }
    }
    end
}

#[test]
fn queues_serve_by_priority() {
    // A long job of low priority is preempted twice and ends last.
    let done = serve(&[(0.0, 1, 3.0), (1.0, 0, 1.0), (2.5, 0, 0.5), (2.5, 1, 1.0)]);
    assert_eq!(done, [4.5, 2.0, 3.0, 5.5]);
}

#[test]
fn no_replay_of_the_planned_traces_exceeds_a_bound() {
    let Some(folder) = testkit::shared("traces") else { return };
    let (problem, jobs) = read(&folder);
    let method = LimitMethod::Exact;
    let effort = SearchEffort::for_workloads(problem.workloads.len());
    let plan = place(&problem, method, PlacementOrder::Best, effort, 1, &mut |_| true);
    assert!(plan.refused.is_empty());
    let mut random = StdRng::seed_from_u64(5);
    let mut closest = 0.0f64;
    for server in &plan.servers {
        let guarantees = server.guarantees(&problem);
        let streams: Vec<Stream> = guarantees
            .iter()
            .map(|g| Stream { workload: g.workload, priority: g.priority, jobs: jobs[g.workload].clone() })
            .collect();
        let mut shifts = vec![aligned(&streams, server)];
        shifts.extend((0..3).map(|_| streams.iter().map(|_| random.random_range(0.0..300.0)).collect()));
        for shifts in shifts {
            closest = closest.max(worst_ratio(&problem, &guarantees, &replay(&streams, &shifts)));
        }
    }
    // A judge that never comes near would judge nothing.
    assert!(closest > 0.25, "the replays come no closer than {closest} to any bound");
    println!("closest replay: {:.1}% of its bound", closest * 100.0);
}

/// Shifts that let all worst bursts end at one moment.
fn aligned(streams: &[Stream], server: &PlannedServer) -> Vec<f64> {
    let end = |s: &Stream| worst_burst_end(&s.jobs, server.limits_of(s.workload)[Stage::Storage].rate);
    streams.iter().map(|s| 700.0 - end(s)).collect()
}

/// Longest response ÷ bound over the workloads; none may exceed 1.
fn worst_ratio(problem: &PlanningProblem, guarantees: &[Guarantee], longest: &[f64]) -> f64 {
    let mut worst = 0.0f64;
    for (guarantee, longest) in guarantees.iter().zip(longest) {
        let name = &problem.workloads[guarantee.workload].name;
        assert!(*longest <= guarantee.total, "{name}: {longest} s above its bound of {} s", guarantee.total);
        worst = worst.max(longest / guarantee.total);
    }
    worst
}

/// The published set of workloads and their jobs, work counted by its own few lines.
fn read(folder: &std::path::Path) -> (PlanningProblem, Vec<Vec<Job>>) {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let profile = StorageProfile::from_json(&text("ssd-profile.json")).unwrap();
    let network = "125MB/s".parse().unwrap();
    let normalisation = Normalisation { network, safety_margin: 1.0, sustained: true, enforced: None };
    let mut workloads = Vec::new();
    let mut jobs = Vec::new();
    for line in text("slos.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let requests: Vec<Request> = trace::open(&folder.join(fields[2]), &trace::OpenOptions::default())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let mut footprint = FootprintBuilder::new(NetworkModel::default(), &profile);
        requests.iter().for_each(|r| footprint.push(r).unwrap());
        let slo = Slo::new(fields[3].parse().unwrap(), Seconds(fields[4].parse().unwrap())).unwrap();
        let on_class = vec![normalisation.apply(&footprint.finish().unwrap())];
        workloads.push(PlanningWorkload { name: fields[1].to_owned(), slo, on_class });
        let mut storage = profile.work_model();
        jobs.push(requests.iter().map(|r| job(r, storage.work(r).0)).collect());
    }
    let class = PlanningClass { name: "ssd".into(), count: 62, enforced: None };
    (
        PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .unwrap(),
        jobs,
    )
}

fn job(request: &Request, storage_ps: u64) -> Job {
    let size = request.size.0 as f64;
    let data = 200.0 + 1.1 * size;
    let other = 200.0 + 0.025 * size;
    let (into, out) = if request.op == model::Op::Write { (data, other) } else { (other, data) };
    let work = PerStage::from_fn(|stage| match stage {
        Stage::NetworkIn => into / LINK_BYTES_PER_S,
        Stage::Storage => storage_ps as f64 / (1e9 * MILLI as f64),
        Stage::NetworkOut => out / LINK_BYTES_PER_S,
    });
    Job { arrival: request.arrival.as_secs(), work }
}
