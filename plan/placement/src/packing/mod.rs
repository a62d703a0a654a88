//! Packing: assigns workloads to servers, where an admission procedure decides which of them may share one.
//!
//! It takes applicants with what any [`AdmissionProcedure`] keeps of them (a latency model's sketches, say) and identical
//! servers, and gives a list of members for each server, with a refusal for each applicant that found no place. It
//! chooses no limits: what holds for the servers is the procedure's own word, a bound under an assumption or an estimate.
//! Use it when all workloads are known and a stated assumption about their traffic is enough: `tailwright plan --model`.
//! Where latencies have to be guaranteed by limits, or there are several classes of server, see [`crate::placement`];
//! where workloads come and go, see [`crate::admission`], whose procedures and controller this search uses.
//!
//! A procedure may be slow (replaying traces takes a second), so the search asks it rarely. A workload that
//! misses the SLO alone on a server is refused first (`alone.rs`). The others fill one server after the
//! other, many by one question (`fill.rs`): the number of questions grows with the number of workloads, not
//! with its square. More than 300 workloads fill servers in parts, on several threads (`lanes.rs`). Up to 300
//! workloads are also spread evenly, the largest load first (LPT, Graham 1969), because an even spread leaves
//! every workload slack. The number of servers is searched up to that of the first answer: up in growing
//! steps until one fits, down by bisection.
//!
//! Then, within the [`SearchEffort`], first fit, tightest SLO first and largest load first, tries to save one
//! server after the other. The procedure has accepted every server of the result. If its answers are
//! estimates, use [`SearchEffort::FirstFound`]: of many placements, the one that looks just good enough is
//! worse than it looks. A second procedure, [`PackingControl::judgement`], can be set, which every server
//! must pass.
//!
//! An interrupted search returns the servers that are certain by then, including those that are being filled.
//!
//! Not covered: optimality (the number of servers is at least [`Packing::lower_bound`]).

mod alone;
mod control;
mod fill;
mod judged;
mod lanes;
mod problem;
mod questions;
mod search;

pub use control::{PackingControl, PackingPhase, PackingProgress, SecondJudgement};
pub use problem::{Packing, PackingProblem};

use crate::admission::AdmissionProcedure;
use crate::effort::SearchEffort;
use alone::refused_alone;
use questions::PackingQuestions;
use search::PackingSearch;

/// Places as many applicants as fit on few servers. Each procedure is used by one thread; all must give the
/// same answers, so the result does not depend on their number.
///
/// # Panics
/// If there is no procedure, or not one load per applicant.
pub fn pack<P>(
    procedures: &[P],
    problem: &PackingProblem<'_, P::Sketch>,
    effort: SearchEffort,
    control: &PackingControl<'_>,
) -> Packing
where
    P: AdmissionProcedure<Sketch: Send + Sync> + Sync,
{
    assert_eq!(problem.applicants.len(), problem.loads.len(), "one load per applicant");
    let procedure = procedures.first().expect("there is a procedure");
    let (candidates, mut refused) = refused_alone(procedure, problem, control);
    let questions = PackingQuestions { procedure, problem, control, asked: 0 };
    let mut search = PackingSearch::new(questions, procedures, candidates);
    let lower_bound = search.lower_bound();
    let (servers, without_place) = search.run(lower_bound, effort);
    refused.extend(without_place);
    refused.sort_by_key(|(applicant, _)| *applicant);
    Packing { servers, refused, lower_bound, asked: search.asked(), interrupted: search.interrupted() }
}
