//! The question that packing answers, and the shape of its answer.

use crate::admission::{AdmissionRefusal, Applicant, IdenticalServers};
use model::PerStage;

/// Applicants and servers of a packing.
#[derive(Debug)]
pub struct PackingProblem<'a, S> {
    pub servers: IdenticalServers,
    /// The workloads, with what the procedure keeps of them.
    pub applicants: &'a [Applicant<S>],
    /// The mean use of every stage by each applicant, fraction of capacity.
    pub loads: &'a [PerStage<f64>],
    /// The search begins with this number of servers, or with the lower bound if that is larger.
    pub servers_min: usize,
}

/// Which workloads share a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// The indices of the applicants on each server in use.
    pub servers: Vec<Vec<usize>>,
    /// The applicants that have no place, and why.
    pub refused: Vec<(usize, AdmissionRefusal)>,
    /// No number of servers below this can carry the load of the applicants that keep their SLO alone on a server.
    pub lower_bound: usize,
    /// Number of questions to the procedure.
    pub asked: usize,
    /// True if the search was interrupted; refused applicants may then have had a place.
    pub interrupted: bool,
}
