//! Use of a server's device according to its hosts file, its profile and a policy, and deviations from
//! the assumptions of the policy's bounds.

use crate::deployment::ServerStorage;
use discipline::enforce::{DeviceUsage, OwnerBounds, ProfileBounds};
use model::PRIORITY_LEVELS;
use model::{Condition, Policy, Safety, ServerConditions, ServerEnforcement};
use units::Bytes;
use workload::device::{DeviceModel, StorageProfile};

/// Use of a server's device by its hosts file, the policy and its profile.
pub(super) fn device_use(
    storage: &ServerStorage,
    policy: Option<&ServerEnforcement>,
    profile: &StorageProfile,
) -> DeviceUsage {
    DeviceUsage::new(&owner_bounds(storage), policy, &profile_bounds(profile))
}

/// Use of a device as the hosts file states it.
fn owner_bounds(storage: &ServerStorage) -> OwnerBounds {
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
    OwnerBounds {
        outstanding: storage.outstanding,
        outstanding_bytes: bytes(storage.outstanding_bytes),
        by_operation: [storage.reads, storage.writes],
        bytes_by_operation: [storage.reads_bytes, storage.writes_bytes].map(bytes),
        beside: storage.beside,
        beside_bytes: bytes(storage.beside_bytes),
        reserve: storage.reserve,
        batch: storage.batch,
    }
}

/// Use of a device as its profile states it.
fn profile_bounds(profile: &StorageProfile) -> ProfileBounds {
    let limits = profile.queue_limits();
    ProfileBounds {
        requests: limits.map(|limits| {
            [limits.read_requests_max, limits.write_requests_max]
                .map(|items| u32::try_from(items).unwrap_or(u32::MAX).max(1))
        }),
        bytes: limits.map(|limits| [limits.read_bytes_max, limits.write_bytes_max]),
        is_disk: matches!(profile.device(), DeviceModel::Disk(_)),
    }
}

/// Conditions of a server's device under a policy, for comparison with those that its bounds assume.
pub(crate) fn storage_conditions(
    storage: &ServerStorage,
    policy: Option<&ServerEnforcement>,
    profile: Option<&StorageProfile>,
) -> ServerConditions {
    let bounds = profile.map(profile_bounds).unwrap_or_default();
    let channels = storage.channels.or(profile.and_then(StorageProfile::channels));
    DeviceUsage::new(&owner_bounds(storage), policy, &bounds)
        .conditions()
        .with(Condition::Channels, channels)
        .with(Condition::ProfileName, profile.map(StorageProfile::name))
        // HTB distinguishes this many levels, and the proxy the same number.
        .with(Condition::Levels, u32::try_from(PRIORITY_LEVELS).ok())
}

