//! SLOs that follow from bounds of an analysis before anything is measured, by the rules of
//! [`SloRule`](super::definition::SloRule).
//!
//! A bound is a function of a tenant and of those that have higher priorities, all by index, and in seconds.

use super::definition::ExperimentTenant;
use model::Slo;
use units::{Percentile, Seconds};

/// Ratio of a tenant's SLO to its bound.
const HEADROOM: f64 = 1.1;

/// The last tenant has the tightest SLO: that of its bound at the lowest priority.
pub(super) fn last_tightest(
    tenants: &[ExperimentTenant],
    bound: impl Fn(usize, &[usize]) -> f64,
) -> Vec<Slo> {
    let last = tenants.len() - 1;
    let others: Vec<usize> = (0..last).collect();
    let tightest = HEADROOM * bound(last, &others);
    let mut slos = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let seconds = match index == last {
            true => tightest,
            false => HEADROOM * tightest.max(bound(index, &others[..index])),
        };
        slos.push(slo(tenant, seconds));
    }
    slos
}

/// The order of the tenants is that of priority.
pub(super) fn in_order(tenants: &[ExperimentTenant], bound: impl Fn(usize, &[usize]) -> f64) -> Vec<Slo> {
    let order: Vec<usize> = (0..tenants.len()).collect();
    by_priority(tenants, &order, bound)
}

/// Priority is by the bound that each tenant has alone; of equal ones the earlier tenant comes first.
pub(super) fn own_bound(tenants: &[ExperimentTenant], bound: impl Fn(usize, &[usize]) -> f64) -> Vec<Slo> {
    let mut order: Vec<usize> = (0..tenants.len()).collect();
    order.sort_by(|&one, &other| bound(one, &[]).total_cmp(&bound(other, &[])));
    by_priority(tenants, &order, bound)
}

/// The tenants ask for these latencies, in seconds.
pub(super) fn requested(tenants: &[ExperimentTenant], seconds: &[f64]) -> Vec<Slo> {
    assert_eq!(tenants.len(), seconds.len(), "an SLO for each");
    tenants.iter().zip(seconds).map(|(tenant, seconds)| slo(tenant, *seconds)).collect()
}

/// SLOs by tenant, each from its bound below those that come before it in `order`.
fn by_priority(
    tenants: &[ExperimentTenant],
    order: &[usize],
    bound: impl Fn(usize, &[usize]) -> f64,
) -> Vec<Slo> {
    let mut slos = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let rank = order.iter().position(|&other| other == index).expect("the order has all tenants");
        slos.push(slo(tenant, HEADROOM * bound(index, &order[..rank])));
    }
    slos
}

/// The SLO at the tenant's percentile, rounded up to whole milliseconds.
fn slo(tenant: &ExperimentTenant, seconds: f64) -> Slo {
    let percentile = Percentile::new(tenant.percentile).expect("a percentile");
    Slo::new(percentile, Seconds((seconds * 1e3).ceil() / 1e3)).expect("a positive latency")
}
