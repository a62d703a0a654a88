//! QJump and QJump++ (thesis §4.3.1): classes of service, each with a throughput and a priority.
//!
//! Level 0 is served first and may send least; each further level may send more and is served later. At each
//! end of the link a limiter lets one packet at once and the level's throughput in the long run pass. The
//! latency of a level on a link is the one that strict priority leaves to such traffic (thesis Eq. 5.1):
//! one packet of every workload at the same or a higher level, served at the rate that higher levels leave; end-host
//! delay comes from the workload's own curve. All workloads begin at level 0, and each that misses its SLO
//! goes up a level, until none does or one of them cannot.
//!
//! QJump sets throughputs by an equation ("Equation (4)" of its paper), which the thesis does not print but
//! says depends on the number of workloads n and "severely limits" admission. The reading here: an epoch is
//! long enough for two packets of every workload, 2n·P/R, a level of factor f may send f packets in each, so
//! its throughput is f/(2n) of the link, for f = 1, 2, 4, … n. QJump++ fixes the set of throughputs.
//! Both find levels and check latencies in the same way, as in the thesis's comparison of the two.

use super::super::applicant::{Priority, SharedServer};
use super::super::procedure::AdmissionProcedure;
use super::{LINKS, MAX_RATE, ROUNDING, StageCurves};
use calculus::{StageLoad, shaping_delay, stage_delay};
use model::{PerStage, UndefinedLatency};

/// The throughputs of the levels, fractions of the link.
#[derive(Debug, Clone, PartialEq)]
pub enum QJumpLevels {
    /// The throughputs f/(2n) for n workloads and f = 1, 2, 4, … n (QJump).
    Equation,
    /// A fixed set of throughputs, ascending (QJump++).
    Fixed(Vec<f64>),
}

/// Admission by class of service (QJump and QJump++).
#[derive(Debug, Clone, PartialEq)]
pub struct QJump {
    /// The time that a packet takes on a link, seconds.
    pub packet: f64,
    /// The throughputs that the levels may have.
    pub levels: QJumpLevels,
}

impl QJump {
    /// The throughput of each level, ascending, for this number of workloads.
    pub(super) fn throughputs(&self, workloads: usize) -> Vec<f64> {
        let n = workloads as f64;
        match &self.levels {
            QJumpLevels::Fixed(throughputs) => throughputs.clone(),
            QJumpLevels::Equation => {
                let factors = std::iter::successors(Some(1.0), |f| Some(f * 2.0)).take_while(|&f| f <= n);
                factors.map(|f| f / (2.0 * n)).collect()
            }
        }
    }

    /// The latency on both links of each level, for this many workloads on each.
    fn network_latencies(&self, throughputs: &[f64], counts: &[usize]) -> Vec<Result<f64, UndefinedLatency>> {
        let mut packets = 0.0;
        let mut rate_above = 0.0;
        let mut latencies = Vec::with_capacity(throughputs.len());
        for (&throughput, &count) in throughputs.iter().zip(counts) {
            packets += self.packet * count as f64;
            let rate = rate_above + throughput * count as f64;
            let delay = stage_delay(StageLoad::preemptive(packets, rate_above)) * LINKS.len() as f64;
            rate_above = rate;
            latencies.push(if rate <= MAX_RATE * ROUNDING {
                Ok(delay)
            } else {
                Err(UndefinedLatency::Overload { stage: LINKS[0], utilisation: rate })
            });
        }
        latencies
    }

    /// The latency of each member when the members have these levels.
    fn latencies_at(
        &self,
        server: &SharedServer<'_, StageCurves>,
        levels: &[usize],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let throughputs = self.throughputs(levels.len());
        let mut counts = vec![0; throughputs.len()];
        levels.iter().for_each(|&level| counts[level] += 1);
        let network = self.network_latencies(&throughputs, &counts);
        let mut latencies = Vec::with_capacity(levels.len());
        for (member, &level) in server.members.iter().zip(levels) {
            if member.sketch.uses_storage() {
                latencies.push(Err(UndefinedLatency::NoBound));
                continue;
            }
            // Infinite where the level sends less than the workload does.
            let curves = &member.sketch.curves;
            let shaping: f64 =
                LINKS.map(|s| shaping_delay(&curves[s], throughputs[level], self.packet)).iter().sum();
            latencies.push(network[level].map(|delay| delay + shaping + member.base_latency));
        }
        latencies
    }

    /// The level of each member when all SLOs are kept, or when a member that misses its SLO is on the last level.
    fn levels_by_slo(&self, server: &SharedServer<'_, StageCurves>) -> Vec<usize> {
        let Some(last) = self.throughputs(server.members.len()).len().checked_sub(1) else {
            return vec![0; server.members.len()];
        };
        let mut levels = vec![0; server.members.len()];
        loop {
            let latencies = self.latencies_at(server, &levels);
            let missing: Vec<usize> = (0..levels.len())
                .filter(|&i| !latencies[i].is_ok_and(|latency| server.keeps(i, latency)))
                .collect();
            if missing.iter().any(|&i| levels[i] == last) || missing.is_empty() {
                return levels;
            }
            missing.iter().for_each(|&i| levels[i] += 1);
        }
    }
}

impl AdmissionProcedure for QJump {
    type Sketch = StageCurves;

    fn name(&self) -> &'static str {
        match self.levels {
            QJumpLevels::Equation => "qjump",
            QJumpLevels::Fixed(_) => "qjump++",
        }
    }

    fn priorities(&self, server: &SharedServer<'_, StageCurves>) -> Vec<Priority> {
        let levels = self.levels_by_slo(server).into_iter();
        levels
            .map(|level| u32::try_from(level).expect("there are few levels"))
            .map(|level| PerStage::from_fn(|_| level))
            .collect()
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, StageCurves>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        if self.throughputs(server.members.len()).is_empty() {
            return vec![Err(UndefinedLatency::NoBound); server.members.len()];
        }
        let levels: Vec<usize> = priorities.iter().map(|p| p[LINKS[0]] as usize).collect();
        self.latencies_at(server, &levels)
    }
}
