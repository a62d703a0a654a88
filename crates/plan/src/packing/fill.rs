//! First fit, server by server: each server takes, in order, everybody who fits beside those whom it has taken.
//!
//! That is first fit, because who goes to the first server does not depend on the others. Going server by server,
//! several may be asked about at once: a block that fits beside the members is taken by one question, and a block that
//! does not fit is halved until one workload is left, which is passed over. Where latencies never fall when members
//! come, the result is that of asking one by one; in any case the procedure has accepted all members of a server together.
//! A server is closed after as many single workloads in a row did not fit as the patience allows.
//!
//! A closed server that fails the second judgement drops members until it passes (`judged.rs`). When everybody else has
//! been through, the dropped ones are offered to the servers that there are, and then get servers of their own.

use super::control::PackingPhase;
use super::judged::{DroppedMember, drop_until_confirmed, offer};
use super::questions::{Interruption, PackingQuestions, sorted};
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
    let interruption = fill_all(questions, &mut filled, rule).err();
    (filled, interruption)
}

fn fill_all<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    filled: &mut FilledServers,
    rule: FillRule,
) -> Result<(), Interruption> {
    let mut begin_with = 1;
    let (mut offered, mut hopeless) = (0, Vec::new());
    loop {
        let mut dropped: Vec<DroppedMember> = Vec::new();
        while filled.servers.len() < rule.servers && !filled.left_over.is_empty() {
            let taken = one_server(questions, filled, begin_with, rule)?;
            if taken.is_empty() {
                break;
            }
            let (members, mut missing) = drop_until_confirmed(questions, taken.clone(), rule.servers)?;
            if members.is_empty() {
                // The one that was dropped last fails the second judgement even alone.
                hopeless.extend(missing.pop());
            }
            // A block much like the last server most likely fits.
            begin_with = (members.len() * 3 / 4).max(1);
            let mut is_taken = taken.into_iter().peekable();
            filled.left_over.retain(|candidate| is_taken.next_if_eq(candidate).is_none());
            let server = filled.servers.len();
            dropped.extend(missing.into_iter().map(|member| DroppedMember { member, server }));
            if !members.is_empty() {
                filled.servers.push(members);
            }
        }
        let without_place = offer(questions, &mut filled.servers, offered, &dropped)?;
        offered = filled.servers.len();
        if without_place.is_empty() || filled.servers.len() >= rule.servers {
            filled.left_over.extend(without_place);
            filled.left_over.extend(hopeless);
            return Ok(());
        }
        filled.left_over.extend(without_place);
    }
}

/// The candidates that the next server takes, in their order.
fn one_server<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    filled: &FilledServers,
    begin_with: usize,
    rule: FillRule,
) -> Result<Vec<usize>, Interruption> {
    let candidates = &filled.left_over;
    let placed: usize = filled.servers.iter().map(Vec::len).sum();
    let total = placed + candidates.len();
    let (mut taken, mut next, mut block, mut refusals) = (Vec::new(), 0, begin_with, 0);
    while next < candidates.len() && refusals < rule.patience {
        questions.go_on(PackingPhase::FirstFit(rule.servers), placed + taken.len(), total)?;
        block = block.min(candidates.len() - next);
        let before = taken.len();
        taken.extend_from_slice(&candidates[next..next + block]);
        if questions.fits(&sorted(&taken)) {
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
    Ok(taken)
}
