//! The bound for requests that one burst makes late.
//!
//! The union over time scales of [`calculus::tail`] counts what higher priorities bring until the request *would* be late. A
//! burst that comes while the request would long be done does no harm, and where single bursts decide, a bound that counts
//! them cannot fall below their size. A request that is late at t + d was not done at any t + y before, either: the
//! inequality of the one queue holds for *every* y ≤ d, with some window for each. This module uses that.
//!
//! 1. *Small streams.* Fix a burst b and a rate κ. A stream is *large* if it has more than b + κu in the window from t − u
//!    to t, or to t + d where it counts so long, for some u ≥ 0; else it is small. As windows that end at s = t + d are
//!    those of a queue with service κ, a stream is large with at most the probability that the backlog of this queue at a
//!    uniformly distributed instant exceeds b − κd (b where it counts until t), less the allowance.
//! 2. *One large stream at most.* The streams are independent, so two of them are large with probability at most
//!    (Σ p)²/2, the sum over pairs of the products.
//! 3. *All others.* Let R be the supremum over u, up to the longest window, of what all small streams have in the window
//!    beyond σu. By the passages through a level ([`calculus::tail::Crossings`]), with the values left out that show that
//!    a stream is not small, P(R > r) ≤ F(r). A union over cells counts a burst as often as it shows; in windows of which a
//!    part is in the future, that is three times and more.
//! 4. *The large stream j by itself.* With own(u) ≤ X + c·u as in the parent module, the request is late only if for each
//!    y ≤ d some u has A_j(u, y) ≥ u + y − (X + c·u) − (R + σ·u), that is, B_j + A_j(t, t + y] ≥ y − X − R, where B_j is the
//!    backlog of j at service 1 − c − σ: the delay of X + R behind and under stream j is d at least. Its law over t is exact
//!    for the circular trace, all time scales at once ([`CircularWork::delay_over_time`]). Where j counts until t only,
//!    B_j + X + R ≥ d. Call this probability Q_j(X + R). It rises with its argument, and R is independent of j when
//!    the small streams other than j are meant, whose R is no larger.
//! 5. *Sum.* A request with X is late with probability at most `two + Σ_j E Q_j(X + R)`; the mean is that over the law with
//!    tail F on a ladder of levels, which is at least that of R.
//! 6. *All streams together.* The event of the parent module is one of passages, too: with all streams and no limits, they
//!    bound its probability for windows up to the longest one. For longer ones the union of the parent counts. The work of a
//!    request's own past is within X + c·u for every share c at once, so that the other streams have to exceed the largest of
//!    all the lines (1 − c)·u + d − X.
//! 7. *Own bursts.* Each of these bounds holds for a request given the past of its own stream, because the others are
//!    independent of that. So the least of them counts, over shares c of the own stream and meanings of large, for each
//!    request by itself: the law over requests is the joint one of X at all shares
//!    ([`CircularWork::joint_backlogs_at_arrivals`]). A request within a burst of its own stream needs a large share, one
//!    that finds nothing a small one.
//!
//! What stages have begun is added to X. The smaller of this bound and that of the parent counts, for each latency.
//! Dependent groups are left to the parent.
//!
//! [`CircularWork::joint_backlogs_at_arrivals`]: workload::windows::CircularWork::joint_backlogs_at_arrivals
//! [`CircularWork::delay_over_time`]: workload::windows::CircularWork::delay_over_time

use super::burst_laws::{BURST_SHARES, OWN_SHARES, amount, amount_above, window, window_from};
use super::cross_traffic::MemberCrossTraffic;
use super::shares::SHARES;
use super::sketch::ProbabilisticSketch;
use calculus::tail::{Crossings, LimitedLaw, WorkTails};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// A way to divide the queue: the index of the own stream's share, that of the large stream's; the rest is for all others.
const DIVISIONS: [(usize, usize); 7] = [(7, 1), (7, 2), (7, 3), (6, 2), (6, 3), (5, 3), (5, 4)];
/// The longest windows beside one large stream, in latencies; what is busy for longer counts by the parent's bound.
const WINDOWS: f64 = 24.0;
/// The first window of small streams until the request is done, in latencies.
const SHORTEST: f64 = 1.02;
/// The ratio of the parts of two windows that lie before the request: from the first of these lengths on, in latencies.
const LONGER: [(f64, f64); 2] = [(6.0, 1.3), (0.0, 1.1)];
/// The bursts of small streams, as parts of the latency, and the indices of their rates.
const SMALL: [(f64, usize); 4] = [(0.75, 4), (0.5, 4), (0.9, 4), (0.5, 5)];
/// The number of levels of own work below the latency.
const OWN_LEVELS: usize = 64;
/// The number of levels of what small streams bring, and their number per latency.
const LEVELS: usize = 24;

