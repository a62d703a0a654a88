//! First fit, server by server: each server takes, in order, every workload that fits beside those already
//! taken.
//!
//! The result is that of first fit, because the members of the first server do not depend on the others.
//! Going server by server allows one question about several candidates: a block that fits beside the members
//! is taken at once, and a block that does not is halved until one workload is left, which is skipped. If
//! latencies never fall when members are added, the result is the same as one by one. In any case the
//! procedure has accepted all members of a server together, before any of them is dropped.
//!
//! If the procedure has a quick check, blocks are taken by that, and the members are checked in full from
//! time to time. When that fails, the first one that does not fit is skipped, and the search continues after
//! it.
//!
//! A candidate with the trace of one that did not fit, and no looser SLO, is skipped without a question. The
//! shifts of copies differ, but that seldom helps. A server is closed once as many single workloads did not
//! fit as the patience allows: among many candidates there is always one more that fits, but finding it takes
//! more questions than a new server.
//!
//! A closed server that fails the second judgement drops members until it passes (`judged.rs`). After all
//! other workloads, the dropped ones are offered to the existing servers, and then get servers of their own.

use super::control::PackingPhase;
use super::judged::{DroppedMember, confirmed_part, drop_until_confirmed, offer};
use super::questions::{Interruption, PackingQuestions};
use crate::admission::AdmissionProcedure;

/// Servers that have been filled, and who is left over.
#[derive(Debug, Default)]
pub(super) struct FilledServers {
    pub(super) servers: Vec<Vec<usize>>,
    pub(super) left_over: Vec<usize>,
}

/// Parameters of first fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillRule {
    pub(super) servers: usize,
    /// After how many workloads that do not fit a server is closed.
    pub(super) patience: usize,
    /// Number of times that servers are filled: first with all workloads, then with those left over.
    pub(super) rounds: usize,
}

/// Fills servers with the applicants in this order. Of an interrupted filling, the last server has who was certain to fit there.
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
    let mut offered = 0;
    let mut hopeless = Vec::new();
    for round in 1.. {
        let mut dropped: Vec<DroppedMember> = Vec::new();
        while filled.servers.len() < rule.servers && !filled.left_over.is_empty() {
            let (members, mut missing) = fill_one(questions, filled, begin_with, rule)?;
            if members.is_empty() && missing.is_empty() {
                break;
            }
            if members.is_empty() {
                // The one that was dropped last fails the second judgement even alone.
                hopeless.extend(missing.pop());
            }
            // A block much like the last server most likely fits.
            begin_with = (members.len() * 3 / 4).max(1);
            let server = filled.servers.len();
            dropped.extend(missing.into_iter().map(|member| DroppedMember { member, server }));
            if !members.is_empty() {
                filled.servers.push(members);
            }
        }
        let without_place = offer(questions, &mut filled.servers, offered, &dropped)?;
        offered = filled.servers.len();
        let is_last =
            without_place.is_empty() || filled.servers.len() >= rule.servers || round >= rule.rounds;
        filled.left_over.extend(without_place);
        if is_last {
            break;
        }
    }
    filled.left_over.extend(hopeless);
    Ok(())
}

/// Fills the next server. Gives its members, in ascending order, and those whom the second judgement made it drop; who is on it
/// is no longer left over.
fn fill_one<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    filled: &mut FilledServers,
    begin_with: usize,
    rule: FillRule,
) -> Result<(Vec<usize>, Vec<usize>), Interruption> {
    let placed: usize = filled.servers.iter().map(Vec::len).sum();
    let mut server = OpenServer::new(&filled.left_over, begin_with);
    let closed = server.fill(questions, placed, rule);
    let count = if closed.is_ok() { server.taken.len() } else { server.certain(questions) };
    let all = server.members(count);
    let mut members = all.clone();
    match closed.and_then(|()| drop_until_confirmed(questions, &mut members)) {
        Ok(dropped) => {
            let mut is_taken = all.into_iter().peekable();
            filled.left_over.retain(|candidate| is_taken.next_if_eq(candidate).is_none());
            Ok((members, dropped))
        }
        Err(interruption) => {
            let members = confirmed_part(questions, &members);
            filled.servers.extend(Some(members).filter(|members| !members.is_empty()));
            Err(interruption)
        }
    }
}

/// So many members at least are taken by a quick look before all are asked about in full.
const UNVERIFIED_MAX: usize = 3;

