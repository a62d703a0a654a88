//! Whether all members keep their latency budgets, without computing their latencies.

use super::bound::{Probabilistic, worst_case};
use super::cross_traffic::{DependentGroups, MemberCrossTraffic};
use super::latencies::{ROUNDING, rung_below, share_within};
use super::one_burst::OneBurst;
use super::shares::{FIRST_SHARE, SHARES};
use super::sketch::ProbabilisticSketch;
use calculus::tail::{TailMethod, WorkTails};
use model::{ServerMember, Stage, UndefinedLatency};
use std::collections::BTreeMap;

/// The number of rooms for which a level's tail is tabulated.
const ROOMS: usize = 32;

/// Why a set of members is not accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ProbabilisticRefusal {
    /// The member with this index may exceed its budget.
    Exceeded(usize),
    /// The member with this index has no bound.
    Undefined(usize, UndefinedLatency),
}

impl Probabilistic {
    /// Accepts members whose bounds are all at most their budgets, seconds. The answer is that of
    /// [`predict`](model::LatencyModel::predict) up to the rounding of latencies, but members of a priority are first
    /// tried together, each counted once more than it must be, by moments and then by convolution; only those that fail
    /// this test are examined alone.
    ///
    /// # Errors
    /// The first member, by priority and then in their order, whose budget may be exceeded.
    ///
    /// # Panics
    /// When there is not one budget per member.
    pub fn accepts(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        budgets: &[f64],
    ) -> Result<(), ProbabilisticRefusal> {
        assert_eq!(members.len(), budgets.len(), "one budget per member");
        let allowed: Vec<AllowedLatency> =
            budgets.iter().map(|&budget| AllowedLatency::new(budget, 0.0)).collect();
        // Only members that are not accepted otherwise need the worst case.
        let mut worst: Option<Vec<Result<f64, UndefinedLatency>>> = None;
        let mut keeps_at_worst = |index: usize| {
            let worst = worst.get_or_insert_with(|| worst_case(members));
            worst[index].is_ok_and(|worst| worst <= allowed[index].latency)
        };
        self.accepts_allowed(members, &allowed, &mut keeps_at_worst)
    }

    /// Accepts members whose requests find some work begun; members without a limit are accepted.
    pub(super) fn accepts_allowed(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        allowed: &[AllowedLatency],
        keeps_at_worst: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ProbabilisticRefusal> {
        let mut levels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            if allowed[index].latency < f64::INFINITY {
                levels.entry(member.priority[Stage::NetworkIn]).or_default().push(index);
            }
        }
        let mut groups = DependentGroups::new();
        for level in levels.into_values() {
            self.accepts_level(members, allowed, level, &mut groups, keeps_at_worst)?;
        }
        Ok(())
    }

