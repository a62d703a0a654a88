//! Silo (thesis §4.3.1): bandwidth and a small burst per workload; packets are guaranteed a latency.
//!
//! A packet waits at most for everybody's burst on each link, Σ b in seconds of the link, as long as Σ r is
//! within the link and no queue is longer than its buffer. What requests wait in the end host's limiter is
//! "left to the user", and so is the bandwidth, which the thesis chooses "by trial and error". The reading
//! here, [`Trial`]: the user replays the own trace through the own limiters, at one multiple of the mean
//! rate after the other, and takes the first whose latency at the SLO's percentile leaves some of the SLO
//! to the network. This is kind to Silo: every user finds a good bandwidth, and knows the delay that
//! comes with it.

use super::super::applicant::{Priority, ServerView};
use super::super::procedure::Procedure;
use super::{LINKS, no_priorities, overload};
use model::{CircularTrace, Job, PerStage, Slo, Stage, UndefinedLatency};

/// The part of its SLO that a user lets the own limiters take.
const SHARE: f64 = 0.8;
/// The first multiple of the mean rate, and the factor to the next.
const FIRST_MULTIPLE: f64 = 1.1;
const NEXT_MULTIPLE: f64 = 1.25;
/// More than this multiple is not tried.
const LARGEST_MULTIPLE: f64 = 1000.0;

/// Admission by bandwidth, burst and buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silo {
    /// Everybody's burst on a link, seconds of the link; the thesis fixes 1.5 KB.
    pub burst: f64,
    /// What the queue of a link may hold, seconds of the link.
    pub buffer: f64,
}

/// What a user chose by trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Fraction of each link.
    pub bandwidth: PerStage<f64>,
    /// Latency in the own limiters at the SLO's percentile, seconds.
    pub shaping: f64,
    pub(super) uses_storage: bool,
}

impl Trial {
    /// The first multiple of the mean rate at which the limiters take at most a part of the SLO; the largest
    /// that was tried when none does.
    pub fn choose(traffic: &CircularTrace<Job>, slo: Slo, burst: f64) -> Self {
        let mean = traffic.utilisation();
        let uses_storage = mean[Stage::Storage] > 0.0;
        let mut multiple = FIRST_MULTIPLE;
        loop {
            let bandwidth = mean.map(|rate| rate * multiple);
            let shaping = quantile(shaped(traffic, &bandwidth, burst), slo);
            multiple *= NEXT_MULTIPLE;
            if shaping <= SHARE * slo.latency.0 || multiple > LARGEST_MULTIPLE {
                return Self { bandwidth, shaping, uses_storage };
            }
        }
    }
}

/// How long each request takes through both limiters, one after the other: until its last byte is let go.
/// A link without traffic holds up nothing.
fn shaped(traffic: &CircularTrace<Job>, bandwidth: &PerStage<f64>, burst: f64) -> Vec<f64> {
    // Work in front of the limiter beyond the bucket, as the time when it will have been let go.
    let mut clear = PerStage::from_fn(|_| f64::NEG_INFINITY);
    let through = |job: &Job| {
        let arrival = job.arrival.as_secs();
        let mut now = arrival;
        for stage in LINKS.into_iter().filter(|&stage| bandwidth[stage] > 0.0) {
            let full = now - burst / bandwidth[stage];
            let done: f64 = clear[stage];
            clear[stage] = done.max(full) + job.work[stage].as_secs() / bandwidth[stage];
            now = now.max(clear[stage]);
        }
        now - arrival
    };
    traffic.items().iter().map(through).collect()
}

/// The smallest latency that at least the SLO's fraction of requests does not exceed.
fn quantile(mut latencies: Vec<f64>, slo: Slo) -> f64 {
    // Not negative and at most the length.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (slo.percentile.fraction() * latencies.len() as f64).ceil() as usize;
    let rank = rank.clamp(1, latencies.len());
    *latencies.select_nth_unstable_by(rank - 1, f64::total_cmp).1
}

impl Procedure for Silo {
    type Sketch = Trial;

    fn name(&self) -> &'static str {
        "silo"
    }

    fn priorities(&self, server: &ServerView<'_, Trial>) -> Vec<Priority> {
        no_priorities(server)
    }

    fn latencies(
        &self,
        server: &ServerView<'_, Trial>,
        _: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let rate = |stage| server.members.iter().map(|m| m.sketch.bandwidth[stage]).sum();
        let queue = self.burst * server.members.len() as f64;
        let refused = overload(rate).or((queue > self.buffer).then_some(UndefinedLatency::NoBound));
        let packet = queue * LINKS.len() as f64;
        let latency = |trial: &Trial| match refused {
            Some(refused) => Err(refused),
            None if trial.uses_storage => Err(UndefinedLatency::NoBound),
            None => Ok(trial.shaping + packet + server.base_latency),
        };
        server.members.iter().map(|m| latency(&m.sketch)).collect()
    }
}
