//! Silo (thesis §4.3.1): bandwidth and a small burst per workload; packets are guaranteed a latency.
//!
//! A packet waits at most for the bursts of all workloads on each link, Σ b in seconds of the link, as long as Σ r is
//! within the link and no queue is longer than its buffer. What requests wait in the end host's limiter is
//! "left to the user", and so is the bandwidth, which the thesis chooses "by trial and error". The reading
//! here, [`TrialBandwidth`]: the user replays the own trace through the own limiters, at one multiple of the mean
//! rate after the other, and takes the first whose latency at the SLO's percentile leaves some of the SLO
//! to the network. This is kind to Silo: every user finds a good bandwidth, and knows the delay that
//! comes with it.

use super::super::applicant::{Priority, SharedServer};
use super::super::procedure::AdmissionProcedure;
use super::{LINKS, no_priorities, overload};
use model::{CircularTrace, Job, PerStage, Slo, Stage, UndefinedLatency};

/// The part of the SLO that a user lets the own limiters take.
const SHARE: f64 = 0.8;
/// The first multiple of the mean rate that is tried.
const FIRST_MULTIPLE: f64 = 1.1;
/// The factor from one multiple to the next.
const NEXT_MULTIPLE: f64 = 1.25;
/// Multiples above this one are not tried.
const LARGEST_MULTIPLE: f64 = 1000.0;

/// Admission by bandwidth, burst and buffer (Silo).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silo {
    /// The burst of every workload on a link, seconds of the link; the thesis fixes 1.5 KB.
    pub burst: f64,
    /// The work that the queue of a link may hold, seconds of the link.
    pub buffer: f64,
}

/// The bandwidth that a user chose by trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialBandwidth {
    /// The bandwidth as a fraction of each link.
    pub bandwidth: PerStage<f64>,
    /// The latency in the own limiters at the SLO's percentile, seconds.
    pub shaping: f64,
    pub(super) uses_storage: bool,
}

impl TrialBandwidth {
    /// The first multiple of the mean rate at which the limiters take at most a part of the SLO; the largest
    /// that was tried when none does.
    pub fn choose(traffic: &CircularTrace<Job>, slo: Slo, burst: f64) -> Self {
        let mean = traffic.utilisation();
        let uses_storage = mean[Stage::Storage] > 0.0;
        let mut multiple = FIRST_MULTIPLE;
        loop {
            let bandwidth = mean.map(|rate| rate * multiple);
            let shaping = quantile(shaping_latencies(traffic, &bandwidth, burst), slo);
            multiple *= NEXT_MULTIPLE;
            if shaping <= SHARE * slo.latency.0 || multiple > LARGEST_MULTIPLE {
                return Self { bandwidth, shaping, uses_storage };
            }
        }
    }
}

/// Returns the time of each request through both limiters in sequence, until its last byte leaves the second,
/// seconds. A link without traffic adds no delay.
fn shaping_latencies(traffic: &CircularTrace<Job>, bandwidth: &PerStage<f64>, burst: f64) -> Vec<f64> {
    // For each limiter, when the work in front of it beyond the bucket will have passed.
    let mut clear_at = PerStage::from_fn(|_| f64::NEG_INFINITY);
    let mut latencies = Vec::with_capacity(traffic.items().len());
    for job in traffic.items() {
        let arrival = job.arrival.as_secs();
        let mut now = arrival;
        for stage in LINKS.into_iter().filter(|&stage| bandwidth[stage] > 0.0) {
            let full = now - burst / bandwidth[stage];
            let clear: f64 = clear_at[stage];
            clear_at[stage] = clear.max(full) + job.work[stage].as_secs() / bandwidth[stage];
            now = now.max(clear_at[stage]);
        }
        latencies.push(now - arrival);
    }
    latencies
}

/// The smallest latency that at least the SLO's fraction of requests does not exceed.
fn quantile(mut latencies: Vec<f64>, slo: Slo) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the length")]
    let rank = (slo.percentile.fraction() * latencies.len() as f64).ceil() as usize;
    let rank = rank.clamp(1, latencies.len());
    *latencies.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}

impl AdmissionProcedure for Silo {
    type Sketch = TrialBandwidth;

    fn name(&self) -> &'static str {
        "silo"
    }

    fn priorities(&self, server: &SharedServer<'_, TrialBandwidth>) -> Vec<Priority> {
        no_priorities(server)
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, TrialBandwidth>,
        _: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let rate_on = |stage| server.members.iter().map(|m| m.sketch.bandwidth[stage]).sum();
        let queue = self.burst * server.members.len() as f64;
        let undefined = overload(rate_on).or((queue > self.buffer).then_some(UndefinedLatency::NoBound));
        let packet = queue * LINKS.len() as f64;
        let latencies = server.members.iter().map(|member| match undefined {
            Some(undefined) => Err(undefined),
            None if member.sketch.uses_storage => Err(UndefinedLatency::NoBound),
            None => Ok(member.sketch.shaping + packet + member.base_latency),
        });
        latencies.collect()
    }
}