    /// Accepts the members of one priority level, given by their indices.
    fn accepts_level(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        allowed: &[AllowedLatency],
        level: Vec<usize>,
        groups: &mut DependentGroups,
        keeps_at_worst: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), ProbabilisticRefusal> {
        let mut left = level;
        if left.len() > 1
            && let Ok(cross_traffic) =
                MemberCrossTraffic::new((&self.grid, self.takes_turns), members, (left[0], true), groups)
        {
            for method in [TailMethod::Moments, TailMethod::Convolution] {
                left = uncertain_together(&cross_traffic, members, allowed, &left, method);
            }
        }
        for index in left {
            if let Err(refusal) = self.accepts_one(members, allowed[index], index, groups)
                && !keeps_at_worst(index)
            {
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Accepts one member, given by its index.
    fn accepts_one(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        allowed: AllowedLatency,
        index: usize,
        groups: &mut DependentGroups,
    ) -> Result<(), ProbabilisticRefusal> {
        let own = &members[index];
        let cross_traffic =
            MemberCrossTraffic::new((&self.grid, self.takes_turns), members, (index, false), groups);
        let cross_traffic =
            cross_traffic.map_err(|undefined| ProbabilisticRefusal::Undefined(index, undefined))?;
        if !own.sketch.keeps_order() {
            return Err(ProbabilisticRefusal::Undefined(index, UndefinedLatency::NoBound));
        }
        let fits = |method| {
            let tails = cross_traffic.tails(allowed.latency, method);
            let exceedance = |share: usize, room| tails.exceedance(1.0 - SHARES[share], room);
            let share = share_within(own.sketch, allowed.into(), late_share(own), FIRST_SHARE, exceedance);
            let by_one_burst = || {
                let request = OneBurst::new(&cross_traffic, own.sketch, allowed.into());
                request.proof(late_share(own), &tails)
            };
            share.is_some() || (method == TailMethod::Convolution && by_one_burst().is_some())
        };
        if allowed.latency > 0.0 && (fits(TailMethod::Moments) || fits(TailMethod::Convolution)) {
            Ok(())
        } else {
            Err(ProbabilisticRefusal::Exceeded(index))
        }
    }
}

/// How long the requests of a member may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedLatency {
    /// The longest latency, a rung of the ladder of bounds, seconds; infinite where nothing is asked for.
    latency: f64,
    /// Work that is begun before everything else, seconds.
    begun: f64,
}

impl AllowedLatency {
    /// A bound is a rung, so a budget is as good as the last rung below it.
    pub(super) fn new(budget: f64, begun: f64) -> Self {
        let latency = if budget == f64::INFINITY { budget } else { rung_below(budget) };
        Self { latency, begun }
    }
}

impl From<AllowedLatency> for (f64, f64) {
    fn from(allowed: AllowedLatency) -> Self {
        (allowed.latency, allowed.begun)
    }
}

/// The share of a member's requests that may be late.
fn late_share(member: &ServerMember<'_, ProbabilisticSketch>) -> f64 {
    1.0 - member.percentile.fraction() + ROUNDING
}

/// The members of a level that are not certain to keep their budgets if each competes with the whole level.
fn uncertain_together(
    cross_traffic: &MemberCrossTraffic<'_>,
    members: &[ServerMember<'_, ProbabilisticSketch>],
    allowed: &[AllowedLatency],
    level: &[usize],
    method: TailMethod,
) -> Vec<usize> {
    let is_independent =
        |index: usize| members.iter().filter(|m| m.group == members[index].group).count() == 1;
    let mut failed = Vec::new();
    let mut table: Option<(f64, ExceedanceTable)> = None;
    for &index in level {
        let AllowedLatency { latency: budget, begun } = allowed[index];
        if !(budget > 0.0 && is_independent(index) && members[index].sketch.keeps_order()) {
            failed.push(index);
            continue;
        }
        if table.as_ref().is_none_or(|(latency, _)| *latency != budget) {
            table = Some((budget, ExceedanceTable::new(cross_traffic.tails(budget, method))));
        }
        let (_, table) = table.as_mut().expect("made above");
        if !table.accepts(&members[index], begun) {
            failed.push(index);
        }
    }
    failed
}

/// The exceedances of a level by share and room, computed where they are needed.
struct ExceedanceTable {
    tails: WorkTails,
    /// The exceedance for each share and room; not a number where it has not been needed yet.
    known: Vec<[f64; ROOMS + 1]>,
}

impl ExceedanceTable {
    fn new(tails: WorkTails) -> Self {
        Self { tails, known: vec![[f64::NAN; ROOMS + 1]; SHARES.len()] }
    }

    /// Whether a member of the level certainly keeps the latency of the table.
    fn accepts(&mut self, member: &ServerMember<'_, ProbabilisticSketch>, begun: f64) -> bool {
        let latency = self.tails.latency();
        let exceedance = |share: usize, room: f64| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "rounded down, not negative"
            )]
            let room = ((room / latency * ROOMS as f64) as usize).min(ROOMS);
            let known = &mut self.known[share][room];
            if known.is_nan() {
                *known = self.tails.exceedance(1.0 - SHARES[share], latency * room as f64 / ROOMS as f64);
            }
            *known
        };
        share_within(member.sketch, (latency, begun), late_share(member), FIRST_SHARE, exceedance).is_some()
    }
}
