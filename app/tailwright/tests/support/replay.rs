//! Slow and obvious: requests through preemptive priority queues, one stage after the other.

use super::cluster::Request;
use super::judge::work;

/// Latencies in seconds, by workload, when workload i starts `shifts[i]` seconds late, everybody repeats for
/// ever and 0 is served first. The second of three rounds counts.
pub(crate) fn latencies(
    traces: &[&[Request]],
    priorities: &[u64],
    shifts: &[f64],
    has_storage: bool,
) -> Vec<Vec<f64>> {
    let period = |trace: &[Request]| {
        let span = (trace[trace.len() - 1].arrival_ns - trace[0].arrival_ns) as f64 / 1e9;
        span + span / (trace.len() as f64 - 1.0)
    };
    let horizon = traces.iter().map(|trace| period(trace)).fold(0.0, f64::max);
    // (time, workload, first arrival, work)
    let mut requests: Vec<(f64, usize, f64, [f64; 3])> = Vec::new();
    for (workload, trace) in traces.iter().enumerate() {
        let length = period(trace);
        let mut start = shifts[workload].rem_euclid(length) - length;
        while start < 3.0 * horizon {
            for request in *trace {
                let at = start + (request.arrival_ns - trace[0].arrival_ns) as f64 / 1e9;
                requests.push((at, workload, at, work(request)));
            }
            start += length;
        }
    }
    for stage in (0..3).filter(|stage| *stage != 1 || has_storage) {
        requests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let queue: Vec<(f64, u64, f64)> =
            requests.iter().map(|(at, w, _, work)| (*at, priorities[*w], work[stage])).collect();
        for (request, done) in requests.iter_mut().zip(serve(&queue)) {
            request.0 = done;
        }
    }
    let mut latencies = vec![Vec::new(); traces.len()];
    for (done, workload, arrival, _) in requests {
        if (horizon..2.0 * horizon).contains(&arrival) {
            latencies[workload].push(done - arrival);
        }
    }
    latencies
}

/// When each of (arrival, priority, work) is done; arrivals ascend. Whoever is first by (priority, arrival) is
/// worked on until it is done or somebody comes.
fn serve(queue: &[(f64, u64, f64)]) -> Vec<f64> {
    let mut done = vec![0.0; queue.len()];
    let mut left: Vec<f64> = queue.iter().map(|job| job.2).collect();
    let mut waiting: Vec<usize> = Vec::new();
    let mut now = f64::NEG_INFINITY;
    let arrivals = queue.iter().map(|job| job.0).chain([f64::INFINITY]);
    for (index, arrival) in arrivals.enumerate() {
        while let Some(first) = (0..waiting.len()).min_by_key(|&w| (queue[waiting[w]].1, waiting[w])) {
            let job = waiting[first];
            if now + left[job] > arrival {
                left[job] -= arrival - now;
                break;
            }
            now += left[job];
            done[job] = now;
            waiting.remove(first);
        }
        now = arrival;
        if index < queue.len() {
            waiting.push(index);
        }
    }
    done
}

/// Nearest-rank quantile; `percent` up to 100.
pub(crate) fn quantile(latencies: &[f64], percent: f64) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}
