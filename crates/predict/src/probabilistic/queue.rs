//! Whether all members keep their latency budgets, without computing their latencies.

use super::field::{Field, Groups};
use super::sketch::{FIRST_SHARE, SHARES, Sketch};
use super::{Probabilistic, ROUNDING, rung_below, share_within, worst_case};
use calculus::tail::{TailMethod, WorkTails};
use model::{ServerMember, Stage, UndefinedLatency};
use std::collections::BTreeMap;

/// Rooms for which a level's tail is tabulated.
const ROOMS: usize = 32;

/// Why a set of members is not accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refusal {
    /// This member may exceed its budget.
    Exceeded(usize),
    /// This member has no bound.
    Undefined(usize, UndefinedLatency),
}

impl Probabilistic {
    /// Whether every member's bound is at most its budget, seconds: the first member, by priority and then in
    /// their order, for which it is not. The answer is that of [`predict`](crate::Model::predict) up to the
    /// rounding of latencies, but members of a priority are first tried together, each counted once more than
    /// it must be, by moments and then by convolution; only those who fail that are examined alone.
    ///
    /// # Panics
    /// If there is not one budget per member.
    pub fn accepts(&self, members: &[ServerMember<'_, Sketch>], budgets: &[f64]) -> Result<(), Refusal> {
        assert_eq!(members.len(), budgets.len(), "one budget per member");
        // A bound is a rung: what fits between two of them fits nobody.
        let budgets = &budgets.iter().map(|budget| rung_below(*budget)).collect::<Vec<_>>();
        let mut levels: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            levels.entry(member.priority[Stage::NetworkIn]).or_default().push(index);
        }
        let mut groups = Groups::new();
        // Only who is not accepted otherwise needs the worst case.
        let mut worst: Option<Vec<Result<f64, UndefinedLatency>>> = None;
        let mut at_worst = |index: usize| {
            let worst = worst.get_or_insert_with(|| worst_case(members));
            worst[index].is_ok_and(|worst| worst <= budgets[index])
        };
        for level in levels.into_values() {
            self.accepts_level(members, budgets, level, &mut groups, &mut at_worst)?;
        }
        Ok(())
    }

    fn accepts_level(
        &self,
        members: &[ServerMember<'_, Sketch>],
        budgets: &[f64],
        mut left: Vec<usize>,
        groups: &mut Groups,
        at_worst: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), Refusal> {
        if left.len() > 1
            && let Ok(field) = Field::new(&self.grid, members, left[0], true, groups)
        {
            for effort in [TailMethod::Moments, TailMethod::Convolution] {
                left = together(&field, members, budgets, &left, effort);
            }
        }
        for index in left {
            if let Err(refusal) = self.accepts_one(members, budgets[index], index, groups)
                && !at_worst(index)
            {
                return Err(refusal);
            }
        }
        Ok(())
    }

    fn accepts_one(
        &self,
        members: &[ServerMember<'_, Sketch>],
        budget: f64,
        index: usize,
        groups: &mut Groups,
    ) -> Result<(), Refusal> {
        let own = &members[index];
        let field = Field::new(&self.grid, members, index, false, groups);
        let field = field.map_err(|why| Refusal::Undefined(index, why))?;
        if !own.sketch.keeps_order() {
            return Err(Refusal::Undefined(index, UndefinedLatency::NoBound));
        }
        let fits = |effort| {
            let tails = field.tails(budget, effort);
            let others = |share: usize, room| tails.exceedance(1.0 - SHARES[share], room);
            share_within(own.sketch, budget, allowed(own), FIRST_SHARE, others).is_some()
        };
        if budget > 0.0 && (fits(TailMethod::Moments) || fits(TailMethod::Convolution)) {
            Ok(())
        } else {
            Err(Refusal::Exceeded(index))
        }
    }
}

fn allowed(member: &ServerMember<'_, Sketch>) -> f64 {
    1.0 - member.percentile.fraction() + ROUNDING
}

/// Those of a level that are not certain to keep their budgets if each competes with the whole level.
fn together(
    field: &Field<'_>,
    members: &[ServerMember<'_, Sketch>],
    budgets: &[f64],
    level: &[usize],
    effort: TailMethod,
) -> Vec<usize> {
    let alone = |index: usize| members.iter().filter(|m| m.group == members[index].group).count() == 1;
    let mut failed = Vec::new();
    let mut table: Option<(f64, Table)> = None;
    for &index in level {
        let budget = budgets[index];
        if !(budget > 0.0 && alone(index) && members[index].sketch.keeps_order()) {
            failed.push(index);
            continue;
        }
        if table.as_ref().is_none_or(|(latency, _)| *latency != budget) {
            table = Some((budget, Table::new(field.tails(budget, effort))));
        }
        let (_, table) = table.as_mut().expect("made above");
        if !table.within(&members[index]) {
            failed.push(index);
        }
    }
    failed
}

/// Exceedances of a level by share and room, where they were needed.
struct Table {
    tails: WorkTails,
    known: Vec<[f64; ROOMS + 1]>,
}

impl Table {
    fn new(tails: WorkTails) -> Self {
        Self { tails, known: vec![[f64::NAN; ROOMS + 1]; SHARES.len()] }
    }

    fn within(&mut self, member: &ServerMember<'_, Sketch>) -> bool {
        let latency = self.tails.latency();
        let others = |share: usize, room: f64| {
            // Rounded down; not negative.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let room = ((room / latency * ROOMS as f64) as usize).min(ROOMS);
            let known = &mut self.known[share][room];
            if known.is_nan() {
                *known = self.tails.exceedance(1.0 - SHARES[share], latency * room as f64 / ROOMS as f64);
            }
            *known
        };
        share_within(member.sketch, latency, allowed(member), FIRST_SHARE, others).is_some()
    }
}
