//! A case behind one link in simulated time: disks first come first served, and a link that serves by priority.
//!
//! The link interrupts an answer for one of a higher priority, as a queue of packets nearly does. Limits hold nothing
//! back, because the traffic is what they were made for. TCP and the way through the machine take no time.

use super::super::case_plan::CasePlan;
use super::super::definition::PolicyName;
use super::super::device_simulation::SimulatedLatencies;
use super::work::{link_time, tenant_disk};
use model::Policy;
use std::collections::VecDeque;
use units::Nanos;

/// An answer on its way to its client.
#[derive(Debug, Clone, Copy)]
struct Answer {
    tenant: usize,
    /// When the request arrived.
    asked: Nanos,
    /// Time at which the answer reaches the link.
    ready: Nanos,
    /// The time on the link that it still needs.
    left: Nanos,
}

/// Plays a case under a policy, and returns the latencies of all requests that arrive between the end of the warm-up and
/// `end`, in order of arrival.
pub(in super::super) fn simulate_on_link(
    case: &CasePlan,
    policy: PolicyName,
    warm_up: Nanos,
    end: Nanos,
) -> SimulatedLatencies {
    let levels = levels(case, policy);
    let answers = answers(case, end);
    let mut queues = vec![VecDeque::new(); levels.iter().max().map_or(0, |lowest| lowest + 1)];
    let mut latencies = vec![Vec::new(); levels.len()];
    let mut now = Nanos::ZERO;
    let mut next = 0;
    loop {
        let coming = answers.get(next).map(|answer: &Answer| answer.ready);
        match queues.iter_mut().find_map(|queue: &mut VecDeque<Answer>| queue.front_mut()) {
            None => now = if let Some(ready) = coming { ready } else { break },
            Some(first) => match coming.filter(|ready| *ready < now + first.left) {
                Some(ready) => {
                    first.left = first.left.saturating_sub(ready - now);
                    now = ready;
                }
                None => {
                    now = now + first.left;
                    let tenant = first.tenant;
                    let asked = first.asked;
                    queues[levels[tenant]].pop_front();
                    latencies[tenant].push((asked, Some(now - asked)));
                }
            },
        }
        while let Some(answer) = answers.get(next).filter(|answer| answer.ready <= now) {
            queues[levels[answer.tenant]].push_back(*answer);
            next += 1;
        }
    }
    let counted = |all: Vec<(Nanos, Option<Nanos>)>| {
        all.into_iter().filter(|(asked, _)| *asked >= warm_up).map(|(_, latency)| latency).collect()
    };
    latencies.into_iter().map(counted).collect()
}

/// Returns the level of each tenant, 0 first. Refused tenants come last.
fn levels(case: &CasePlan, policy: PolicyName) -> Vec<usize> {
    let by = |policy: &Policy| {
        let last = policy.workloads.len();
        let level = |priority: Option<u32>| priority.map_or(last, |level| (level as usize).min(last));
        policy.workloads.iter().map(|workload| level(workload.priority)).collect()
    };
    match policy {
        PolicyName::BySlo => by(&case.by_slo),
        PolicyName::Tailwright => by(&case.policy),
        _ => vec![0; case.sent.len()],
    }
}

/// All answers until `end`, in the order in which they come to the link.
fn answers(case: &CasePlan, end: Nanos) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (index, (tenant, sent)) in case.case.tenants.iter().zip(&case.sent).enumerate() {
        let disk = tenant_disk(tenant, sent);
        let mut free_at = Nanos::ZERO;
        for request in sent.trace.until(end) {
            let asked = request.arrival;
            if let Some(disk) = &disk {
                free_at = free_at.max(asked) + disk.service_time(request.op, request.size);
            }
            let left = Nanos::from_secs(link_time(&request)).expect("an answer is short");
            answers.push(Answer { tenant: index, asked, ready: free_at.max(asked), left });
        }
    }
    answers.sort_by_key(|answer| answer.ready);
    answers
}