/// Differences between the use of a device and the use that the bounds of a policy assume.
pub(super) fn unsafe_conditions(
    policy: &Policy,
    server: &str,
    storage: &ServerStorage,
    profile: &StorageProfile,
) -> Vec<String> {
    if !policy.promises_on(server) {
        return Vec::new();
    }
    let run = storage_conditions(storage, policy.enforcement_of(server), Some(profile));
    let differences = policy.assumed_conditions(server).differences(&run).into_iter();
    let found = differences.filter(|difference| difference.safety == Safety::Unsafe);
    found.map(|difference| format!("{difference}; they may not hold")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{PerStage, PolicyPlacement, PolicyServer, PolicyWorkload};
    use units::ByteRate;
    use workload::device::{BandwidthRow, QueueLimits, SsdTable};

    #[test]
    fn every_field_of_the_hosts_file_and_of_the_profile_counts() {
        let rate = ByteRate::from_bytes_per_sec(1e6).expect("a rate");
        let row = BandwidthRow { request: Bytes(4096), read: rate, write: rate };
        let table = SsdTable::new(vec![row]).expect("one row ascends");
        let limits = QueueLimits {
            read_requests_max: 32,
            write_requests_max: 8,
            read_bytes_max: 4000,
            write_bytes_max: 2000,
        };
        let profile = StorageProfile::new("ssd", DeviceModel::Ssd(table)).with_queue_limits(limits);
        let expected = ProfileBounds { requests: Some([32, 8]), bytes: Some([4000, 2000]), is_disk: false };
        assert_eq!(profile_bounds(&profile), expected);
        let text = r#"
            profile = "-"
            front = [{ protocol = "nbd", listen = "::1", forward = "::1" }]
            outstanding = 9
            outstanding_bytes = "8KiB"
            reads = 7
            writes = 6
            reads_bytes = "5KiB"
            writes_bytes = "4KiB"
            beside = 3
            beside_bytes = "2KiB"
            reserve = 2
            batch = 5"#;
        let storage: ServerStorage = toml::from_str(text).expect("fields of a hosts file");
        let owner = OwnerBounds {
            outstanding: Some(9),
            outstanding_bytes: Some(8192),
            by_operation: [Some(7), Some(6)],
            bytes_by_operation: [Some(5120), Some(4096)],
            beside: Some(3),
            beside_bytes: Some(2048),
            reserve: Some(2),
            batch: Some(5),
        };
        assert_eq!(owner_bounds(&storage), owner);
    }

    /// Returns a policy whose bounds assume 4 channels, 6 requests at the device and 4 of best effort,
    /// and one without assumptions.
    fn policies() -> [Policy; 2] {
        let counted = ServerEnforcement {
            channels: 4,
            outstanding: 6,
            beside: 5,
            reserve: 2,
            best_effort_request_s: 0.005,
            packet_bytes: 65536.0,
            link_burst_s: None,
            proxy_s: 0.0,
        };
        [Some(counted), None].map(|enforcement| {
            let server = PolicyServer {
                name: "ssd".into(),
                class: "ssd".into(),
                network_bytes_per_s: 1e8,
                storage_profile: "flash".into(),
                storage_profile_hash: None,
                enforcement,
            };
            let placement = PolicyPlacement {
                server: "ssd".into(),
                priority: PerStage::default(),
                bound_s: Some(0.1),
                limits: Vec::new(),
            };
            let workload = PolicyWorkload::admitted("mail", "99% < 1s".parse().expect("an SLO"), placement);
            Policy::new("tailwright", vec![server], vec![workload]).expect("it is sound")
        })
    }

    #[test]
    fn what_bounds_do_not_count_is_named_with_both_values() {
        let [counting, silent] = policies();
        let profile = |channels: &str| {
            let row = r#"{ "requestSize": 4096, "readBandwidth": 4096000, "writeBandwidth": 4096000 }"#;
            let text = format!(r#"{{ "bandwidthTable": [{row}] }}"#);
            let profile = StorageProfile::from_json(&text).expect("a profile").with_name("flash");
            if channels.is_empty() {
                profile
            } else {
                profile.with_channels(channels.parse().expect("a number"))
            }
        };
        let warnings = |policy: &Policy, fields: &str, channels: &str| {
            let front = "{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }";
            let text = format!("profile = \"-\"\nfront = [{front}]\n{fields}");
            let storage: ServerStorage = toml::from_str(&text).expect("fields of a hosts file");
            unsafe_conditions(policy, "ssd", &storage, &profile(channels))
        };
        for (fields, channels) in [
            ("", ""),
            ("", "4"),
            ("", "1"),
            ("channels = 2", "16"),
            ("outstanding = 6\nbeside = 3\nreserve = 2\nreads = 4\nbatch = 1", ""),
            // The number of best-effort requests is the assumed one.
            ("outstanding = 5\nreserve = 1\nbeside = 3", ""),
            ("beside = 6", ""),
            ("reserve = 3", ""),
        ] {
            assert_eq!(warnings(&counting, fields, channels), [""; 0], "{fields} {channels}");
        }
        for (fields, channels, said) in [
            ("", "16", "channels: 16, the policy's bounds count on 4 or less: each request takes longer"),
            ("channels = 5", "", "channels: 5, the policy's bounds count on 4 or less"),
            (
                "outstanding = 7\nreserve = 3\nbeside = 3",
                "",
                "outstanding: 7, the policy's bounds count on 6 or less: a request may find more",
            ),
            (
                "outstanding = 3\nbeside = 3",
                "",
                "the fewest of outstanding, reads and writes: 3, the policy's bounds count on 4 or more: a channel",
            ),
            ("beside = 2", "", "beside: 2, the policy's bounds count on 3 or more"),
            ("reads = 1", "", "the fewest of outstanding, reads and writes: 1"),
            ("writes = 3", "", "the fewest of outstanding, reads and writes: 3"),
            (
                "reserve = 1",
                "",
                "outstanding − reserve: 5, the policy's bounds count on 4 or less: more best-effort",
            ),
            // The reserve of the policy applies only with its own number of places.
            ("outstanding = 5\nbeside = 3", "", "outstanding − reserve: 5"),
            (
                "outstanding_bytes = \"1MiB\"",
                "",
                "bytes at the device: 1048576 B, the policy's bounds count on no bound: a channel",
            ),
            ("beside_bytes = \"1MiB\"", "", "bytes at the device: 1048576 B"),
            ("batch = 8", "", "batch: 8, the policy's bounds count on 1 or less"),
        ] {
            let found = warnings(&counting, fields, channels);
            assert!(found.len() == 1 && found[0].starts_with(said), "{fields}: {found:?}");
            // A policy without stated assumptions is not violated.
            assert_eq!(warnings(&silent, fields, channels), [""; 0], "{fields}");
        }
        let other = StorageProfile::clone(&profile("")).with_name("disk");
        let front = "{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }";
        let storage: ServerStorage =
            toml::from_str(&format!("profile = \"-\"\nfront = [{front}]")).expect("fields of a hosts file");
        let found = unsafe_conditions(&counting, "ssd", &storage, &other);
        assert!(found.len() == 1 && found[0].starts_with("device profile: 'disk'"), "{found:?}");
        // A profile's name counts only for a server whose bounds depend on its use.
        assert_eq!(unsafe_conditions(&silent, "ssd", &storage, &other), [""; 0]);
    }
}