/// A server that takes candidates in their order.
struct OpenServer<'c> {
    candidates: &'c [usize],
    /// The positions of the members among the candidates, ascending.
    taken: Vec<usize>,
    /// Number of members that the procedure has accepted in full.
    verified: usize,
    /// The position of the next candidate.
    next: usize,
    /// Number of candidates offered at once.
    block: usize,
    /// The positions of single candidates that did not fit beside the members.
    refused: Vec<usize>,
}

impl<'c> OpenServer<'c> {
    fn new(candidates: &'c [usize], begin_with: usize) -> Self {
        Self { candidates, taken: Vec::new(), verified: 0, next: 0, block: begin_with, refused: Vec::new() }
    }

    fn unverified(&self) -> usize {
        self.taken.len() - self.verified
    }

    /// Takes candidates until all have been offered or too many did not fit; the members are then accepted in full. `placed`
    /// applicants are on other servers.
    fn fill<P: AdmissionProcedure>(
        &mut self,
        questions: &mut PackingQuestions<'_, P>,
        placed: usize,
        rule: FillRule,
    ) -> Result<(), Interruption> {
        let phase = PackingPhase::FirstFit(rule.servers);
        let total = placed + self.candidates.len();
        loop {
            questions.report(phase, placed + self.taken.len(), total)?;
            let is_full = self.next >= self.candidates.len() || self.refused.len() >= rule.patience;
            if self.unverified() > if is_full { 0 } else { UNVERIFIED_MAX.max(self.verified / 6) } {
                self.verify(questions)?;
            } else if is_full {
                return Ok(());
            } else {
                self.offer_block(questions);
            }
        }
    }

    /// Returns how many of the first members certainly fit, for a search that must end.
    fn certain<P: AdmissionProcedure>(&self, questions: &mut PackingQuestions<'_, P>) -> usize {
        let all = self.taken.len();
        if self.unverified() > 0 && questions.fits(&self.members(all)) { all } else { self.verified }
    }

    /// The first `count` members.
    fn members(&self, count: usize) -> Vec<usize> {
        self.taken[..count].iter().map(|&position| self.candidates[position]).collect()
    }

    /// Takes the next block if it looks as if it fitted; goes on with half of it otherwise, or behind a single one.
    fn offer_block<P: AdmissionProcedure>(&mut self, questions: &mut PackingQuestions<'_, P>) {
        let before = self.taken.len();
        let behind = self.take_block(questions);
        let size = self.taken.len() - before;
        if size == 0 {
            self.next = behind;
            return;
        }
        let answer = questions.likely_fits(&self.members(self.taken.len()));
        if answer != Some(false) {
            if answer.is_some() {
                self.verified = self.taken.len();
            }
            self.next = behind;
            self.block = if before == 0 { (self.taken.len() / 8).max(1) } else { 2 * self.block };
            return;
        }
        if size == 1 {
            self.refused.push(self.taken[before]);
            self.next = behind;
        }
        self.taken.truncate(before);
        self.block = (size / 2).max(1);
    }

    /// Takes the next block of candidates and returns the position after it. Skips candidates no easier to
    /// place than one that did not fit.
    fn take_block<P: AdmissionProcedure>(&mut self, questions: &PackingQuestions<'_, P>) -> usize {
        let until = self.taken.len() + self.block;
        let mut position = self.next;
        while position < self.candidates.len() && self.taken.len() < until {
            let candidate = self.candidates[position];
            let mut refused = self.refused.iter().map(|&refused| self.candidates[refused]);
            if !refused.any(|refused| questions.is_no_easier(candidate, refused)) {
                self.taken.push(position);
            }
            position += 1;
        }
        position
    }

    /// Asks about all members in full; goes back behind the first one that does not fit.
    fn verify<P: AdmissionProcedure>(
        &mut self,
        questions: &mut PackingQuestions<'_, P>,
    ) -> Result<(), Interruption> {
        if questions.fits(&self.members(self.taken.len())) {
            self.verified = self.taken.len();
            return Ok(());
        }
        let mut fails = self.taken.len();
        while fails - self.verified > 1 {
            questions.go_on()?;
            let middle = self.verified + (fails - self.verified) / 2;
            if questions.fits(&self.members(middle)) {
                self.verified = middle;
            } else {
                fails = middle;
            }
        }
        let refused = self.taken[self.verified];
        self.taken.truncate(self.verified);
        // Candidates refused later were refused beside a member that is now removed, so they get another
        // chance.
        self.refused.retain(|&position| position < refused);
        self.refused.push(refused);
        (self.next, self.block) = (refused + 1, 1);
        Ok(())
    }
}
