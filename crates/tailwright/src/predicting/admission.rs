//! A stream of arrivals and departures, decided one after the other.

use super::by_name::{ProcedureName, ProcedureVisitor};
use crate::input::events::Event;
use crate::input::{Scene, Tenant, in_parallel};
use crate::terminal;
use ::plan::admission::{
    AdmissionController, AdmissionGuarantee, AdmissionProcedure, AdmissionRefusal, Applicant,
    IdenticalServers,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What came of an event.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) event: Event,
    pub(crate) outcome: Outcome,
    pub(crate) elapsed: Duration,
}

/// The answer to an event.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// On this server.
    Accepted(usize),
    Refused(AdmissionRefusal),
    Departed,
    /// It was not there to depart.
    Absent,
}

/// The end of the stream.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) name: ProcedureName,
    pub(crate) decisions: Vec<Decision>,
    /// What those who are there now may rely on, by server and order of arrival.
    pub(crate) guarantees: Vec<AdmissionGuarantee>,
    /// Making sketches of the traces.
    pub(crate) sketching: Duration,
}

impl Admission {
    /// Tenants that are not there and were refused when they last asked, with the reason.
    pub(crate) fn refused<'a>(&'a self, scene: &'a Scene) -> Vec<(usize, &'a AdmissionRefusal)> {
        let last = |tenant: usize| {
            self.decisions.iter().rev().find_map(|decision| match (&decision.event, &decision.outcome) {
                (Event::Arrive(who), Outcome::Refused(why)) if who.contains(&tenant) => Some(Some(why)),
                (Event::Arrive(who), _) if who.contains(&tenant) => Some(None),
                _ => None,
            })
        };
        // Who is there and asked again is refused only the second place.
        let is_there =
            |tenant: usize| self.guarantees.iter().any(|g| g.name == scene.tenants[tenant].spec.name);
        let absent = (0..scene.tenants.len()).filter(|tenant| !is_there(*tenant));
        absent.filter_map(|tenant| Some((tenant, last(tenant)??))).collect()
    }
}

/// Decides the events in their order.
pub(crate) fn admit(scene: &Scene, events: Vec<Event>, name: ProcedureName) -> Admission {
    name.run(scene.network, Stream { scene, events, name })
}

struct Stream<'a> {
    scene: &'a Scene,
    events: Vec<Event>,
    name: ProcedureName,
}

impl ProcedureVisitor for Stream<'_> {
    type Output = Admission;

    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&Tenant) -> P::Sketch + Sync,
    ) -> Admission {
        let start = Instant::now();
        let applicants = applicants(self.scene, 0..self.scene.tenants.len(), sketch);
        let sketching = start.elapsed();
        let mut desk = AdmissionController::new(procedure, host(self.scene));
        let bar = terminal::progress(self.events.len() as u64, "deciding", "events");
        let decide = |event: Event| {
            let start = Instant::now();
            let outcome = match &event {
                Event::Arrive(who) => {
                    match desk.arrive(who.iter().map(|&w| applicants[w].clone()).collect()) {
                        Ok(server) => Outcome::Accepted(server),
                        Err(refusal) => Outcome::Refused(refusal),
                    }
                }
                Event::Depart(who) => match desk.depart(&applicants[*who].name) {
                    Some(_) => Outcome::Departed,
                    None => Outcome::Absent,
                },
            };
            bar.inc(1);
            Decision { event, outcome, elapsed: start.elapsed() }
        };
        let decisions = self.events.into_iter().map(decide).collect();
        bar.finish_and_clear();
        Admission { name: self.name, decisions, guarantees: desk.guarantees(), sketching }
    }
}

/// Some of the scene's tenants as a procedure sees them; sketched in parallel.
pub(super) fn applicants<S: Send>(
    scene: &Scene,
    tenants: impl IntoIterator<Item = usize>,
    sketch: impl Fn(&Tenant) -> S + Sync,
) -> Vec<Applicant<S>> {
    let tenants: Vec<&Tenant> = tenants.into_iter().map(|tenant| &scene.tenants[tenant]).collect();
    let sketches = in_parallel("sketching", &tenants, |tenant| Ok(sketch(tenant)));
    let sketches = sketches.expect("no sketch fails");
    let alone = |group: usize| scene.tenants.iter().filter(|tenant| tenant.group == group).count() == 1;
    let number = |group: usize| u32::try_from(group).expect("fewer than 2^32 workloads");
    let applicant = |(tenant, sketch): (&Tenant, S)| Applicant {
        name: tenant.spec.name.clone(),
        slo: tenant.spec.slo,
        group: (!alone(tenant.group)).then(|| number(tenant.group)),
        sketch: Arc::new(sketch),
    };
    tenants.into_iter().zip(sketches).map(applicant).collect()
}

/// The scene's servers.
pub(super) fn host(scene: &Scene) -> IdenticalServers {
    IdenticalServers {
        count: scene.count,
        base_latency: scene.base_latency(),
        slo_factor: ::plan::PlanningProblem::SLO_FACTOR,
    }
}
