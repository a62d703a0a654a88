//! Servers that fail the second judgement: whom they drop, and who takes the dropped ones.

use super::control::PackingPhase;
use super::questions::{Interruption, PackingQuestions, sorted};
use crate::admission::AdmissionProcedure;

/// An applicant that had to leave a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DroppedMember {
    pub(super) member: usize,
    /// The number of the server.
    pub(super) server: usize,
}

/// Drops members of `taken` until the others, in ascending order, pass the second judgement. Returns the
/// dropped ones in order: the member that misses its SLO most, or the last one taken if no member is known to
/// miss it.
pub(super) fn drop_until_confirmed<P: AdmissionProcedure>(
    questions: &PackingQuestions<'_, P>,
    taken: &mut Vec<usize>,
) -> Result<Vec<usize>, Interruption> {
    let mut dropped = Vec::new();
    // Listing the members that miss takes longer than a yes-or-no answer, so one list serves for several
    // drops.
    let mut missing = Vec::new().into_iter();
    while !taken.is_empty() && !questions.is_confirmed(&sorted(taken)) {
        questions.go_on()?;
        let worst = missing.next().or_else(|| {
            missing = questions.missing(&sorted(taken)).into_iter();
            missing.next()
        });
        let position = worst.and_then(|worst| taken.iter().position(|&member| member == worst));
        dropped.push(taken.remove(position.unwrap_or(taken.len() - 1)));
    }
    taken.sort_unstable();
    Ok(dropped)
}

/// A server that is cut short is judged so many times at most.
const LAST_JUDGEMENTS_MAX: usize = 4;

/// Some of those taken who pass the second judgement together, in ascending order, by few judgements: for a search that has to end.
pub(super) fn confirmed_part<P: AdmissionProcedure>(
    questions: &PackingQuestions<'_, P>,
    taken: &[usize],
) -> Vec<usize> {
    let mut kept = sorted(taken);
    for _ in 0..LAST_JUDGEMENTS_MAX {
        if kept.is_empty() || questions.is_confirmed(&kept) {
            return kept;
        }
        let missing = questions.missing(&kept);
        let before = kept.len();
        kept.retain(|member| !missing.contains(member));
        if kept.len() == before {
            kept.truncate(before / 2);
        }
    }
    Vec::new()
}

/// A dropped member is offered to no more servers than this, so that the offers grow with the number of workloads.
const OFFERS_MAX: usize = 12;

/// Offers the dropped ones to servers from `first` on, except the one that dropped them, and returns those that none
/// of them takes. Those with the fewest members are asked, because these leave most room.
pub(super) fn offer<P: AdmissionProcedure>(
    questions: &mut PackingQuestions<'_, P>,
    servers: &mut [Vec<usize>],
    first: usize,
    dropped: &[DroppedMember],
) -> Result<Vec<usize>, Interruption> {
    let mut without_place = Vec::new();
    for (done, &DroppedMember { member, server: own }) in dropped.iter().enumerate() {
        let mut others: Vec<usize> = (first..servers.len()).filter(|&server| server != own).collect();
        others.sort_by_key(|&server| servers[server].len());
        others.truncate(OFFERS_MAX);
        let mut takes_it = None;
        for server in others {
            questions.report(PackingPhase::Offer, done, dropped.len())?;
            let members = sorted(&[servers[server].as_slice(), &[member]].concat());
            if questions.fits(&members) && questions.is_confirmed(&members) {
                takes_it = Some((server, members));
                break;
            }
        }
        match takes_it {
            Some((server, members)) => servers[server] = members,
            None => without_place.push(member),
        }
    }
    Ok(without_place)
}
