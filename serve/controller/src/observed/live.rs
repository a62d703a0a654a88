//! Burst curves of what clients really send, in sliding windows.
//!
//! Reports have chunks of some seconds of traffic, which are numbered: each is read once, whatever is lost or comes
//! again. A window consists of four parts and the one that is open, each the merge of its chunks. Chunks of two lives of a
//! proxy have no common clock, so that intervals across its restart are not in a curve; nor are chunks that no report
//! brought. A curve is thus at most that of the traffic, and equal to it while hulls are small and no chunk is missing;
//! larger hulls are coarsened upward.
//!
//! A workload takes at most some 330 KiB, and usually a fifth of it: 18 parts of nine hulls of at most 64 corners of 16
//! bytes, and twice that if its proxy restarts often.

use model::{PerStage, Stage};
use std::collections::VecDeque;
use units::{Nanos, Work};
use workload::burst::BurstEnvelope;
use workload::live::{CurveChunk, CurveMark, CurveReport, LargestRequest, StageCurves};

pub(super) const HOUR: u64 = 3_600_000_000_000;
/// Windows, nanoseconds, ascending.
const WINDOWS: [u64; 3] = [HOUR, 24 * HOUR, 7 * 24 * HOUR];
/// Parts of a window.
const PARTS: u64 = 4;
/// Maximum number of parts that are kept: every restart of a proxy begins another.
const PARTS_MAX: usize = 10;

/// The chunks of a server that were read.
#[derive(Debug, Clone, Default)]
pub(super) struct CurveLedger {
    pub(super) mark: CurveMark,
    /// Number of identities so far.
    life: u64,
}

impl CurveLedger {
    /// Takes over later chunks, and returns them with the life of their proxy.
    pub(super) fn read<'a>(&mut self, report: &'a CurveReport) -> (u64, Vec<&'a CurveChunk>) {
        if self.mark.identity != report.identity {
            self.mark = CurveMark { identity: report.identity.clone(), number: 0 };
            self.life += 1;
        }
        let mut later = Vec::new();
        for chunk in &report.chunks {
            if chunk.number > self.mark.number {
                self.mark.number = chunk.number;
                later.push(chunk);
            }
        }
        (self.life, later)
    }
}

/// The curves of a workload.
#[derive(Debug, Clone)]
pub(super) struct LiveRecord {
    /// Instant from which there are curves; `None` before the first.
    since: Option<u64>,
    windows: [LiveParts; WINDOWS.len()],
}

/// The parts of a window.
#[derive(Debug, Clone)]
struct LiveParts {
    window: u64,
    parts: VecDeque<LivePart>,
    /// All parts but the last one.
    earlier: JoinedParts,
}

#[derive(Debug, Clone)]
struct LivePart {
    begin: u64,
    life: u64,
    curves: StageCurves,
}

/// Consecutive parts.
#[derive(Debug, Clone, Default)]
struct JoinedParts {
    begin: Option<u64>,
    requests: u64,
    work: PerStage<Work>,
    /// Time from the first to the last request of each life, nanoseconds.
    span: u64,
    largest: LargestRequest,
    /// True if proxies of an earlier version did not tell their largest request.
    is_largest_unknown: bool,
    /// Curves of earlier lives.
    before: PerStage<Option<BurstEnvelope>>,
    /// The latest life and its curves.
    latest: Option<(u64, StageCurves)>,
}

impl LiveRecord {
    pub(super) fn new() -> Self {
        let windows = WINDOWS.map(|window| LiveParts {
            window,
            parts: VecDeque::new(),
            earlier: JoinedParts::default(),
        });
        Self { since: None, windows }
    }

    /// Adds a chunk that was reported at `now`.
    pub(super) fn add(&mut self, now: u64, life: u64, curves: &StageCurves) {
        self.since.get_or_insert(now);
        self.windows.iter_mut().for_each(|window| window.add(now, life, curves));
    }

    /// Returns the traffic of the windows in which there is any, with their lengths.
    pub(super) fn windows(&self, now: u64) -> impl Iterator<Item = (u64, LiveCurve)> {
        self.windows.iter().filter_map(move |window| Some((window.window, self.curve(window, now)?)))
    }

    /// Returns the traffic of the longest window.
    pub(super) fn longest(&self, now: u64) -> Option<LiveCurve> {
        self.curve(&self.windows[WINDOWS.len() - 1], now)
    }

