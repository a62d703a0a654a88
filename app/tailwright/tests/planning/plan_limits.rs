//! Workloads that are described by limits instead of a trace.

use crate::support::Folder;
use crate::support::cluster::{PROFILE, Request};
use crate::support::judge;

const CLUSTER: &str = r#"
[[server]]
class = "ssd"
count = 1
storage = "ssd.json"
network = "125MB/s"
[[workload]]
name = "mail"
trace = "mail.limits"
slo = "99.9% < 200ms"
[[workload]]
name = "log"
trace = "log.limits"
slo = "99.9% < 500ms"
"#;

/// Requests of one size and operation, with buckets of (rate in requests per second, burst in requests).
struct Kind {
    read: bool,
    size: u64,
    buckets: &'static [(f64, f64)],
}

impl Kind {
    fn rows(&self) -> String {
        let op = if self.read { "read" } else { "write" };
        let row = |(rate, burst): &(f64, f64)| format!("{op},{},{rate},{burst}\n", self.size);
        self.buckets.iter().map(row).collect()
    }

    /// Returns the most work at a stage in any interval of so many seconds.
    fn most_work(&self, stage: usize, seconds: f64) -> f64 {
        let request = Request { arrival_ns: 0, size: self.size, read: self.read };
        let allowed = self.buckets.iter().map(|(rate, burst)| burst + rate * seconds);
        judge::work(&request)[stage] * allowed.fold(f64::INFINITY, f64::min)
    }
}

#[test]
fn limits_of_a_plan_lie_on_the_curve_of_the_limits_that_were_given() {
    let mail = [
        Kind { read: true, size: 65_536, buckets: &[(100.0, 60.0), (1000.0, 15.0)] },
        Kind { read: false, size: 4096, buckets: &[(60.0, 1.0)] },
    ];
    let log = [Kind { read: false, size: 131_072, buckets: &[(20.0, 30.0)] }];
    let folder = Folder::new();
    folder.write("ssd.json", PROFILE);
    folder.write("cluster.toml", CLUSTER);
    for (name, kinds) in [("mail.limits", &mail[..]), ("log.limits", &log[..])] {
        let rows: String = kinds.iter().map(Kind::rows).collect();
        folder.write(name, &format!("op,size_bytes,rate_per_s,burst_requests\n{rows}"));
    }
    let plan = folder.run(&["plan", "cluster.toml", "--json"]).expect_code(0).json();
    judge::check_promises(&plan);
    let admitted = judge::admitted(&plan);
    assert_eq!(admitted.len(), 2);
    for workload in admitted {
        let kinds = if workload.name == "mail" { &mail[..] } else { &log[..] };
        for stage in 0..judge::STAGES.len() {
            let (rate, burst) = workload.limits[stage];
            // Concave, with one bend, in whole requests, where the two limits of reads cross: the most is at an end or there.
            let bend = (60.0 - 15.0) / (1000.0 - 100.0);
            let beyond = |seconds: f64| {
                kinds.iter().map(|kind| kind.most_work(stage, seconds)).sum::<f64>() - rate * seconds
            };
            let needed = [0.0, bend, 1e3, 1e6].map(beyond).into_iter().fold(0.0, f64::max);
            assert!(
                burst >= needed * (1.0 - 1e-9),
                "{workload:?}: {burst} at stage {stage}, {needed} needed"
            );
            // Links need larger bursts where tokens would be lost; the storage needs no more than the curve.
            let is_curve = stage != 1 || burst <= needed * 1.001;
            assert!(is_curve, "{workload:?}: {burst} at stage {stage}, {needed} needed");
        }
    }
}
