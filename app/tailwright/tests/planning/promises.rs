//! What a policy promises, kept under attack: real traces are planned for a device with several channels, and traffic that
//! spends every limit of the policy is served by a simulator in plain code, beside best-effort requests as large as bounds count.

#[path = "../../../../simulate/scenario/tests/bounds/brute.rs"]
mod brute;
use crate::support::Folder;
use brute::{Asked, most_within_limits, request_latencies, within_limits};
use serde_json::Value;
use std::path::Path;

/// Bytes per second of the links.
const NETWORK: f64 = 125e6;
/// As many requests as a workload sends.
const REQUESTS: usize = 240;

/// A request to a device: its size and whether it reads.
type Access = (u64, bool);

/// The bandwidth table of a device profile, in plain code.
struct Device(Vec<(f64, f64, f64)>);

impl Device {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a profile");
        let profile: Value = serde_json::from_str(&text).expect("JSON");
        let rows = profile["bandwidthTable"].as_array().expect("a table").iter();
        let number = |row: &Value, field: &str| row[field].as_f64().expect("a number");
        let row =
            |row| (number(row, "requestSize"), number(row, "readBandwidth"), number(row, "writeBandwidth"));
        Self(rows.map(row).collect())
    }

    /// Device time in seconds: size ÷ bandwidth, which is linear between rows.
    fn seconds(&self, (size, is_read): Access) -> f64 {
        let size = size as f64;
        let rate = |row: &(f64, f64, f64)| if is_read { row.1 } else { row.2 };
        let above = self.0.partition_point(|row| row.0 < size);
        let low = &self.0[above.saturating_sub(1)];
        let high = &self.0[above.min(self.0.len() - 1)];
        if low.0 == high.0 {
            return size / rate(low);
        }
        let part = (size - low.0) / (high.0 - low.0);
        size / (rate(low) + part * (rate(high) - rate(low)))
    }

    /// The work at the three stages, nanoseconds of their capacity.
    fn work(&self, access: Access) -> [u64; 3] {
        let bytes = |factor: f64| (200.0 + factor * access.0 as f64) / NETWORK;
        let (of_request, of_answer) = if access.1 { (0.025, 1.1) } else { (1.1, 0.025) };
        [bytes(of_request), self.seconds(access), bytes(of_answer)].map(nanoseconds)
    }

    /// All accesses of the table up to a device time.
    fn up_to(&self, seconds: f64) -> Vec<Access> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are whole bytes")]
        let sizes = self.0.iter().map(|row| row.0 as u64);
        let all = sizes.flat_map(|size| [(size, true), (size, false)]);
        all.filter(|access| self.seconds(*access) <= seconds).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).ceil() as u64
}

/// Small requests with much answer, and the longest one among them: it is overtaken.
fn greedy(device: &Device, largest: f64, most: [u64; 3], (position, small): (usize, usize)) -> Vec<Asked> {
    let mut accesses = device.up_to(largest * (1.0 + 1e-9));
    let is_within = |access: &Access| device.work(*access).iter().zip(most).all(|(work, most)| *work <= most);
    accesses.retain(is_within);
    if accesses.is_empty() {
        return Vec::new();
    }
    accesses.sort_by(|a, b| device.seconds(*a).total_cmp(&device.seconds(*b)));
    let longest = *accesses.last().expect("some request is small enough");
    let density = |access: &Access| device.work(*access)[2] as f64 / device.seconds(*access);
    let mut dense = accesses.clone();
    dense.sort_by(|a, b| density(b).total_cmp(&density(a)));
    let dense = dense[small.min(dense.len() - 1)];
    let access = |number: usize| if number == position { longest } else { dense };
    (0..REQUESTS).map(|number| (30_000_000, device.work(access(number)))).collect()
}

/// The requests of a file `arrival_ns,size_bytes,op`.
fn recorded(device: &Device, path: &Path) -> Vec<Asked> {
    let text = std::fs::read_to_string(path).expect("a trace");
    let request = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let access = (fields[1].parse().expect("a size"), fields[2].trim() == "read");
        (fields[0].parse().expect("an instant"), device.work(access))
    };
    text.lines().skip(1).map(request).collect()
}

/// Attacks every server of a policy, and returns the closest approach to a bound with what it was.
fn closest(policy: &Value, device: &Device, case: &Path) -> (f64, String) {
    let mut closest = (0.0, String::new());
    let copy = device.work((1_667_072, true));
    for server in policy["servers"].as_array().expect("servers") {
        let placed: Vec<&Value> = policy["workloads"]
            .as_array()
            .expect("workloads")
            .iter()
            .filter(|workload| workload["server"] == server["name"])
            .collect();
        for (position, small) in [(usize::MAX, 0), (0, 0), (1, 40), (5, 4), (20, 0)] {
            let mut loads: Vec<(String, Vec<Asked>)> = Vec::new();
            for workload in &placed {
                let name = workload["name"].as_str().expect("a name").to_owned();
                let largest = workload["largest_request"].as_f64().expect("a largest request");
                let own = recorded(device, &case.join(format!("{name}.csv")));
                let most = most_within_limits(policy, &name);
                let mut asked =
                    within_limits(policy, &name, &greedy(device, largest, most, (position, small)));
                // A workload of few answers has no room for dense ones, and sends what it always does.
                if position == usize::MAX || asked.len() <= 10 {
                    asked = within_limits(policy, &name, &own);
                }
                assert!(asked.len() > 10, "{name}: nothing is within its limits");
                loads.push((name, asked));
            }
            let seen = request_latencies(policy, &loads, (32, copy), 0);
            for (workload, latencies) in placed.iter().zip(seen) {
                let longest = latencies.into_iter().max().unwrap_or(0);
                let ratio = longest as f64 / 1e9 / workload["bound_s"].as_f64().expect("a bound");
                if ratio > closest.0 {
                    closest = (ratio, format!("{} {position} {small}", workload["name"]));
                }
            }
        }
    }
    closest
}

/// Every limit of the policy is spent by everybody at once, on the device with four channels that it is planned for.
#[test]
fn traffic_within_the_limits_keeps_its_bounds() {
    let Some(case) = testkit::shared("cases/promise-channels") else { return };
    let Some(profile) = testkit::shared("traces/ssd-profile.json") else { return };
    let device = Device::read(&profile);
    let cluster = std::fs::read_to_string(case.join("cl.toml")).expect("a cluster file");
    // With frames the judge would simulate forty times as many packets.
    let place = |file: &Path| file.display().to_string();
    let cluster = cluster
        .replace("channels=4", "channels=4\npacket=\"64KiB\"")
        .replace("../../traces/ssd-profile.json", &place(&profile))
        .replace("trace=\"", &format!("trace=\"{}/", place(&case)));
    let folder = Folder::new();
    folder.write("cluster.toml", &cluster);
    for arguments in [&[][..], &["--model", "worst-case"]] {
        let outcome = folder.run(&[&["plan", "cluster.toml", "-o", "policy.json"], arguments].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let policy: Value = serde_json::from_str(&folder.read("policy.json")).expect("JSON");
        let (ratio, attack) = closest(&policy, &device, &case);
        println!("{arguments:?}: {ratio:.3} of the bound ({attack})");
        assert!(ratio <= 1.0, "{arguments:?}: {ratio} times the bound ({attack})");
        assert!(ratio > 0.2, "{arguments:?}: the attack is none: {ratio} ({attack})");
    }
}
