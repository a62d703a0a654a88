//! Tests of the models' assumptions on traces: workloads are independent, and each is stationary.
//!
//! Pairs that were recorded together are tested for common bursts, and each trace for changes. Untestable
//! pairs and traces are reported with the reason. Dependent pairs are joined into groups, and servers are
//! counted both with all workloads independent and with these groups.

mod independence;
mod pricing;
mod recording;
mod settings;
mod stationarity;
mod stream;

pub use independence::{ComparedScale, PairAssessment, PairComparison};
pub use pricing::{ModelPrice, WorkloadPrice, price};
pub use recording::Recording;
pub use settings::AssumptionSettings;
pub use stationarity::{StreamAssessment, StreamChange};
pub use stream::{RecordedStream, Untested, read_streams, recorded_workloads};

use independence::assess_pairs;
use operation::ProgressObserver;
use recording::recordings;
use stationarity::assess_streams;

/// Results of all tests.
#[derive(Debug)]
pub struct AssumptionReport {
    /// The settings of the tests.
    pub settings: AssumptionSettings,
    /// The traces that were recorded together; each trace with a clock is in one.
    pub recordings: Vec<Recording>,
    /// Each pair, by the indices of its streams.
    pub pairs: Vec<PairAssessment>,
    /// Stationarity of each stream.
    pub streams: Vec<StreamAssessment>,
    /// The streams that are busy together, directly or through others: groups of at least two indices.
    pub groups: Vec<Vec<usize>>,
}

/// Tests what models assume of these streams.
pub fn assess(
    streams: &[RecordedStream],
    settings: AssumptionSettings,
    observer: &dyn ProgressObserver,
) -> AssumptionReport {
    let recordings = if settings.one_clock { recordings(streams) } else { Vec::new() };
    let pairs = assess_pairs(streams, &recordings, settings, observer);
    let groups = joined(streams.len(), &pairs);
    let streams = assess_streams(streams, settings.false_discoveries, observer);
    AssumptionReport { settings, recordings, pairs, streams, groups }
}

/// The connected components of the dependent pairs that have at least two members.
fn joined(count: usize, pairs: &[PairAssessment]) -> Vec<Vec<usize>> {
    let mut group_of: Vec<usize> = (0..count).collect();
    for pair in pairs.iter().filter(|pair| pair.is_dependent()) {
        let [from, to] = [pair.a, pair.b].map(|index| group_of[index]);
        group_of.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
    }
    let members = |group: usize| (0..count).filter(|&index| group_of[index] == group).collect::<Vec<_>>();
    let mut groups: Vec<Vec<usize>> = (0..count).map(members).filter(|group| group.len() > 1).collect();
    groups.sort();
    groups
}

impl AssumptionReport {
    /// Returns true if every test was possible and none found a violation.
    pub fn is_clean(&self) -> bool {
        let is_steady = |found: &Result<StreamChange, Untested>| found.is_ok_and(|found| !found.changed);
        let pairs = self.pairs.iter().all(|pair| pair.outcome.is_ok() && !pair.is_dependent());
        pairs && self.streams.iter().all(|stream| is_steady(&stream.work) && is_steady(&stream.bursts))
    }

    /// The group of each stream, numbered by their first members; streams of no group have one of their own.
    pub fn group_of(&self) -> Vec<usize> {
        let mut group_of: Vec<usize> = (0..self.streams.len()).collect();
        for group in &self.groups {
            group.iter().for_each(|&member| group_of[member] = group[0]);
        }
        group_of
    }
}
