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

/// Those of `taken` that pass the second judgement together, in ascending order, and those that were dropped for it,
/// the first one first: whoever misses the SLO most, or the last of those taken when nobody is known to miss it.
pub(super) fn drop_until_confirmed<P: AdmissionProcedure>(
    questions: &PackingQuestions<'_, P>,
    mut taken: Vec<usize>,
    servers: usize,
) -> Result<(Vec<usize>, Vec<usize>), Interruption> {
    let (total, mut dropped) = (taken.len(), Vec::new());
    // Asking who misses takes longer than asking whether anybody does, so one list serves for several drops.
    let mut missing = Vec::new().into_iter();
    while !taken.is_empty() && !questions.is_confirmed(&sorted(&taken)) {
        questions.go_on(PackingPhase::FirstFit(servers), taken.len(), total)?;
        let worst = missing.next().or_else(|| {
            missing = questions.missing(&sorted(&taken)).into_iter();
            missing.next()
        });
        let position = worst.and_then(|worst| taken.iter().position(|&member| member == worst));
        dropped.push(taken.remove(position.unwrap_or(taken.len() - 1)));
    }
    Ok((sorted(&taken), dropped))
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
            questions.go_on(PackingPhase::Offer, done, dropped.len())?;
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