    fn curve(&self, window: &LiveParts, now: u64) -> Option<LiveCurve> {
        window.joined(now)?.curve(now, self.since?)
    }
}

impl LiveParts {
    fn length(&self) -> u64 {
        self.window / PARTS
    }

    fn is_over(&self, part: &LivePart, now: u64) -> bool {
        part.begin + self.length() + self.window <= now
    }

    fn add(&mut self, now: u64, life: u64, curves: &StageCurves) {
        let begin = now - now % self.length();
        if let Some(last) = self.parts.back_mut()
            && (last.begin, last.life) == (begin, life)
            && let Ok(merged) = last.curves.merge(curves)
        {
            last.curves = merged;
            return;
        }
        // Chunks that go back in time are those of an agent that is wrong; they get a part of their own.
        self.parts.push_back(LivePart { begin, life, curves: curves.clone() });
        while self.parts.len() > PARTS_MAX || self.parts.front().is_some_and(|first| self.is_over(first, now))
        {
            self.parts.pop_front();
        }
        let all_but_last = self.parts.iter().take(self.parts.len() - 1);
        self.earlier = JoinedParts::default();
        all_but_last.for_each(|part| self.earlier.push(part));
    }

    /// Returns the parts of the window that ends now; `None` without any.
    fn joined(&self, now: u64) -> Option<JoinedParts> {
        let last = self.parts.back().filter(|last| !self.is_over(last, now))?;
        let mut joined = match self.parts.front() {
            Some(first) if !self.is_over(first, now) => self.earlier.clone(),
            // No chunk has come since a part left the window.
            _ => {
                let mut joined = JoinedParts::default();
                let others = self.parts.iter().take(self.parts.len() - 1);
                others.filter(|part| !self.is_over(part, now)).for_each(|part| joined.push(part));
                joined
            }
        };
        joined.push(last);
        Some(joined)
    }
}

impl JoinedParts {
    fn push(&mut self, part: &LivePart) {
        let LivePart { begin, life, curves } = part;
        self.begin.get_or_insert(*begin);
        self.requests += curves.requests();
        let total = |stage| Work(self.work[stage].0.saturating_add(curves.curve(stage).total().0));
        self.work = PerStage::from_fn(total);
        self.span += (curves.curve(Stage::Storage).last() - curves.curve(Stage::Storage).first()).0;
        match curves.largest() {
            Some(largest) => self.largest = self.largest.max(largest),
            None => self.is_largest_unknown = true,
        }
        if let Some((latest, joined)) = &mut self.latest
            && latest == life
            && let Ok(merged) = joined.merge(curves)
        {
            *joined = merged;
            return;
        }
        self.end_life();
        self.latest = Some((*life, curves.clone()));
    }

    /// Adds the curves of the latest life to those of earlier ones.
    fn end_life(&mut self) {
        let Some((_, curves)) = self.latest.take() else { return };
        for stage in Stage::ALL {
            let own = curves.curve(stage).envelope();
            self.before[stage] = Some(match &self.before[stage] {
                Some(before) => {
                    let both = [before.vertices(), own.vertices()].concat();
                    BurstEnvelope::above(&both).expect("both begin at zero")
                }
                None => own.clone(),
            });
        }
    }

    /// Returns the curve of all parts at `now`, of traffic that is known since an instant.
    fn curve(mut self, now: u64, since: u64) -> Option<LiveCurve> {
        self.end_life();
        let [network_in, storage, network_out] = self.before.into_array();
        // The first reports bring traffic from before.
        let observed = now.saturating_sub(self.begin?.max(since)).max(self.span);
        Some(LiveCurve {
            requests: self.requests,
            observed: Nanos(observed),
            work: self.work,
            largest: (!self.is_largest_unknown).then_some(self.largest),
            envelopes: [network_in?, storage?, network_out?],
        })
    }
}

/// The traffic of a window.
#[derive(Debug, Clone)]
pub(super) struct LiveCurve {
    pub(super) requests: u64,
    pub(super) observed: Nanos,
    pub(super) work: PerStage<Work>,
    /// Largest request; `None` if a proxy did not tell it.
    pub(super) largest: Option<LargestRequest>,
    /// In path order.
    pub(super) envelopes: [BurstEnvelope; 3],
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::burst::{BurstCurve, StageArrival};