/// A request of a member that has so many seconds, behind work that is begun.
pub(super) struct OneBurst<'c, 'a> {
    cross_traffic: &'c MemberCrossTraffic<'a>,
    own: &'a ProbabilisticSketch,
    latency: f64,
    begun: f64,
    /// The largest allowance of any of the streams, seconds.
    allowance: f64,
    /// The windows of all streams, once they are needed; `None` in it where these are not tabulated.
    all: OnceCell<Option<Crossings>>,
}

/// The parts of a sum that proves a latency, as probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneBurstSum {
    /// The latency in seconds.
    pub latency: f64,
    /// The share of requests that may be late.
    pub allowed: f64,
    /// A bound on the share of requests that are late.
    pub late: f64,
    /// The last bound that was needed beside that of all streams together, if any was.
    pub one_burst: Option<OneBurstTerms>,
}

/// The meaning of a large stream, and the probability of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneBurstTerms {
    /// The shares of the queue for the request's own stream, and for the stream that has the burst.
    pub shares: [f64; 2],
    /// The burst up to which a stream is small, seconds.
    pub burst: f64,
    /// The probability that a request comes while two streams are large.
    pub two: f64,
}

/// The least bounds so far on the probability that a request is late, by what it finds of its own stream.
struct LateByOwn<'t> {
    tails: &'t WorkTails,
    /// The bound for each share of the own stream and each level of own work; the last level leaves no time.
    least: [[f64; OWN_LEVELS + 1]; OWN_SHARES],
    own: Vec<OwnPast>,
}

/// Requests that find the same levels of their own stream.
struct OwnPast {
    /// The level at each share.
    levels: [u8; OWN_SHARES],
    /// The share of these requests.
    probability: f64,
    /// A bound on the probability that they are late, from all shares at once.
    late: f64,
}

impl<'t> LateByOwn<'t> {
    /// The bounds by all streams together.
    fn new(request: &OneBurst<'_, '_>, tails: &'t WorkTails) -> Self {
        let mut own: BTreeMap<[u8; OWN_SHARES], f64> = BTreeMap::new();
        for part in request.own.bursts.own() {
            let levels = part.works.map(|work| {
                let level = (work / request.latency * OWN_LEVELS as f64).ceil();
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between 0 and the levels"
                )]
                let level = level.clamp(0.0, OWN_LEVELS as f64) as u8;
                level
            });
            *own.entry(levels).or_default() += part.probability;
        }
        let mut least = [[f64::NAN; OWN_LEVELS + 1]; OWN_SHARES];
        for levels in own.keys() {
            for (share, level) in levels.iter().map(|level| usize::from(*level)).enumerate() {
                if least[share][level].is_nan() {
                    let room = request.latency - request.begun - request.own_level(level);
                    least[share][level] = request.late_by_all(share, room, tails).min(1.0);
                }
            }
        }
        let past = |(levels, probability)| OwnPast {
            levels,
            probability,
            late: request.late_by_own_past(&levels, tails),
        };
        Self { tails, least, own: own.into_iter().map(past).collect() }
    }

    /// A bound on the share of requests that are late, with more bounds for one share of the own stream.
    fn sum(&self, with: Option<(usize, [f64; OWN_LEVELS])>) -> f64 {
        let mut sum = 0.0;
        for OwnPast { levels, probability, late } in &self.own {
            let mut late = *late;
            for (least, level) in self.least.iter().zip(levels) {
                late = late.min(least[usize::from(*level)]);
            }
            if let Some((share, others)) = &with
                && let Some(other) = others.get(usize::from(levels[*share]))
            {
                late = late.min(*other);
            }
            sum += probability * late;
        }
        sum
    }

    /// Keeps the lesser bounds for one share of the own stream, and returns the sum then.
    fn add(&mut self, share: usize, others: &[f64; OWN_LEVELS]) -> f64 {
        for (least, other) in self.least[share].iter_mut().zip(others) {
            *least = least.min(*other);
        }
        self.sum(None)
    }
}

