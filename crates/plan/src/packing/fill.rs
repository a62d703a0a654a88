//! First fit, server by server: each server takes, in order, everybody who fits beside those whom it has taken.
//!
//! That is first fit, because who goes to the first server does not depend on the others. Going server by server,
//! several may be asked about at once: a block that fits beside the members is taken by one question, and a block that
//! does not fit is halved until one workload is left, which is passed over. Where latencies never fall when members
//! come, the result is that of asking one by one; in any case the procedure has accepted all members of a server together.
//! A server is closed after as many single workloads in a row did not fit as the patience allows.
//!
//! A closed server that fails the second judgement loses the members that came last until it passes.

use super::control::PackingPhase;
use super::questions::{Interruption, PackingQuestions};
use crate::admission::AdmissionProcedure;

/// Servers that have been filled, and who is left over.
#[derive(Debug, Default)]
pub(super) struct FilledServers {
    pub(super) servers: Vec<Vec<usize>>,
    pub(super) left_over: Vec<usize>,
}

/// How first fit goes about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillRule {
    /// How many servers there are.
    pub(super) servers: usize,
    /// After how many workloads in a row that do not fit a server is closed.
    pub(super) patience: usize,
}

/// Fills servers with the applicants in this order; of an interrupted filling, the servers that are closed.
pub(super) fn fill<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    order: &[usize],
    rule: FillRule,
) -> (FilledServers, Option<Interruption>) {
    let mut filled = FilledServers { servers: Vec::new(), left_over: order.to_vec() };
    let phase = PackingPhase::FirstFit(rule.servers);
    let mut begin_with = 1;
    while filled.servers.len() < rule.servers && !filled.left_over.is_empty() {
        let placed = order.len() - filled.left_over.len();
        let mut going_on = |members: usize, questions: &PackingQuestions<'_, P>| {
            questions.go_on(phase, placed + members, order.len())
        };
        let candidates = &filled.left_over;
        let taken = match one_server(questions, candidates, begin_with, rule.patience, &mut going_on) {
            Ok(taken) => taken,
            Err(interruption) => return (filled, Some(interruption)),
        };
        if taken.is_empty() {
            break;
        }
        // A block much like the last server most likely fits.
        begin_with = (taken.len() * 3 / 4).max(1);
        let mut is_taken = taken.iter().copied().peekable();
        let mut members = Vec::with_capacity(taken.len());
        let left_over = std::mem::take(&mut filled.left_over);
        for (position, candidate) in left_over.into_iter().enumerate() {
            if is_taken.next_if_eq(&position).is_some() {
                members.push(candidate);
            } else {
                filled.left_over.push(candidate);
            }
        }
        members.sort_unstable();
        filled.servers.push(members);
    }
    (filled, None)
}

/// The positions of the candidates that one server takes, in ascending order.
fn one_server<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    candidates: &[usize],
    begin_with: usize,
    patience: usize,
    going_on: &mut dyn FnMut(usize, &PackingQuestions<'_, P>) -> Result<(), Interruption>,
) -> Result<Vec<usize>, Interruption> {
    let (mut taken, mut next, mut block, mut refusals) = (Vec::new(), 0, begin_with, 0);
    let members = |positions: &[usize]| {
        let mut members: Vec<usize> = positions.iter().map(|&position| candidates[position]).collect();
        members.sort_unstable();
        members
    };
    while next < candidates.len() && refusals < patience {
        going_on(taken.len(), questions)?;
        block = block.min(candidates.len() - next);
        let before = taken.len();
        taken.extend(next..next + block);
        if questions.fits(&members(&taken)) {
            next += block;
            refusals = 0;
            block = if before == 0 { (taken.len() / 8).max(1) } else { 2 * block };
            continue;
        }
        taken.truncate(before);
        if block == 1 {
            next += 1;
            refusals += 1;
        }
        block = (block / 2).max(1);
    }
    while !taken.is_empty() && !questions.is_confirmed(&members(&taken)) {
        going_on(taken.len(), questions)?;
        taken.truncate(taken.len() - taken.len().div_ceil(20));
    }
    Ok(taken)
}
