//! The state machine that turns answered requests into chunks. Its clock is an argument.

use super::{CHUNK_NS, CHUNKS_MAX, CORNERS_MAX, LargestRequest, StageCurves};
use crate::burst::{BurstBuilder, BurstError, StageArrival};
use model::{PerStage, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::{Nanos, Work};

/// Time for which an answered request waits for earlier ones, nanoseconds.
const HOLD_NS: u64 = 1_000_000_000;
/// Maximum number of requests that wait.
const HELD_MAX: usize = 4096;
/// Requests after which a builder's curve is merged. It bounds the memory of the builder, whatever the arrivals.
const BUILT_MAX: usize = 4096;
/// Time for which chunks are kept, nanoseconds.
const KEPT_NS: u64 = 120_000_000_000;
/// Maximum number of chunks without further traffic that one question closes.
const CLOSED_MAX: usize = 256;

/// An answered request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveArrival {
    pub at: Nanos,
    pub work: PerStage<Work>,
}

/// The curves of some seconds of a workload's traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveChunk {
    /// Number among the chunks of all workloads, from 1.
    pub number: u64,
    /// Name of the workload in the policy.
    pub workload: String,
    #[serde(with = "shared")]
    pub curves: Arc<StageCurves>,
}

/// Chunks of a proxy, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CurveReport {
    /// Identity of the chunks; with another one, numbers and times have begun anew.
    pub identity: String,
    pub chunks: Vec<CurveChunk>,
}

/// The chunks that a reader has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurveMark {
    pub identity: String,
    /// Number of the latest one.
    pub number: u64,
}

/// Curves of the traffic of all workloads of a proxy.
#[derive(Debug)]
pub struct LiveCurves {
    identity: String,
    workloads: BTreeMap<u32, LiveWorkload>,
    /// Chunks with their instants, the oldest first.
    closed: VecDeque<(u64, ClosedChunk)>,
    /// Number of the latest chunk.
    number: u64,
}

#[derive(Debug)]
struct ClosedChunk {
    number: u64,
    workload: u32,
    curves: Arc<StageCurves>,
}

#[derive(Debug)]
struct LiveWorkload {
    /// Begin of the open chunk, nanoseconds.
    since: u64,
    /// Answered requests in order of arrival.
    held: VecDeque<LiveArrival>,
    /// Arrival of the latest request that was added.
    added_to: Nanos,
    builders: PerStage<BurstBuilder>,
    /// Number of requests in the builders.
    built: usize,
    /// Largest of these requests.
    largest: LargestRequest,
    /// Curves of earlier requests of the chunk.
    merged: Option<StageCurves>,
}

impl LiveCurves {
    /// Creates curves without traffic. Another process has another identity.
    pub fn new(identity: String) -> Self {
        Self { identity, workloads: BTreeMap::new(), closed: VecDeque::new(), number: 0 }
    }

    /// Adds a request of a workload that was answered at `now`, nanoseconds of the clock of its arrival.
    pub fn add(&mut self, workload: u32, arrival: LiveArrival, now: u64) {
        let live = self.workloads.entry(workload).or_insert_with(|| LiveWorkload::new(now));
        live.hold(arrival);
        live.add_ready(now);
        if now >= live.since + CHUNK_NS {
            let curves = live.close(now);
            self.keep(workload, curves, now);
        }
    }

    /// Returns chunks after `mark`, the oldest first and at most [`CHUNKS_MAX`]. `name` names workloads; those without a
    /// name are left out.
    pub fn report(
        &mut self,
        now: u64,
        mark: Option<&CurveMark>,
        name: impl Fn(u32) -> Option<String>,
    ) -> CurveReport {
        self.close_silent(now);
        self.drop_old(now);
        let after = mark.filter(|mark| mark.identity == self.identity).map_or(0, |mark| mark.number);
        let first = self.closed.partition_point(|(_, chunk)| chunk.number <= after);
        let chunk = |(_, chunk): &(u64, ClosedChunk)| {
            let ClosedChunk { number, workload, curves } = chunk;
            Some(CurveChunk { number: *number, workload: name(*workload)?, curves: Arc::clone(curves) })
        };
        let chunks = self.closed.range(first..).filter_map(chunk).take(CHUNKS_MAX).collect();
        CurveReport { identity: self.identity.clone(), chunks }
    }

