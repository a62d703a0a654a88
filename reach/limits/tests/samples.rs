//! Readers on files that the real tools wrote; tests/samples/README.md says how each was made.

use limits::{AuditSettings, Direction, LimitKind, Survey, audit, survey};
use std::path::Path;

fn read(sample: &str) -> Survey {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(sample);
    survey(&[&path], None).expect("the sample is there")
}

/// Rows as `tenant @ place: kind direction value [bucket] key :line`.
fn rows(survey: &Survey) -> Vec<String> {
    let row = |limit: &limits::FoundLimit| {
        let kind = match limit.kind {
            LimitKind::Ceiling => "max",
            LimitKind::Reservation => "min",
            LimitKind::Weight => "weight",
            LimitKind::LatencyTarget => "latency",
        };
        let direction = match limit.direction {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Total => "total",
            Direction::In => "in",
            Direction::Out => "out",
        };
        let bucket = limit.burst.map_or(String::new(), |burst| format!(" [{burst}]"));
        let within = limit.within.as_ref().map_or(String::new(), |parent| format!(" within {parent}"));
        format!(
            "{} @ {}: {kind} {direction} {}{bucket} {} :{}{within}",
            limit.tenant, limit.place, limit.value, limit.key, limit.origin.line
        )
    };
    survey.limits.iter().map(row).collect()
}

/// Names and places of tenants without a ceiling.
fn unlimited(survey: &Survey) -> Vec<(&str, &str)> {
    survey.unlimited.iter().map(|at| (at.tenant.as_str(), at.place.as_str())).collect()
}

#[track_caller]
fn check(sample: &str, expected: &[&str]) -> Survey {
    let found = read(sample);
    assert_eq!(rows(&found), expected, "{sample}");
    assert_eq!(
        (found.unreadable_count, found.unknown_keys()),
        (0, Vec::new()),
        "{sample}: {:?}",
        found.unreadable
    );
    found
}

#[test]
fn control_groups_of_version_1() {
    check(
        "cgroup-v1",
        &[
            "/ @ 254:0: max read 52428800 [11534336] blkio.throttle.read_bps_device :1",
            "db @ 254:0: max read 10485760 [2306867.2] blkio.throttle.read_bps_device :1 within /",
            "db @ 254:0: max write 500 [110] blkio.throttle.write_iops_device :1",
            "web @ 254:0: max write 20971520 [4613734.4] blkio.throttle.write_bps_device :1",
        ],
    );
}

#[test]
fn a_domain_that_virsh_printed() {
    check(
        "libvirt",
        &[
            "db1 @ all devices: weight total 500 blkiotune/weight :7",
            "db1 @ /dev/vdb: max read 10000000 [2200000] blkiotune/read_bytes_sec :10",
            "db1 @ processors: weight total 2048 cputune/shares :15",
            "db1 @ processors: max total 0.5 [0.1] cputune/quota :17",
            // A burst of 100 MiB/s for 5 s, and a tenth of a second at that rate.
            "db1 @ /dev/vdb: max total 52428800 [524288000] vda iotune/total_bytes_sec :32",
            "db1 @ /dev/vdb: max total 104857600 [10485760] vda iotune/total_bytes_sec :32",
            "db1 @ /dev/vdb: max read 1000 [100] vda iotune/read_iops_sec :33",
            "db1 @ testnet0: max out 1024000 [1048576] bandwidth/inbound/average :43",
            "db1 @ testnet0: max in 131072 [131072] bandwidth/outbound/average :44",
        ],
    );
}

#[test]
fn a_running_qemu_in_proc_and_in_ps() {
    for sample in ["qemu/db.cmdline", "qemu/ps.txt"] {
        let found = check(
            sample,
            &[
                "db @ x.qcow2: max total 20971520 [94371840] -drive bps-total :1",
                "db @ x.qcow2: max total 31457280 [3145728] -drive bps-total :1",
                "db @ x.qcow2: max read 100 [10] -drive iops-read :1",
                "db @ thr0: max total 10485760 [83886080] throttle-group tg0 bps-total :1",
                "db @ thr0: max total 20971520 [2097152] throttle-group tg0 bps-total :1",
                "db @ thr0: max total 500 [50] throttle-group tg0 iops-total :1",
            ],
        );
        assert_eq!(unlimited(&found), [("db", "y.qcow2")]);
    }
}

