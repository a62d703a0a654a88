//! Placed workloads as a [`Policy`].

use crate::input::Scene;
use crate::planning::stage_limit;
use ::plan::admission::Priority;
use model::{LatencyModel, POLICY_FORMAT, Policy, PolicyServer, PolicyWorkload, Stage, StageLimit};
use predict::WorstCase;

/// Where a tenant goes and what it is promised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    pub(crate) server: usize,
    pub(crate) priority: Priority,
    /// Seconds, base latency included.
    pub(crate) bound: f64,
}

/// The name of a server in use, `<class>-<n>`.
pub(crate) fn server_name(scene: &Scene, server: usize) -> String {
    format!("{}-{}", scene.class, server + 1)
}

/// The policy of a procedure; by tenant its home or why it has none, `None` where it did not ask.
pub(crate) fn policy(scene: &Scene, name: &str, homes: &[Option<Result<Home, String>>]) -> Policy {
    let mut used: Vec<usize> = homes.iter().flatten().flatten().map(|home| home.server).collect();
    used.sort_unstable();
    used.dedup();
    let server = |server: usize| PolicyServer {
        name: server_name(scene, server),
        class: scene.class.clone(),
        network_bytes_per_s: scene.network.bytes_per_sec(),
        storage_profile: scene.profile.as_ref().map_or_else(String::new, |profile| profile.name().to_owned()),
    };
    let asked = homes.iter().enumerate().filter_map(|(tenant, home)| Some((tenant, home.as_ref()?)));
    Policy {
        format: POLICY_FORMAT.into(),
        policy_name: name.to_owned(),
        servers: used.into_iter().map(server).collect(),
        workloads: asked.map(|(tenant, home)| workload(scene, tenant, home.as_ref())).collect(),
    }
}

fn workload(scene: &Scene, tenant: usize, home: Result<&Home, &String>) -> PolicyWorkload {
    let spec = &scene.tenants[tenant].spec;
    let priorities = home.ok().map(|home| home.priority.into_array());
    let differ = |p: &[u32; 3]| p.iter().any(|priority| *priority != p[0]);
    PolicyWorkload {
        name: spec.name.clone(),
        admitted: home.is_ok(),
        server: home.ok().map(|home| server_name(scene, home.server)),
        priority: priorities.map(|p| p[0]),
        priority_by_stage: priorities.filter(differ),
        slo: spec.slo,
        slo_percentile: spec.slo.percentile.percent(),
        slo_s: spec.slo.latency.0,
        bound_s: home.ok().map(|home| home.bound),
        limits: if home.is_ok() { limits(scene, tenant) } else { Vec::new() },
        refusal: home.err().cloned(),
    }
}

/// Limits may let through this much more than the trace has.
const LIMITER_TOLERANCE: f64 = 0.05;

/// Several simultaneous limits per stage, which delay nothing of the trace (thesis §3.2.1).
fn limits(scene: &Scene, tenant: usize) -> Vec<StageLimit> {
    let sketch = WorstCase::default().sketch(&scene.tenants[tenant].traffic);
    let of = |stage: Stage| ::plan::limiters(sketch.curve(stage), LIMITER_TOLERANCE);
    let stages = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Storage || scene.profile.is_some());
    let limits = |stage| of(stage).into_iter().map(move |limit| stage_limit(stage, limit, scene.network));
    stages.flat_map(limits).collect()
}