    /// Closes chunks that are old enough and were not closed by further requests.
    fn close_silent(&mut self, now: u64) {
        let due = self.workloads.iter().filter(|(_, live)| now >= live.since + CHUNK_NS);
        let due: Vec<u32> = due.map(|(workload, _)| *workload).take(CLOSED_MAX).collect();
        for workload in due {
            let live = self.workloads.get_mut(&workload).expect("it was found");
            live.add_ready(now);
            let curves = live.close(now);
            if live.held.is_empty() && curves.is_none() {
                self.workloads.remove(&workload);
            }
            self.keep(workload, curves, now);
        }
    }

    fn keep(&mut self, workload: u32, curves: Option<StageCurves>, now: u64) {
        let Some(curves) = curves else { return };
        self.number += 1;
        let chunk = ClosedChunk { number: self.number, workload, curves: Arc::new(curves) };
        self.closed.push_back((now, chunk));
        self.drop_old(now);
    }

    /// Drops chunks that have been kept for long enough.
    fn drop_old(&mut self, now: u64) {
        while self.closed.front().is_some_and(|(at, _)| at + KEPT_NS <= now) {
            self.closed.pop_front();
        }
    }
}

impl LiveWorkload {
    fn new(now: u64) -> Self {
        Self {
            since: now,
            held: VecDeque::new(),
            added_to: Nanos::ZERO,
            builders: PerStage::from_fn(|_| BurstBuilder::new()),
            built: 0,
            largest: LargestRequest::default(),
            merged: None,
        }
    }

    /// Inserts a request from the end: answers come in nearly the order of arrivals.
    fn hold(&mut self, arrival: LiveArrival) {
        self.held.push_back(arrival);
        let mut at = self.held.len() - 1;
        while at > 0 && self.held[at - 1].at > arrival.at {
            self.held.swap(at - 1, at);
            at -= 1;
        }
    }

    /// Adds the requests before which no answer is awaited any more.
    fn add_ready(&mut self, now: u64) {
        while let Some(first) = self.held.front()
            && (self.held.len() > HELD_MAX || first.at.0.saturating_add(HOLD_NS) <= now)
        {
            let LiveArrival { at, work } = *first;
            self.held.pop_front();
            self.added_to = self.added_to.max(at);
            if self.build(self.added_to, &work).is_err() {
                self.forget();
            }
        }
    }

    fn build(&mut self, at: Nanos, work: &PerStage<Work>) -> Result<(), BurstError> {
        for stage in Stage::ALL {
            self.builders[stage].push(StageArrival { at, work: work[stage] })?;
        }
        self.built += 1;
        self.largest = self.largest.max(LargestRequest::of(work));
        if self.built >= BUILT_MAX { self.merge_built() } else { Ok(()) }
    }

    fn merge_built(&mut self) -> Result<(), BurstError> {
        if self.built == 0 {
            return Ok(());
        }
        let [network_in, storage, network_out] =
            Stage::ALL.map(|stage| std::mem::take(&mut self.builders[stage]).finish());
        let curves = [network_in?, storage?, network_out?];
        let largest = std::mem::take(&mut self.largest);
        let built = StageCurves::new(curves.map(|curve| curve.coarsened(CORNERS_MAX)), Some(largest));
        self.built = 0;
        self.merged = Some(match self.merged.take() {
            Some(merged) => merged.merge(&built)?,
            None => built,
        });
        Ok(())
    }

    /// Forgets the open chunk: the work that its requests claim is more than 213 device-days or 18 PB.
    fn forget(&mut self) {
        self.builders = PerStage::from_fn(|_| BurstBuilder::new());
        self.built = 0;
        self.largest = LargestRequest::default();
        self.merged = None;
    }

    /// Begins another chunk, and returns the curves of this one if it has requests.
    fn close(&mut self, now: u64) -> Option<StageCurves> {
        self.since = now;
        if self.merge_built().is_err() {
            self.forget();
        }
        self.merged.take()
    }
}

