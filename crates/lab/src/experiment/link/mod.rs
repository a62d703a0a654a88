//! Experiments whose bottleneck is the link on which the servers' host sends answers (thesis §3.4.4 and chapter 4).
//!
//! Every request is a read: its answer is what the link carries. Under every policy all hosts have the same tree of
//! queues with the same rate, so that policies differ only in classes and limits: without a policy everything is in
//! one class, first come first served.
//!
//! **Bytes** on the link are those of frames, as the limiters count them: of each TCP segment 66 bytes are headers (Ethernet,
//! IPv4, TCP with time stamps), 4.6 % of a full one; the head of an answer, its last segment's headers and an acknowledgement
//! are less than 200.

mod analysis;
mod ground;

pub(super) use ground::LinkGround;

use super::data::{Case, Experiment, Server, Slos, Tenant};
use super::demand::{Demand, PlannedCase, asked, last_tightest, own_bound};
use crate::device::{Cost, Model};
use analysis::Analysis;
use model::{Op, OperationError, Request, Stage};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::{Bytes, Nanos, Percentile};
use workload::device::NetworkModel;

const NETWORK: NetworkModel =
    NetworkModel { header: Bytes(200), data_thousandths: 1050, other_thousandths: 50 };
/// Of the places in the traces at which tenants begin.
const SEED: u64 = 1;

/// Time of the link for an answer, seconds.
fn on_link(request: &Request) -> f64 {
    NETWORK.work(Stage::NetworkOut, request).base_units() * 8.0 / Experiment::LINK_BITS_PER_S
}

/// The emulated disk of a tenant that has one: a request takes the same time whatever its size.
fn disk(tenant: &Tenant, demand: &Demand) -> Option<Model> {
    let Server::Disk { busy } = tenant.server else { return None };
    let service = busy * demand.period.as_secs() / demand.requests.len() as f64;
    let cost = Cost::new(Nanos::from_secs(service).unwrap_or(Nanos::ZERO), 0);
    Some(Model { channels: 1, read: cost, write: cost, bandwidth: None })
}

/// SLOs and policies of a case with these requests by tenant.
pub(super) fn planned(case: &Case, traces: Vec<Vec<Request>>) -> Result<PlannedCase, OperationError> {
    assert!(case.misbehaves.is_none(), "on a link everybody behaves");
    let mut sent = Vec::new();
    let mut random = StdRng::seed_from_u64(SEED);
    for (tenant, mut requests) in case.tenants.iter().zip(traces) {
        requests.iter_mut().for_each(|request| request.op = Op::Read);
        let work = requests.iter().map(on_link).sum();
        let demand = Demand::of_work(requests, work, tenant.load)?;
        // Traces were recorded on machines of one site: not at the same time here.
        let first = random.random_range(0..demand.requests.len());
        sent.push(demand.begun_at(first));
    }
    let analysis = Analysis::new(case.tenants, &sent);
    let (slos, policy) = match case.slos {
        Slos::Asked(seconds) => {
            let slos = asked(case.tenants, seconds);
            let policy = analysis.admitted(&slos);
            (slos, policy)
        }
        Slos::LastTightest | Slos::OwnBound => {
            let percentile = |at: usize| Percentile::new(case.tenants[at].percentile).expect("a percentile");
            let bound = |at: usize, above: &[usize]| analysis.bound(at, percentile(at), above);
            let slos = match case.slos {
                Slos::OwnBound => own_bound(case.tenants, bound),
                _ => last_tightest(case.tenants, bound),
            };
            let policy = analysis.prioritised(&slos);
            (slos, policy)
        }
        Slos::InOrder | Slos::OfFirst => unreachable!("no experiment on a link has them"),
    };
    Ok(PlannedCase { case: *case, by_slo: analysis.by_slo(&slos), slos, sent, policy })
}

#[cfg(test)]
mod tests;
