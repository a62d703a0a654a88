//! SLOs and policies of tenants behind one link.

use super::super::case_plan::CasePlan;
use super::super::definition::{ExperimentCase, SloRule};
use super::super::requests::TenantRequests;
use super::super::scaled_trace::ScaledTrace;
use super::super::slo_assignment;
use super::analysis::LinkAnalysis;
use super::work::link_time;
use model::{Op, OperationError, Slo};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Percentile;

/// The seed of the places in the traces at which tenants begin.
const SEED: u64 = 1;

/// Plans a case whose tenants have these requests.
pub(in super::super) fn plan_case(
    case: &ExperimentCase,
    requests: TenantRequests,
) -> Result<CasePlan, OperationError> {
    assert!(case.misbehaves.is_none(), "on a link everybody behaves");
    let sent = scaled(case, requests)?;
    let analysis = LinkAnalysis::new(case.tenants, &sent);
    let slos = slos(case, &analysis);
    let (policy, admits_all) = match case.slos {
        SloRule::Requested(_) => analysis.policy_by_admission(&slos),
        _ => analysis.policy_by_search(&slos),
    };
    let by_slo = analysis.by_slo(&slos);
    Ok(CasePlan { case: *case, slos, sent, policy, admits_all, by_slo })
}

/// The requests that the tenants send, all of them reads.
fn scaled(case: &ExperimentCase, requests: TenantRequests) -> Result<Vec<ScaledTrace>, OperationError> {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut sent = Vec::new();
    for (tenant, mut requests) in case.tenants.iter().zip(requests) {
        for request in &mut requests {
            request.op = Op::Read;
        }
        let link_seconds = requests.iter().map(link_time).sum();
        let scaled = ScaledTrace::with_load(requests, link_seconds, tenant.load)?;
        // The traces come from machines of one site and may have common bursts, which must not coincide here.
        let first = random.random_range(0..scaled.trace.items().len());
        sent.push(scaled.rotated_to(first));
    }
    Ok(sent)
}

fn slos(case: &ExperimentCase, analysis: &LinkAnalysis) -> Vec<Slo> {
    let bound = |tenant: usize, above: &[usize]| {
        let percentile = Percentile::new(case.tenants[tenant].percentile).expect("a percentile");
        analysis.bound(tenant, percentile, above)
    };
    match case.slos {
        SloRule::Requested(seconds) => slo_assignment::requested(case.tenants, seconds),
        SloRule::OwnBound => slo_assignment::own_bound(case.tenants, bound),
        SloRule::LastTightest => slo_assignment::last_tightest(case.tenants, bound),
        SloRule::InOrder | SloRule::AsFirstCase => unreachable!("no experiment on a link has this rule"),
    }
}
