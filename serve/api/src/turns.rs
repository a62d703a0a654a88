//! Work on many workloads that leaves the lock of the cluster to others: a few are looked at under the lock, and
//! decisions come between.

use crate::cluster::Cluster;
use controller::{Controller, WorkloadState};

/// Workloads that are judged under one lock.
const LOCKED_MAX: usize = 4;

/// Calls `each` with workloads after a name until there are `limit` of them. Returns the name after which others follow.
pub(crate) fn each_workload(
    cluster: &Cluster,
    tenant: Option<&str>,
    mut after: String,
    limit: usize,
    mut each: impl FnMut(&Controller, u64, &WorkloadState),
) -> Option<String> {
    let mut left = limit;
    loop {
        let core = cluster.lock();
        let mut rest = core.controller.state().workloads_after(tenant, &after);
        let mut last = None;
        for (name, id, workload) in rest.by_ref().take(LOCKED_MAX.min(left)) {
            each(&core.controller, id, workload);
            left -= 1;
            last = Some(name.to_owned());
        }
        let has_more = rest.next().is_some();
        after = last.unwrap_or(after);
        if !has_more || left == 0 {
            return has_more.then_some(after);
        }
    }
}
