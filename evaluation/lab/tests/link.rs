//! Two tenants of a real memcached share one link: the effect of policies on real requests.

use enforce::command::{Programs, may_configure_networks};
use enforce::network::probe_kernel;
use lab::experiment::{
    Bottleneck, ExperimentCase, ExperimentPlan, ExperimentTenant, LabExperiment, PolicyName, RunSettings,
    SloRule, TenantServer, TenantSource, WorkloadResult, run_case, workload_results,
};
use lab::servers::may_be_realtime;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};

const fn tenant(name: &'static str, c2: f64, size: u64, load: f64) -> ExperimentTenant {
    let source = TenantSource::Synthetic { c2, size: Bytes(size) };
    ExperimentTenant { name, source, server: TenantServer::Cache, load, percentile: 99.0 }
}

/// As figure 4.1, with one tenant that bursts and one that does not.
const SMALL: LabExperiment = LabExperiment {
    name: "small",
    title: "two tenants of memcached behind one link",
    claim: "",
    bottleneck: Bottleneck::Link,
    cases: &[ExperimentCase {
        name: "",
        tenants: &[tenant("quick", 1.0, 4096, 0.05), tenant("bulk", 20.0, 64 << 10, 0.7)],
        slos: SloRule::Requested(&[0.1, 1.0]),
        misbehaves: None,
    }],
    copy: None,
    duration: Nanos(1_000_000_000),
    warm_up: Nanos(0),
    policies: &[PolicyName::None, PolicyName::Tailwright],
};

fn play(planned: &ExperimentPlan, policy: PolicyName) -> Vec<WorkloadResult> {
    let settings = RunSettings {
        warm_up: Nanos(500_000_000),
        duration: Nanos(3_000_000_000),
        seed: 1,
        realtime: may_be_realtime(),
    };
    let case = &planned.cases[0];
    let run = run_case(planned, case, policy, &settings, &mut |_| {}, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error}"));
    let (results, copy) = workload_results(planned, case, policy, &run);
    assert!(copy.is_none(), "there is no copy");
    results
}

fn lacking() -> Option<String> {
    if !may_configure_networks() {
        return Some("namespaces need root".to_owned());
    }
    let abilities = match probe_kernel(&mut Programs) {
        Ok(abilities) => abilities,
        Err(error) => return Some(error.to_string()),
    };
    let missing = abilities.into_iter().find(|ability| ability.needed && ability.lack.is_some());
    if let Some(missing) = missing {
        return Some(format!("this kernel lacks {}", missing.name));
    }
    testkit::program("memcached").is_none().then(|| "memcached is not installed".to_owned())
}

#[test]
fn priority_on_the_link_protects_the_tenant_that_has_it() {
    if let Some(reason) = lacking() {
        return testkit::skip(&reason);
    }
    let planned = ExperimentPlan::new(&SMALL, Path::new("/nonexistent")).expect("no trace is read");
    assert_eq!(planned.cases[0].policy.workloads[0].priority, Some(0));
    let [without, with] = SMALL.policies else { panic!("two policies") };
    testkit::Rounds { count: 5, must_hold: 3 }.check(|| {
        let [without, with] = [without, with].map(|policy| play(&planned, *policy));
        for (rows, policy) in [(&without, "none"), (&with, "tailwright")] {
            assert_eq!(
                rows.iter().map(|row| (row.name.as_str(), row.policy)).collect::<Vec<_>>(),
                [("quick", policy), ("bulk", policy)]
            );
            for row in rows {
                assert!(
                    row.finding.judgement.requests > 50,
                    "{}: {}",
                    row.name,
                    row.finding.judgement.requests
                );
                assert_eq!(
                    (row.judgement.percentile, row.is_promised),
                    (99.0, row.is_promised && policy == "tailwright")
                );
            }
            assert_eq!((rows[0].judgement.slo_s, rows[1].judgement.slo_s), (0.1, 1.0));
        }
        assert!(with[0].is_promised);
        let [with, without] =
            [with, without].map(|rows| rows[0].judgement.measured_s.unwrap_or(f64::INFINITY));
        (with < without).then_some(()).ok_or_else(|| format!("p99 {with} s with and {without} s without"))
    });
}