    const S: u64 = 1_000_000_000;

    /// A chunk of requests at these instants, with as much work.
    fn chunk(arrivals: &[(u64, u64)]) -> StageCurves {
        let arrivals: Vec<StageArrival> =
            arrivals.iter().map(|(at, work)| StageArrival { at: Nanos(*at), work: Work(*work) }).collect();
        StageCurves::new([(); 3].map(|()| BurstCurve::from_arrivals(&arrivals).expect("some arrivals")), None)
    }

    fn envelope(record: &LiveRecord, now: u64, window: u64) -> Option<BurstEnvelope> {
        let found = record.windows(now).find(|(length, _)| *length == window);
        found.map(|(_, curve)| curve.envelopes[1].clone())
    }

    /// One process without restart: every window is between the curves of its time and of a quarter more.
    #[test]
    fn windows_have_the_traffic_of_their_time() {
        let mut record = LiveRecord::new();
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut dice = 7u64;
        for round in 0..600 {
            let now = (round + 1) * 1600 * S;
            let mut arrivals = Vec::new();
            for number in 0..20 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                arrivals.push((now - 10 * S + number * S / 4 + dice % (S / 4), 1 + (dice >> 40) % 1000));
            }
            record.add(now, 1, &chunk(&arrivals));
            all.extend(&arrivals);
            for window in WINDOWS {
                let seen = envelope(&record, now, window).expect("there is traffic");
                let since = |length: u64| {
                    let within: Vec<_> = all.iter().copied().filter(|(at, _)| at + length > now).collect();
                    chunk(&within).curve(Stage::Storage).envelope().clone()
                };
                assert!(seen.dominates(&since(window)), "{round}");
                // A chunk is reported up to ten seconds after its first request.
                assert!(since(window + window / PARTS + 10 * S).dominates(&seen), "{round}");
            }
        }
        assert!(record.windows.iter().all(|window| window.parts.len() <= 6));
        // Nothing more is sent.
        let end = 600 * 1600 * S;
        assert!(envelope(&record, end + 2 * HOUR, HOUR).is_none());
        assert!(envelope(&record, end + 2 * HOUR, 24 * HOUR).is_some());
        assert!(record.longest(end + 9 * 24 * HOUR).is_none());
    }

    #[test]
    fn lives_of_a_proxy_are_not_joined() {
        let mut record = LiveRecord::new();
        let lives = [chunk(&[(5, 100), (5, 100)]), chunk(&[(1, 150), (1_000_000_001, 150)])];
        for (life, curves) in lives.iter().enumerate() {
            record.add(S, life as u64, curves);
        }
        let seen = envelope(&record, S, HOUR).expect("there is traffic");
        let both = lives.map(|curves| curves.curve(Stage::Storage).envelope().vertices().to_vec()).concat();
        assert_eq!(Some(seen), BurstEnvelope::above(&both));
        // Memory is bounded, however often a proxy restarts.
        for life in 0..100 {
            record.add(2 * S, life, &lives_of(life));
        }
        assert!(record.windows.iter().all(|window| window.parts.len() <= PARTS_MAX));
    }

    fn lives_of(life: u64) -> StageCurves {
        chunk(&[(life, 1 + life)])
    }

    #[test]
    fn chunks_are_read_once_in_their_order() {
        let mut ledger = CurveLedger::default();
        let report = |identity: &str, numbers: std::ops::RangeInclusive<u64>| CurveReport {
            identity: identity.into(),
            chunks: numbers
                .map(|number| CurveChunk {
                    number,
                    workload: "t/a".into(),
                    curves: std::sync::Arc::new(chunk(&[(number, 1)])),
                })
                .collect(),
        };
        let mut read = |report: &CurveReport| {
            let (life, chunks) = ledger.read(report);
            (life, chunks.iter().map(|chunk| chunk.number).collect::<Vec<_>>())
        };
        assert_eq!(read(&report("a", 3..=4)), (1, vec![3, 4]));
        assert_eq!(read(&report("a", 2..=5)), (1, vec![5]), "a report that comes twice adds nothing");
        assert_eq!(read(&report("b", 1..=2)), (2, vec![1, 2]), "a proxy that started anew");
    }
}
