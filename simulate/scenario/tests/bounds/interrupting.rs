//! A server whose stages interrupt what they have begun, in plain code: limiters in front of each stage, then preemptive
//! priorities, first come, first served within a level. From the JSON of a policy alone.

use crate::brute::{Asked, buckets, level, workload};
use serde_json::Value;
use std::collections::BTreeMap;

/// Work at a stage.
struct StageJob {
    arrival: u64,
    level: u64,
    work: u64,
    /// The workload, and the position among its requests.
    request: (usize, usize),
}

/// The latencies of the requests of workloads of one server, each by its name, in order of arrival, nanoseconds.
pub(crate) fn interrupting_latencies(policy: &Value, loads: &[(String, Vec<Asked>)]) -> Vec<Vec<u64>> {
    let mut reached: Vec<Vec<u64>> =
        loads.iter().map(|(_, asked)| asked.iter().map(|(arrival, _)| *arrival).collect()).collect();
    for stage in 0..3 {
        let mut jobs = Vec::new();
        for (number, (name, asked)) in loads.iter().enumerate() {
            let own = workload(policy, name);
            let mut limiters = buckets(own, stage, true);
            let mut now = 0;
            for (position, (_, work)) in asked.iter().enumerate() {
                let work = work[stage];
                now = reached[number][position].max(now);
                limiters.iter_mut().for_each(|bucket| bucket.fill(now));
                now = limiters.iter().map(|bucket| bucket.due(work as f64)).max().unwrap_or(now).max(now);
                for bucket in &mut limiters {
                    bucket.fill(now);
                    bucket.take(work);
                }
                jobs.push(StageJob {
                    arrival: now,
                    level: level(own, stage),
                    work,
                    request: (number, position),
                });
            }
        }
        jobs.sort_by_key(|job| job.arrival);
        for (job, done) in jobs.iter().zip(served(&jobs)) {
            let (number, position) = job.request;
            reached[number][position] = done;
        }
    }
    let mut latencies = Vec::new();
    for (done, (_, asked)) in reached.into_iter().zip(loads) {
        latencies.push(done.into_iter().zip(asked).map(|(done, (arrival, _))| done - arrival).collect());
    }
    latencies
}

/// Returns the instant at which each job is done; the jobs are in order of arrival.
fn served(jobs: &[StageJob]) -> Vec<u64> {
    let mut done = vec![0; jobs.len()];
    let mut ready: BTreeMap<(u64, usize), u64> = BTreeMap::new();
    let mut now = 0;
    let mut next = 0;
    loop {
        while let Some(job) = jobs.get(next).filter(|job| job.arrival <= now) {
            ready.insert((job.level, next), job.work);
            next += 1;
        }
        let interrupted = jobs.get(next).map_or(u64::MAX, |job| job.arrival);
        let Some(mut first) = ready.first_entry() else {
            if next == jobs.len() {
                return done;
            }
            now = interrupted;
            continue;
        };
        let end = now + first.get();
        if end <= interrupted {
            done[first.key().1] = end;
            first.remove();
            now = end;
        } else {
            *first.get_mut() = end - interrupted;
            now = interrupted;
        }
    }
}
