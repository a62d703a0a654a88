//! QJump and QJump++ (thesis §4.3.1): classes of service, each with a throughput and a priority.
//!
//! Level 0 is served first and may send least; each further level may send more and is served later. At each
//! end of the link a limiter lets one packet at once and the level's throughput in the long run pass. The
//! latency of a level on a link is the one that strict priority leaves to such traffic (thesis Eq. 5.1):
//! one packet of everybody at the same or a higher level, served at the rate that higher levels leave; end-host
//! delay comes from the workload's own curve. Everybody begins at level 0, and whoever misses its SLO
//! goes up a level, until nobody does or somebody cannot.
//!
//! QJump sets throughputs by an equation ("Equation (4)" of its paper), which the thesis does not print but
//! says depends on the number of workloads n and "severely limits" admission. The reading here: an epoch is
//! long enough for two packets of everybody, 2n·P/R, a level of factor f may send f packets in each, so
//! its throughput is f/(2n) of the link, for f = 1, 2, 4, … n. QJump++ fixes the set of throughputs.
//! Both find levels and check latencies in the same way, as in the thesis's comparison of the two.

use super::super::applicant::{Priority, ServerView};
use super::super::procedure::Procedure;
use super::{Demand, LINKS, MAX_RATE, ROUNDING};
use calculus::{shaping_delay, stage_delay};
use model::{PerStage, UndefinedLatency};

/// The throughput of each level, fraction of the link.
#[derive(Debug, Clone, PartialEq)]
pub enum Levels {
    /// f/(2n) for n workloads and f = 1, 2, 4, … n (QJump).
    Equation,
    /// These, ascending (QJump++).
    Fixed(Vec<f64>),
}

/// Admission by class of service.
#[derive(Debug, Clone, PartialEq)]
pub struct QJump {
    /// A packet on a link, seconds of the link.
    pub packet: f64,
    /// What the levels may send.
    pub levels: Levels,
}

impl QJump {
    pub(super) fn throughputs(&self, workloads: usize) -> Vec<f64> {
        let n = workloads as f64;
        match &self.levels {
            Levels::Fixed(throughputs) => throughputs.clone(),
            Levels::Equation => {
                let factors = std::iter::successors(Some(1.0), |f| Some(f * 2.0)).take_while(|&f| f <= n);
                factors.map(|f| f / (2.0 * n)).collect()
            }
        }
    }

    /// Latency on both links by level, for this many workloads on each.
    fn network(&self, throughputs: &[f64], counts: &[usize]) -> Vec<Result<f64, UndefinedLatency>> {
        let (mut packets, mut rate_above) = (0.0, 0.0);
        let level = |(&throughput, &count): (&f64, &usize)| {
            packets += self.packet * count as f64;
            let rate = rate_above + throughput * count as f64;
            let delay = stage_delay(packets, rate_above) * LINKS.len() as f64;
            rate_above = rate;
            if rate <= MAX_RATE * ROUNDING {
                Ok(delay)
            } else {
                Err(UndefinedLatency::Overload { stage: LINKS[0], utilisation: rate })
            }
        };
        throughputs.iter().zip(counts).map(level).collect()
    }

    fn at_levels(
        &self,
        server: &ServerView<'_, Demand>,
        levels: &[usize],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let throughputs = self.throughputs(levels.len());
        let mut counts = vec![0; throughputs.len()];
        levels.iter().for_each(|&level| counts[level] += 1);
        let network = self.network(&throughputs, &counts);
        let latency = |i: usize| {
            let demand = server.members[i].sketch.as_ref();
            if demand.uses_storage() {
                return Err(UndefinedLatency::NoBound);
            }
            let rate = throughputs[levels[i]];
            // Infinite where the level sends less than the workload does.
            let shaping: f64 =
                LINKS.map(|s| shaping_delay(&demand.curves[s], rate, self.packet)).iter().sum();
            network[levels[i]].map(|delay| delay + shaping + server.base_latency)
        };
        (0..levels.len()).map(latency).collect()
    }

    /// Everybody's level when nobody who misses its SLO can go up any more, or nobody does.
    fn settle(&self, server: &ServerView<'_, Demand>) -> Vec<usize> {
        let Some(last) = self.throughputs(server.members.len()).len().checked_sub(1) else {
            return vec![0; server.members.len()];
        };
        let mut levels = vec![0; server.members.len()];
        loop {
            let latencies = self.at_levels(server, &levels);
            let misses = |i: &usize| !latencies[*i].is_ok_and(|l| server.keeps(*i, l));
            let missing: Vec<usize> = (0..levels.len()).filter(misses).collect();
            if missing.iter().any(|&i| levels[i] == last) || missing.is_empty() {
                return levels;
            }
            missing.iter().for_each(|&i| levels[i] += 1);
        }
    }
}

impl Procedure for QJump {
    type Sketch = Demand;

    fn name(&self) -> &'static str {
        match self.levels {
            Levels::Equation => "qjump",
            Levels::Fixed(_) => "qjump++",
        }
    }

    fn priorities(&self, server: &ServerView<'_, Demand>) -> Vec<Priority> {
        let level = |level: usize| u32::try_from(level).expect("there are few levels");
        self.settle(server).into_iter().map(|l| PerStage::from_fn(|_| level(l))).collect()
    }

    fn latencies(
        &self,
        server: &ServerView<'_, Demand>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        if self.throughputs(server.members.len()).is_empty() {
            return vec![Err(UndefinedLatency::NoBound); server.members.len()];
        }
        let levels: Vec<usize> = priorities.iter().map(|p| p[LINKS[0]] as usize).collect();
        self.at_levels(server, &levels)
    }
}
