//! The questions of a search: to the procedure, to the second judgement, and whether to go on.

use super::control::{PackingControl, PackingPhase, PackingProgress};
use super::problem::PackingProblem;
use crate::admission::{AdmissionProcedure, Applicant, SharedServer};
use std::sync::Arc;

/// A search is over before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interruption;

/// Asks on behalf of a search, and counts.
pub(super) struct PackingQuestions<'a, P: AdmissionProcedure> {
    pub(super) procedure: &'a P,
    pub(super) problem: &'a PackingProblem<'a, P::Sketch>,
    pub(super) control: &'a PackingControl<'a>,
    /// Number of questions to the procedure so far.
    pub(super) asked: usize,
}

impl<P: AdmissionProcedure> PackingQuestions<'_, P> {
    /// Returns true if the procedure accepts these applicants on one server.
    pub(super) fn fits(&mut self, members: &[usize]) -> bool {
        self.ask(members, |procedure, server| procedure.fits(server, &procedure.priorities(server)))
    }

    /// As [`Self::fits`] by a quick, incomplete check; `None` if the procedure has none.
    pub(super) fn likely_fits(&mut self, members: &[usize]) -> Option<bool> {
        self.ask(members, |procedure, server| procedure.likely_fits(server, &procedure.priorities(server)))
    }

    fn ask<T>(
        &mut self,
        members: &[usize],
        question: impl FnOnce(&P, &SharedServer<'_, P::Sketch>) -> T,
    ) -> T {
        self.asked += 1;
        let members: Vec<&Applicant<P::Sketch>> =
            sorted(members).into_iter().map(|m| &self.problem.applicants[m]).collect();
        question(self.procedure, &self.shared_by(&members))
    }

    /// Returns true if `applicant` has the traffic of `other` and no looser SLO.
    pub(super) fn is_no_easier(&self, applicant: usize, other: usize) -> bool {
        let [own, other] = [applicant, other].map(|index| &self.problem.applicants[index]);
        Arc::ptr_eq(&own.sketch, &other.sketch)
            && own.group.is_none()
            && other.group.is_none()
            && own.slo.percentile == other.slo.percentile
            && own.slo.latency.0 <= other.slo.latency.0
    }

    /// Returns true if a server passes the second judgement, or there is none.
    pub(super) fn is_confirmed(&self, members: &[usize]) -> bool {
        self.control.judgement.is_none_or(|judgement| (judgement.confirms)(members))
    }

    /// Returns the members that miss the SLO by the second judgement, largest factor first, if known.
    pub(super) fn missing(&self, members: &[usize]) -> Vec<usize> {
        self.control.judgement.map_or_else(Vec::new, |judgement| (judgement.missing)(members))
    }

    /// Tells how far the search is, and whether to go on.
    pub(super) fn report(&self, phase: PackingPhase, done: usize, total: usize) -> Result<(), Interruption> {
        (self.control.watch)(PackingProgress { phase, done, total });
        self.go_on()
    }

    /// Returns an error if the search is to stop.
    pub(super) fn go_on(&self) -> Result<(), Interruption> {
        if (self.control.interrupted)() { Err(Interruption) } else { Ok(()) }
    }

    pub(super) fn shared_by<'m>(
        &self,
        members: &'m [&'m Applicant<P::Sketch>],
    ) -> SharedServer<'m, P::Sketch> {
        self.problem.servers.shared_by(members)
    }
}

/// The members of a server in the order in which a procedure is asked about them.
pub(super) fn sorted(members: &[usize]) -> Vec<usize> {
    let mut members = members.to_vec();
    members.sort_unstable();
    members
}
