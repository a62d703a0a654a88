//! The 41 real workloads by the interface that scripts use.

use crate::support::{Folder, judge};
use serde_json::Value;

fn plan(folder: &Folder, more: &[&str]) -> Option<Value> {
    let dir = testkit::shared("traces")?;
    let path = |name: &str| dir.join(name).to_str().expect("the path is text").to_owned();
    let slos = path("slos.csv");
    let traces = path("");
    let storage = path("ssd-profile.json");
    let mut args = vec!["plan", "--slos", &slos, "--traces", &traces, "--storage", &storage];
    args.extend(["--network", "125MB/s", "--max-servers", "62", "--json"]);
    args.extend(more);
    Some(folder.run(&args).json())
}

#[test]
fn fewer_servers_than_the_published_methods_and_every_promise_kept() {
    let folder = Folder::new();
    let Some(ours) = plan(&folder, &["--compare"]) else { return };
    assert_eq!(ours["workloads_admitted"], 41);
    judge::check_promises(&ours);
    let used = |row: &Value| row["servers_used"].as_u64().unwrap();
    assert!(ours["servers_lower_bound"].as_u64() <= ours["servers_used"].as_u64());
    let compared = ours["compared"].as_array().unwrap()[1..].iter();
    // Several limiters are counted without what links ask of them.
    for row in compared
        .filter(|row| row["policy_name"] != "several-limiters" && row["policy_name"] != "priority-meister")
    {
        // Also in the best order that is found for each of them.
        assert!(used(&row["best_order"]) >= used(&ours), "{row}");
    }
    // 6 is the published figure for WorkloadCompactor, on servers that preempt.
    let published = plan(&folder, &["--preemptive"]).expect("the traces are there");
    assert_eq!(published["workloads_admitted"], 41);
    assert!(used(&published) <= 6 && used(&published) <= used(&ours));
    judge::check_promises(&published);
}

#[test]
fn first_fit_in_the_given_order_and_the_best_order_agree_on_promises() {
    let folder = Folder::new();
    for args in [
        &["--order", "given"][..],
        &["--method", "workload-compactor"],
        &["--method", "workload-compactor", "--fast-first-fit"],
        &["--method", "knee", "--order", "best"],
    ] {
        let Some(plan) = plan(&folder, args) else { return };
        judge::check_promises(&plan);
    }
}
