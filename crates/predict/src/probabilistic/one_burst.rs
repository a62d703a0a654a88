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
//! 3. *All others.* Let R be the supremum over u of what all small streams have in the window beyond σu. By the union over
//!    cells, with the work of each stream in the window of a cell counted as 0 where it shows that the stream is not small,
//!    P(R > r) ≤ F(r) ([`WorkTails::of_small_streams`]).
//! 4. *The large stream j by itself.* With own(u) ≤ X + c·u as in the parent module, the request is late only if for each
//!    y ≤ d some u has A_j(u, y) ≥ u + y − (X + c·u) − (R + σ·u), that is, B_j + A_j(t, t + y] ≥ y − X − R, where B_j is the
//!    backlog of j at service 1 − c − σ: the delay of X + R behind and under stream j is d at least. Its law over t is exact
//!    for the circular trace, all time scales at once ([`CircularWork::delay_over_time`]). Where j counts until t only,
//!    B_j + X + R ≥ d. Call this probability Q_j(X + R). It rises with its argument, and R is independent of j when
//!    the small streams other than j are meant, whose R is no larger.
//! 5. *Sum.* A request with X is late with probability at most `two + Σ_j E Q_j(X + R)`; the mean is that over the law with
//!    tail F on a ladder of levels, which is at least that of R.
//! 6. *Own bursts.* Of the requests, the share π with the largest X may be left to the bound of the parent module at
//!    another share of the queue, as if they were those with the largest X there: its bound rises with X, so no other
//!    set of requests with probability π makes the sum larger.
//!
//! What stages have begun is added to X. The smaller of this bound and that of the parent counts, for each latency.
//! Dependent groups are left to the parent.
//!
//! [`CircularWork::delay_over_time`]: workload::windows::CircularWork::delay_over_time

use super::burst_laws::{ATOMS, BURST_SHARES, amount, amount_above};
use super::cross_traffic::MemberCrossTraffic;
use super::sketch::{ProbabilisticSketch, SHARES};
use calculus::tail::{LawAtom, SmallStreams, WorkTails};
use std::cell::{Cell, RefCell};

/// A way to divide the queue: the index of the own stream's share, that of the large stream's; the rest is for all others.
const DIVISIONS: [(usize, usize); 6] = [(7, 1), (7, 2), (6, 2), (6, 3), (5, 3), (5, 4)];
/// The largest rate that a division leaves for small streams, beside a large one and without.
const SPARE: [f64; 2] = [0.41, 1.0];
/// The longest windows beside one large stream, in latencies; what is busy for longer counts by the parent's bound.
const WINDOWS: f64 = 6.0;
/// The bursts of small streams, as parts of the latency, and the indices of their rates.
const SMALL: [(f64, usize); 4] = [(0.75, 4), (0.5, 4), (0.9, 4), (0.5, 5)];
/// The number of shares of the own stream at which its own bursts may be counted.
const OWN_SHARES: usize = 6;
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
    /// The parent's bound for each of the first shares and each value of the own law there; not a number where it has not
    /// been needed yet.
    by_own: Vec<[Cell<f64>; ATOMS]>,
}

