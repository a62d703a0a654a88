//! Test of a trace for stationarity.
//!
//! The trace is cut into blocks of equal time. Tested are the work of the blocks and their burst, the smallest token
//! bucket that never delays the block's requests at twice the mean rate of the trace, each for one change anywhere. Blocks are
//! made longer until neighbours are no more alike than independent ones; where 16 are still alike, a change cannot be told
//! from long memory, and the answer says so.

use crate::assumptions::stream::{RecordedStream, Untested};
use confidence::{change_point, discoveries, neighbour_correlation};
use operation::ProgressObserver;
use units::Nanos;

/// Numbers of blocks that are tried, in order.
const BLOCKS: [usize; 3] = [64, 32, 16];
/// Minimum mean number of requests in a block.
const REQUESTS_PER_BLOCK: usize = 10;
/// Permutations of each test.
const PERMUTATIONS: u32 = 9999;
/// The seed of the permutations.
const SEED: u64 = 1;
/// Independent neighbours are more alike than this, in standard deviations, with a probability of 5 %.
const ALIKE: f64 = 1.645;
/// The rate at which bursts are measured, by the mean rate of the trace.
const BURST_RATE: f64 = 2.0;

/// Stationarity of a stream.
#[derive(Debug, Clone)]
pub struct StreamAssessment {
    /// The change of its mean work.
    pub work: Result<StreamChange, Untested>,
    /// The change of its bursts.
    pub bursts: Result<StreamChange, Untested>,
}

/// The most visible change in a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamChange {
    /// The probability of one as visible in a stream without changes.
    pub p_value: f64,
    /// True if the change is too large for chance, corrected for the number of streams.
    pub changed: bool,
    /// When it is, counted from the first request.
    pub at: Nanos,
    /// The mean after it ÷ the mean before it; infinite where there was nothing before.
    pub ratio: f64,
    /// The length of the blocks that were compared, seconds.
    pub block_s: f64,
}

/// Looks for changes in every stream, and decides on all together.
pub(super) fn assess_streams(
    streams: &[RecordedStream],
    false_discoveries: f64,
    observer: &dyn ProgressObserver,
) -> Vec<StreamAssessment> {
    let task = observer.begin("looking for changes", streams.len() as u64, "traces");
    let mut assessments = machine::parallel::map(streams, |stream| {
        let assessment = StreamAssessment {
            work: most_visible_change(stream, work_by_block),
            bursts: most_visible_change(stream, burst_by_block),
        };
        task.advance();
        assessment
    });
    decide(&mut assessments, false_discoveries);
    assessments
}

/// Says of each change whether it counts.
fn decide(assessments: &mut [StreamAssessment], false_discoveries: f64) {
    let mut changes: Vec<&mut StreamChange> = Vec::new();
    for assessment in assessments {
        changes.extend(assessment.work.as_mut().ok());
        changes.extend(assessment.bursts.as_mut().ok());
    }
    let p_values: Vec<f64> = changes.iter().map(|change| change.p_value).collect();
    for (change, counts) in changes.into_iter().zip(discoveries(&p_values, false_discoveries)) {
        change.changed = counts;
    }
}

fn most_visible_change(
    stream: &RecordedStream,
    by_block: fn(&RecordedStream, usize) -> Vec<f64>,
) -> Result<StreamChange, Untested> {
    let found = stream.traffic.items().len();
    let (first, last) = stream.span();
    let mut block_s = 0.0;
    for blocks in BLOCKS {
        if found < blocks * REQUESTS_PER_BLOCK || last == first {
            continue;
        }
        block_s = Nanos(last - first).as_secs() / blocks as f64;
        let values = by_block(stream, blocks);
        let change = change_point(&values, PERMUTATIONS, SEED);
        if neighbour_correlation(&values, change.at) > ALIKE / (blocks as f64).sqrt() {
            continue;
        }
        let (before, after) = values.split_at(change.at);
        let at = Nanos((last - first) / blocks as u64 * change.at as u64);
        return Ok(StreamChange {
            p_value: change.p_value,
            changed: false,
            at,
            ratio: mean(after) / mean(before),
            block_s,
        });
    }
    let needed = BLOCKS[BLOCKS.len() - 1] * REQUESTS_PER_BLOCK;
    Err(if block_s > 0.0 {
        Untested::LongMemory(block_s)
    } else {
        Untested::TooFewRequests { found, needed }
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The block of each request beside its instant and work.
fn with_blocks(stream: &RecordedStream, blocks: usize) -> impl Iterator<Item = (usize, u64, f64)> + '_ {
    let (first, last) = stream.span();
    let length = (last - first).div_ceil(blocks as u64).max(1);
    stream.work().map(move |(at, work)| {
        let block = usize::try_from((at - first) / length).expect("fewer blocks than nanoseconds");
        (block.min(blocks - 1), at, work)
    })
}

/// The work of each block.
fn work_by_block(stream: &RecordedStream, blocks: usize) -> Vec<f64> {
    let mut values = vec![0.0; blocks];
    with_blocks(stream, blocks).for_each(|(block, _, work)| values[block] += work);
    values
}

/// The burst of each block, which begins idle.
fn burst_by_block(stream: &RecordedStream, blocks: usize) -> Vec<f64> {
    let (first, last) = stream.span();
    let total: f64 = stream.work().map(|(_, work)| work).sum();
    let rate = BURST_RATE * total / (last - first) as f64;
    let mut values = vec![0.0f64; blocks];
    let mut backlog = 0.0f64;
    let mut before = first;
    let mut current = 0;
    for (block, at, work) in with_blocks(stream, blocks) {
        backlog =
            if block == current { (backlog - rate * (at - before) as f64).max(0.0) } else { 0.0 } + work;
        values[block] = values[block].max(backlog);
        (before, current) = (at, block);
    }
    values
}