/// The probabilities of what a request may meet, for one meaning of small and one division of the queue.
struct Meeting<'t> {
    /// A bound on the probability that a stream is large, in the order of the streams.
    large: &'t [f64],
    /// A bound on the probability that two are.
    two: f64,
    division: (usize, usize),
    /// A bound on the probability that small streams bring more than each level.
    levels: [f64; LEVELS],
    /// The tails of all streams.
    tails: &'t WorkTails,
    /// The windows of the small streams, once they are needed.
    small: Option<&'t Crossings>,
    /// Σ_j min(Q_j, p_j) for each amount of other work; not a number where it has not been needed yet.
    delays: RefCell<[f64; 256]>,
}

impl<'c, 'a> OneBurst<'c, 'a> {
    pub(super) fn new(
        cross_traffic: &'c MemberCrossTraffic<'a>,
        own: &'a ProbabilisticSketch,
        (latency, begun): (f64, f64),
    ) -> Self {
        let streams = cross_traffic.independent().unwrap_or_default();
        let allowance = streams.iter().map(|(sketch, _)| sketch.bursts.allowance()).fold(0.0, f64::max);
        Self { cross_traffic, own, latency, begun, allowance, all: OnceCell::new() }
    }

    /// A sum that proves the latency, when there is one; `tails` are those of all other streams for it.
    pub(super) fn proof(&self, allowed: f64, tails: &WorkTails) -> Option<OneBurstSum> {
        let streams = self.cross_traffic.independent()?;
        let mut late = LateByOwn::new(self, tails);
        let sum = late.sum(None);
        if sum <= allowed {
            return Some(OneBurstSum { latency: self.latency, allowed, late: sum, one_burst: None });
        }
        for (part, rate) in SMALL {
            let burst = part * self.latency;
            let mut large = Vec::with_capacity(streams.len());
            for (sketch, until_done) in streams {
                let more = if *until_done { self.latency } else { 0.0 };
                large.push(sketch.bursts.large(rate, burst, more).clamp(0.0, 1.0));
            }
            let found = self.proof_with(allowed, &mut late, &large, (burst, BURST_SHARES[rate]));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// A sum where streams are small that have at most this burst and rate in every window.
    fn proof_with(
        &self,
        allowed: f64,
        late: &mut LateByOwn<'_>,
        large: &[f64],
        limit: (f64, f64),
    ) -> Option<OneBurstSum> {
        let sum: f64 = large.iter().sum();
        let two = if large.len() > 1 { sum * sum / 2.0 } else { 0.0 };
        if two > allowed {
            return None;
        }
        let mut small: Option<Crossings> = None;
        for division in DIVISIONS {
            let tails = late.tails;
            let delays = RefCell::new([f64::NAN; 256]);
            let mut meeting =
                Meeting { large, two, division, levels: [0.0; LEVELS], tails, small: None, delays };
            // First as if small streams brought nothing: that costs little, and most latencies are too short.
            if late.sum(Some((division.0, self.late_by_level(&meeting)))) > allowed {
                continue;
            }
            if small.is_none() {
                small = Some(self.windows(limit)?);
            }
            let small = small.as_ref().expect("made above");
            let spare = 1.0 - SHARES[division.0] - BURST_SHARES[division.1];
            for level in 0..LEVELS {
                meeting.levels[level] = small.exceedance(spare, self.level(level));
            }
            meeting.small = Some(small);
            let sum = late.add(division.0, &self.late_by_level(&meeting));
            if sum <= allowed {
                let shares = [SHARES[division.0], BURST_SHARES[division.1]];
                let one_burst = Some(OneBurstTerms { shares, burst: limit.0, two });
                return Some(OneBurstSum { latency: self.latency, allowed, late: sum, one_burst });
            }
        }
        None
    }

    /// The bounds of [`Self::late_by_others`] for requests that find up to each level of own work.
    fn late_by_level(&self, meeting: &Meeting<'_>) -> [f64; OWN_LEVELS] {
        std::array::from_fn(|level| self.late_by_others(self.own_level(level), meeting).min(1.0))
    }

    /// The own work of a level, seconds.
    fn own_level(&self, level: usize) -> f64 {
        self.latency * level as f64 / OWN_LEVELS as f64
    }

    /// The work of all streams, as far as they have at most this burst and rate, in windows up to the longest one; `None`
    /// where that is not tabulated.
    fn windows(&self, (burst, rate): (f64, f64)) -> Option<Crossings> {
        let streams = self.cross_traffic.independent()?;
        let mut windows = Vec::new();
        // Windows are tabulated from their beginning until the request is done: those that end with its arrival are shorter.
        let mut until_done = window_from(self.latency * SHORTEST)?;
        loop {
            let length = window(until_done) - self.latency;
            let until_arrival = window_from(length)?;
            let mut laws = Vec::with_capacity(streams.len());
            for (sketch, counts_until_done) in streams {
                let (index, beyond) = if *counts_until_done {
                    (until_done, length)
                } else {
                    (until_arrival, window(until_arrival))
                };
                // A closed window has one more nanosecond than its length.
                laws.push(LimitedLaw {
                    atoms: sketch.bursts.in_window(index),
                    limit: burst + rate * (beyond + 2e-9),
                });
            }
            windows.push((length, laws));
            if length >= WINDOWS * self.latency {
                return Some(Crossings::new((self.latency, 1.0), windows));
            }
            let (_, longer) = LONGER.into_iter().find(|(from, _)| length >= from * self.latency)?;
            until_done = window_from(window(until_done + 1).max(self.latency + length * longer))?;
        }
    }

    /// What small streams bring at a level, seconds.
    fn level(&self, level: usize) -> f64 {
        self.latency * (level + 1) as f64 / LEVELS as f64
    }

    /// A bound on the probability that a request with this own work is late by the other streams.
    fn late_by_others(&self, own: f64, meeting: &Meeting<'_>) -> f64 {
        let found = own + self.begun;
        let room = self.latency - found;
        if room <= 0.0 {
            return 1.0;
        }
        let spare = 1.0 - SHARES[meeting.division.0];
        let mut sum = meeting.two + self.late_by_one(found, meeting);
        if let Some(small) = meeting.small {
            sum += small.exceedance(spare, room);
            sum += meeting.tails.exceedance_from(spare, -found, WINDOWS * self.latency);
        }
        sum
    }

    /// A bound on the probability that all streams leave a request at this share of the queue less than the room.
    fn late_by_all(&self, share: usize, room: f64, tails: &WorkTails) -> f64 {
        if room <= 0.0 {
            return 1.0;
        }
        let spare = 1.0 - SHARES[share];
        let by_union = tails.exceedance(spare, room);
        let all = self.all.get_or_init(|| self.windows((f64::INFINITY, 0.0)));
        let Some(all) = all else { return by_union };
        let beyond = tails.exceedance_from(spare, room, WINDOWS * self.latency);
        by_union.min(all.exceedance(spare, room) + beyond)
    }

    /// A bound on the probability that all streams make a request late that finds these levels of its own stream.
    fn late_by_own_past(&self, levels: &[u8; OWN_SHARES], tails: &WorkTails) -> f64 {
        let all = self.all.get_or_init(|| self.windows((f64::INFINITY, 0.0)));
        let Some(all) = all else { return 1.0 };
        let mut lines = Vec::with_capacity(OWN_SHARES);
        for (share, level) in SHARES.iter().zip(levels) {
            // The last level stands for more than the latency.
            if usize::from(*level) < OWN_LEVELS {
                lines.push((1.0 - share, self.latency - self.begun - self.own_level(usize::from(*level))));
            }
        }
        let longest = WINDOWS * self.latency;
        let beyond = lines.iter().map(|(spare, room)| tails.exceedance_from(*spare, *room, longest));
        (all.exceedance_of_all(&lines) + beyond.fold(1.0, f64::min)).min(1.0)
    }

    /// E Σ_j min(Q_j(X + R), p_j) for so much work that is found.
    fn late_by_one(&self, found: f64, meeting: &Meeting<'_>) -> f64 {
        let mut before = self.delayed(found + self.level(0), meeting);
        let mut sum = before;
        for level in 0..LEVELS {
            let next = match level + 1 {
                LEVELS => meeting.large.iter().sum(),
                next => self.delayed(found + self.level(next), meeting),
            };
            sum += meeting.levels[level] * (next - before).max(0.0);
            before = next;
        }
        sum
    }

    /// Σ_j min(Q_j, p_j) for so much other work.
    fn delayed(&self, work: f64, meeting: &Meeting<'_>) -> f64 {
        let index = if work < self.latency { amount_above(work + self.allowance) } else { None };
        let Some(index) = index else { return meeting.large.iter().sum() };
        let known = meeting.delays.borrow()[index];
        if !known.is_nan() {
            return known;
        }
        let share = meeting.division.1;
        let streams = self.cross_traffic.independent().unwrap_or_default();
        let mut sum = 0.0;
        for ((sketch, until_done), large) in streams.iter().zip(meeting.large) {
            if *large > 0.0 {
                let late = if *until_done {
                    sketch.bursts.delay_tail(share, index, self.latency)
                } else {
                    sketch.bursts.backlog_tail(share, self.latency - amount(index))
                };
                sum += late.min(*large);
            }
        }
        meeting.delays.borrow_mut()[index] = sum;
        sum
    }
}
