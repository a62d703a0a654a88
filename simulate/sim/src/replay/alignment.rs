//! Alignments: the position of each stream in its trace when the window opens.
//!
//! - *Random*: every group independently and uniformly: the definition of "independent workloads". A group's
//!   shift depends only on the seed, the alignment's number and the group's number. A group thus appears at
//!   the same positions whichever groups share the server, so that more members never look better by luck.
//! - *Recorded*: all are at the beginning of their traces, as if recorded side by side.
//! - *Bursts together*: the effect of a correlated day. The worst burst of every stream ends at one instant,
//!   the middle of the window. A stream's worst burst ends at the maximum of a bucket that is drained at the
//!   stream's fair rate (its share of the work at the stage with the highest utilisation). Groups are
//!   ignored.

use super::stream::ReplayStream;
use super::system::ReplaySystem;
use super::trace::ReplayTrace;
use arrivals::split_seed;
use model::Stage;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// A rule for the shifts of streams: stream i's trace begins at `shifts[i]` after the window opens, and
/// repeats in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Groups shifted independently and uniformly over their longest period.
    Random {
        /// The seed of the family of alignments.
        seed: u64,
        /// The number of the alignment within the family.
        index: u64,
    },
    /// All traces begin when the window opens.
    Recorded,
    /// All worst bursts end at the same moment.
    BurstsTogether,
}

impl Alignment {
    /// The first `count` of a family of random alignments.
    pub fn random(seed: u64, count: usize) -> impl Iterator<Item = Self> {
        (0..count as u64).map(move |index| Self::Random { seed, index })
    }

    /// The shift of every stream, in their order.
    pub fn shifts(self, system: &ReplaySystem<'_>) -> Vec<Nanos> {
        match self {
            Self::Random { seed, index } => random_shifts(system, seed, index),
            Self::Recorded => vec![Nanos::ZERO; system.streams().len()],
            Self::BurstsTogether => shifts_of_bursts(system),
        }
    }
}

fn random_shifts(system: &ReplaySystem<'_>, seed: u64, index: u64) -> Vec<Nanos> {
    let streams = system.streams();
    let period = |stream: usize| streams[stream].trace.period().0;
    let mut by_group: Vec<usize> = (0..streams.len()).collect();
    by_group.sort_by_key(|s| streams[*s].group);
    let mut shifts = vec![Nanos::ZERO; streams.len()];
    for members in by_group.chunk_by(|a, b| streams[*a].group == streams[*b].group) {
        let longest = members.iter().map(|s| period(*s)).max().expect("a chunk has members");
        let group = streams[members[0]].group as u64;
        let group_seed = split_seed(split_seed(split_seed(seed, 0) ^ index, 0) ^ group, 0);
        let shift = StdRng::seed_from_u64(group_seed).random_range(0..longest);
        members.iter().for_each(|s| shifts[*s] = Nanos(shift));
    }
    shifts
}

fn shifts_of_bursts(system: &ReplaySystem<'_>) -> Vec<Nanos> {
    let total = system.utilisation();
    let busiest = Stage::ALL.into_iter().max_by(|a, b| total[*a].total_cmp(&total[*b]));
    let stage = busiest.expect("there are stages");
    let middle = system.horizon().0 / 2;
    let shift = |stream: &ReplayStream<'_>| {
        let trace = stream.trace;
        let fair = trace.utilisation()[stage] / total[stage];
        let end = worst_burst_end(trace, stage, if fair.is_finite() { fair } else { 0.0 });
        let period = trace.period().0;
        Nanos((middle % period + period - end % period) % period)
    };
    system.streams().iter().map(shift).collect()
}

/// The instant of the period at which a bucket into which the jobs pour their work, drained at `rate`, is fullest.
fn worst_burst_end(trace: &ReplayTrace, stage: Stage, rate: f64) -> u64 {
    let mut level = 0.0f64;
    let mut before = 0u64;
    let mut fullest = f64::NEG_INFINITY;
    let mut end = 0;
    // The first period fills the bucket as all earlier ones would have.
    for base in [0, trace.period().0] {
        fullest = f64::NEG_INFINITY;
        for job in trace.jobs() {
            let time = base + job.arrival.0;
            level = (level - rate * (time - before) as f64).max(0.0) + job.work[stage].0 as f64;
            before = time;
            if level > fullest {
                (fullest, end) = (level, job.arrival.0);
            }
        }
    }
    debug_assert!(fullest >= 0.0, "levels are not negative");
    end
}