#[test]
fn classes_and_disciplines_that_tc_printed() {
    let found = check(
        "tc/lo-class.txt",
        &[
            "class 1:10 @ lo-class: max out 10000000 [1600] htb ceil :1 within class 1:1",
            "class 1:10 @ lo-class: min out 3750000 [65536] htb rate :1 within class 1:1",
            "class 1:1 @ lo-class: max out 12500000 [1600] htb ceil :2",
            "class 1:1 @ lo-class: min out 12500000 [1600] htb rate :2",
        ],
    );
    assert_eq!(found.capacities[0].value, 12_500_000.0);
    check("tc/lo-qdisc.json", &["tbf 8008: @ lo-qdisc: max out 12500000 [32762] tbf :1"]);
}

#[test]
fn classes_and_claims_that_kubectl_printed() {
    for (sample, lines) in
        [("kubernetes/all.yaml", [62, 20, 21, 46, 48]), ("kubernetes/all.json", [84, 27, 28, 64, 66])]
    {
        let [linstor, iops, throughput, read, write] = lines;
        let ceph = "prod/index @ rook-ceph.rbd.csi.ceph.com/replicapool";
        let expected = [
            format!(
                "StorageClass linstor @ linstor.csi.linbit.com/lvm-thin: max write 104857600 StorageClass sys/fs/blkio_throttle_write :{linstor}"
            ),
            format!("prod/mail @ ebs.csi.aws.com: max total 3000 VolumeAttributesClass iops :{iops}"),
            format!(
                "prod/mail @ ebs.csi.aws.com: max total 131072000 VolumeAttributesClass throughput :{throughput}"
            ),
            // 2000 and 20 for each of the 30 GiB beyond the first 20.
            format!("{ceph}: max read 2600 StorageClass baseReadIops :{read}"),
            format!("{ceph}: max write 52428800 StorageClass baseWriteBps :{write}"),
        ];
        let found = check(sample, &expected.each_ref().map(String::as_str));
        assert_eq!(unlimited(&found), [("prod/scratch", "driver.longhorn.io")]);
    }
}

#[test]
fn options_that_a_ceph_monitor_dumped() {
    for (sample, lines) in
        [("ceph/config-dump.txt", [4, 9, 5, 6, 3, 10, 12]), ("ceph/config-dump.json", [2; 7])]
    {
        let [limit, own, reservation, weight, recovery, bytes, requests] = lines;
        let key = "osd_mclock_scheduler";
        let of_osd = |osd: u32, value: u32, line: u32| {
            [
                format!("client @ osd.{osd}: min total {value} {key}_client_res :{line}"),
                format!("client @ osd.{osd}: weight total 2 {key}_client_wgt :{weight}"),
                format!("client @ osd.{osd}: max total 16000 {key}_client_lim :{limit}"),
                format!(
                    "background_recovery @ osd.{osd}: min total 16000 {key}_background_recovery_res :{recovery}"
                ),
            ]
        };
        let images = [
            format!("images of client @ rbd: max total 52428800 [52428800] rbd_qos_bps_limit :{bytes}"),
            format!("images of client @ rbd: max total 500 [1000] rbd_qos_iops_limit :{requests}"),
        ];
        let expected: Vec<String> =
            images.into_iter().chain(of_osd(0, 8000, reservation)).chain(of_osd(1, 20000, own)).collect();
        let found = check(sample, &expected.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            found.capacities.iter().map(|stated| stated.value).collect::<Vec<_>>(),
            [21500.0, 30000.0]
        );
        let over: Vec<_> = audit(&found, &AuditSettings::default()).places;
        let reserved: Vec<_> =
            over.iter().map(|sum| (sum.place.as_str(), sum.reservations, sum.capacity)).collect();
        assert_eq!(reserved[0], ("osd.0", 24000.0, Some(21500.0)));
    }
}