/// Curves that are shared in memory, in messages.
mod shared {
    use super::{Arc, StageCurves};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(curves: &Arc<StageCurves>, to: S) -> Result<S::Ok, S::Error> {
        curves.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<StageCurves>, D::Error> {
        StageCurves::deserialize(from).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::burst::BurstCurve;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// Answers requests in the order of their answers, and returns the chunks a long time after.
    fn play(requests: &[(u64, u64, u64)]) -> Vec<CurveChunk> {
        let mut answers = requests.to_vec();
        answers.sort_by_key(|(_, answered, _)| *answered);
        let mut curves = LiveCurves::new("a".into());
        let mut chunks = Vec::new();
        let mut mark = CurveMark { identity: "a".into(), number: 0 };
        let mut end = 0;
        let mut read = |curves: &mut LiveCurves, now| {
            for chunk in curves.report(now, Some(&mark), |_| Some("w".into())).chunks {
                assert!(chunk.number > mark.number, "nothing comes twice");
                mark.number = chunk.number;
                chunks.push(chunk);
            }
        };
        for (at, answered, work) in answers {
            let work = PerStage::from_fn(|stage| Work(work + stage as u64));
            curves.add(7, LiveArrival { at: Nanos(at), work }, answered);
            end = answered;
            if answered % 5 == 0 {
                read(&mut curves, answered);
            }
        }
        read(&mut curves, end + CHUNK_NS + HOLD_NS);
        read(&mut curves, end + 3 * CHUNK_NS);
        assert!(curves.workloads.is_empty(), "a silent workload takes no memory");
        chunks
    }

    fn whole(requests: &[(u64, u64, u64)], stage: Stage) -> BurstCurve {
        let mut arrivals: Vec<StageArrival> = requests
            .iter()
            .map(|(at, _, work)| StageArrival { at: Nanos(*at), work: Work(work + stage as u64) })
            .collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        BurstCurve::from_arrivals(&arrivals).expect("some requests")
    }

    proptest! {
        #[test]
        fn chunks_merge_to_the_curve_of_all_requests(
            gaps in prop::collection::vec((0..400u64, 0..990u64, 1..5000u64), 1..300),
        ) {
            let mut at = 0;
            let request = |(gap, served, work): &(u64, u64, u64)| {
                at += gap * MS;
                (at, at + served * MS, *work)
            };
            let requests: Vec<(u64, u64, u64)> = gaps.iter().map(request).collect();
            let chunks = play(&requests);
            let mut merged = StageCurves::clone(&chunks[0].curves);
            for chunk in &chunks[1..] {
                merged = merged.merge(&chunk.curves).expect("in order");
            }
            for stage in Stage::ALL {
                prop_assert_eq!(merged.curve(stage), &whole(&requests, stage));
            }
            let most = requests.iter().map(|(_, _, work)| work + Stage::Storage as u64).max();
            let density = |work: u64| ((work + Stage::NetworkOut as u64) as f64) / ((work + Stage::Storage as u64) as f64);
            let densest = requests.iter().map(|(_, _, work)| density(*work)).fold(0.0, f64::max);
            let largest = merged.largest().expect("every chunk has one");
            prop_assert_eq!(Some(largest.storage), most);
            prop_assert!((densest..densest + 2e-6).contains(&largest.densest_answer()), "{densest}: {largest:?}");
        }
    }

    #[test]
    fn a_request_that_is_answered_late_comes_later() {
        let requests = [(0, 3000 * MS, 5), (10 * MS, 11 * MS, 7), (2900 * MS, 2910 * MS, 9)];
        let chunks = play(&requests);
        let late = [(10 * MS, 0, 5), (10 * MS, 0, 7), (2900 * MS, 0, 9)];
        assert_eq!(chunks[0].curves.curve(Stage::Storage), &whole(&late, Stage::Storage));
    }

    #[test]
    fn absurd_work_is_forgotten_and_the_next_chunk_is_right() {
        let mut curves = LiveCurves::new("a".into());
        for at in [1, 2, 3] {
            let work = PerStage::from_fn(|_| Work(u64::MAX / 2));
            curves.add(0, LiveArrival { at: Nanos(at), work }, at);
        }
        let work = PerStage::from_fn(|_| Work(5));
        curves.add(0, LiveArrival { at: Nanos(2 * CHUNK_NS), work }, 2 * CHUNK_NS);
        let chunks = curves.report(4 * CHUNK_NS, None, |_| Some("w".into())).chunks;
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].curves.curve(Stage::Storage).total(), Work(5));
    }

    #[test]
    fn memory_is_bounded() {
        let mut curves = LiveCurves::new("a".into());
        let work = PerStage::from_fn(|_| Work(1000));
        for number in 0..400_000 {
            let at = number * 100_000;
            curves.add(0, LiveArrival { at: Nanos(at), work }, at);
            let live = &curves.workloads[&0];
            assert!(live.held.len() <= HELD_MAX && live.built < BUILT_MAX);
        }
        for number in 0..100 {
            let at = 40 * 1_000_000_000 + number * CHUNK_NS;
            curves.add(0, LiveArrival { at: Nanos(at), work }, at);
        }
        assert!(curves.closed.len() <= 13, "{}", curves.closed.len());
    }
}