/// The parts of a sum that proves a latency, as probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneBurstSum {
    /// The latency in seconds.
    pub latency: f64,
    /// The share of requests that may be late.
    pub allowed: f64,
    /// The share of the queue for the request's own stream, and for the stream that has the burst.
    pub shares: [f64; 2],
    /// The burst up to which a stream is small, seconds.
    pub burst: f64,
    /// Requests that are late by a burst of their own stream.
    pub own: f64,
    /// Requests that come while two streams are large.
    pub two: f64,
    /// Requests that one large stream makes late, or small ones together.
    pub others: f64,
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
    /// The tails of all streams, and those of the small ones once they are needed.
    tails: &'t WorkTails,
    small: Option<&'t WorkTails>,
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
        let by_own = (0..OWN_SHARES).map(|_| std::array::from_fn(|_| Cell::new(f64::NAN))).collect();
        Self { cross_traffic, own, latency, begun, allowance, by_own }
    }

    /// A sum that proves the latency, when there is one; `tails` are those of all other streams for it.
    pub(super) fn proof(&self, allowed: f64, tails: &WorkTails) -> Option<OneBurstSum> {
        let streams = self.cross_traffic.independent()?;
        SMALL.into_iter().find_map(|(part, rate)| {
            let burst = part * self.latency;
            let mut large = Vec::with_capacity(streams.len());
            for (sketch, until_done) in streams {
                let more = if *until_done { self.latency } else { 0.0 };
                large.push(sketch.bursts.large(rate, burst, more).clamp(0.0, 1.0));
            }
            self.proof_with(
                allowed,
                tails,
                &large,
                SmallStreams { burst, rate: BURST_SHARES[rate], spare: 0.0, until: WINDOWS * self.latency },
            )
        })
    }

    /// A sum with this meaning of small streams.
    fn proof_with(
        &self,
        allowed: f64,
        tails: &WorkTails,
        large: &[f64],
        limits: SmallStreams,
    ) -> Option<OneBurstSum> {
        let sum: f64 = large.iter().sum();
        let two = if large.len() > 1 { sum * sum / 2.0 } else { 0.0 };
        if two > allowed {
            return None;
        }
        let mut small: Option<[WorkTails; 2]> = None;
        for division in DIVISIONS {
            let Some(law) = &self.own.own[division.0] else { continue };
            // First as if small streams brought nothing: that costs little, and most latencies are too short.
            let delays = RefCell::new([f64::NAN; 256]);
            let mut meeting =
                Meeting { large, two, division, levels: [0.0; LEVELS], tails, small: None, delays };
            if self.sum(law, &meeting).0 > allowed {
                continue;
            }
            if small.is_none() {
                let with =
                    |spare| self.cross_traffic.small_tails(self.latency, SmallStreams { spare, ..limits });
                small = Some([with(SPARE[0])?, with(SPARE[1])?]);
            }
            let [beside, alone] = small.as_ref().expect("made above");
            let spare = 1.0 - SHARES[division.0] - BURST_SHARES[division.1];
            for level in 0..LEVELS {
                meeting.levels[level] =
                    beside.exceedance_until(spare, self.level(level), WINDOWS * self.latency);
            }
            meeting.small = Some(alone);
            let (all, own) = self.sum(law, &meeting);
            if all <= allowed {
                return Some(OneBurstSum {
                    latency: self.latency,
                    allowed,
                    shares: [SHARES[division.0], BURST_SHARES[division.1]],
                    burst: limits.burst,
                    own,
                    two,
                    others: (all - own - two).max(0.0),
                });
            }
        }
        None
    }

    /// What small streams bring at a level, seconds.
    fn level(&self, level: usize) -> f64 {
        self.latency * (level + 1) as f64 / LEVELS as f64
    }

    /// The least sum over the number of own values that are left to the parent's bound, and the part of these.
    fn sum(&self, law: &[LawAtom], meeting: &Meeting<'_>) -> (f64, f64) {
        let mut below: f64 = 0.0;
        let mut sums = vec![0.0];
        for atom in law {
            below += atom.probability * self.late_by_others(atom.work, meeting).min(1.0);
            sums.push(below);
        }
        let mut least = (below, 0.0);
        let mut above = 0.0;
        for (index, atom) in law.iter().enumerate().rev() {
            above += atom.probability;
            let own = self.late_by_own(above, meeting.tails);
            if own >= least.0 {
                break;
            }
            if sums[index] + own < least.0 {
                least = (sums[index] + own, own);
            }
        }
        least
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
            sum += small.exceedance_until(spare, room, WINDOWS * self.latency);
            sum += meeting.tails.exceedance_from(spare, -found, WINDOWS * self.latency);
        }
        sum
    }

    /// A bound on the part of requests that are late among those with the largest own work, by the parent's bound.
    fn late_by_own(&self, probability: f64, tails: &WorkTails) -> f64 {
        let mut least = probability;
        for (share, law) in self.own.own.iter().enumerate().take(OWN_SHARES) {
            let Some(law) = law else { continue };
            let (mut left, mut sum) = (probability, 0.0);
            for (index, atom) in law.iter().enumerate().rev() {
                let part = atom.probability.min(left);
                let room = self.latency - self.begun - atom.work;
                let known = &self.by_own[share][index];
                if known.get().is_nan() {
                    let late = if room < 0.0 { 1.0 } else { tails.exceedance(1.0 - SHARES[share], room) };
                    known.set(late);
                }
                sum += part * known.get();
                left -= part;
                if left <= 0.0 || sum >= least {
                    break;
                }
            }
            least = least.min(sum + left.max(0.0));
        }
        least
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
