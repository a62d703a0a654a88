//! Finds workloads that miss the SLO alone on a server, which need no search for others to share with.
//!
//! The check is a heuristic. Other members take capacity away, and if every request has work at all stages,
//! no request of a replay becomes earlier by them. But a request without work at a stage overtakes one that
//! others delay there, and may be earlier at the next stage than without them; and a model's bounds need not
//! be monotone. So a workload refused here might have kept its SLO beside others. Servers stay correct: the
//! procedure is asked about each with all its members. Copies of a trace at one percentile share the
//! prediction.

use super::control::{PackingControl, PackingPhase, PackingProgress};
use super::problem::PackingProblem;
use crate::admission::{AdmissionProcedure, AdmissionRefusal, Applicant, Breach};
use model::UndefinedLatency;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Percentile;

/// A shared prediction decides only where it is this far, as a fraction, from what is allowed: models round.
const CLEAR: f64 = 0.1;

/// The applicants that keep their SLO alone, and the others with the reason. Those not asked about before an interruption
/// count as candidates.
pub(super) fn refused_alone<P: AdmissionProcedure>(
    procedure: &P,
    problem: &PackingProblem<'_, P::Sketch>,
    control: &PackingControl<'_>,
) -> (Vec<usize>, Vec<(usize, AdmissionRefusal)>) {
    let mut candidates = Vec::new();
    let mut refused = Vec::new();
    if problem.servers.count == 0 {
        return ((0..problem.applicants.len()).collect(), refused);
    }
    let mut predictions = AlonePredictions { procedure, problem, known: BTreeMap::new() };
    let total = problem.applicants.len();
    for (index, applicant) in problem.applicants.iter().enumerate() {
        (control.watch)(PackingProgress { phase: PackingPhase::Alone, done: index, total });
        if (control.interrupted)() {
            candidates.extend(index..total);
            break;
        }
        match predictions.breach(applicant) {
            None => candidates.push(index),
            Some(breach) => refused.push((index, AdmissionRefusal::Alone(breach))),
        }
    }
    (candidates, refused)
}

struct AlonePredictions<'a, P: AdmissionProcedure> {
    procedure: &'a P,
    problem: &'a PackingProblem<'a, P::Sketch>,
    /// The latency of a sketch's only member by address of the sketch and bits of the percentile: only looked up, so
    /// that addresses decide nothing.
    known: BTreeMap<(usize, u64), Result<f64, UndefinedLatency>>,
}

impl<P: AdmissionProcedure> AlonePredictions<'_, P> {
    /// Returns the breach of an applicant alone on a server; `None` if it keeps its SLO there.
    fn breach(&mut self, applicant: &Applicant<P::Sketch>) -> Option<Breach> {
        let members = [applicant];
        let server = self.problem.servers.shared_by(&members);
        let priorities = self.procedure.priorities(&server);
        let key = (Arc::as_ptr(&applicant.sketch).addr(), percentile_bits(applicant.slo.percentile));
        let known = self.known.entry(key);
        let latency = *known.or_insert_with(|| self.procedure.latencies(&server, &priorities)[0]);
        let allowed = server.allowed(0);
        let fits = match latency {
            Ok(latency) if latency <= allowed * (1.0 - CLEAR) => true,
            Ok(latency) if latency > allowed * (1.0 + CLEAR) => false,
            Ok(_) | Err(_) => self.procedure.fits(&server, &priorities),
        };
        if fits {
            return None;
        }
        Breach::worst(&server, &[latency], 1)
            .or_else(|| Breach::worst(&server, &self.procedure.latencies(&server, &priorities), 1))
    }
}

fn percentile_bits(percentile: Percentile) -> u64 {
    percentile.percent().to_bits()
}
