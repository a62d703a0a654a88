//! Exports: readers take back what was written, bounds are recomputed, and real consumers take the files.

use limits::{
    DRIVERS, Direction, EXPORT_FORMATS, Export, ExportSettings, FoundLimit, LimitKind, LimitUnit, SourceText,
    export, survey_of,
};
use model::{PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, Stage, StageLimit};
use std::process::{Command, Stdio};
use units::{ByteRate, Bytes};
use workload::device::{BandwidthRow, DeviceModel, SsdTable, StorageProfile};

const LINK: f64 = 1.25e8;

/// A device with 0.1 ms for each request of 4 KiB.
fn profile() -> StorageProfile {
    let row = |bytes: u64, rate: f64| {
        let rate = ByteRate::from_bytes_per_sec(rate).expect("positive");
        BandwidthRow { request: Bytes(bytes), read: rate, write: rate }
    };
    let table = SsdTable::new(vec![row(4096, 4.096e7), row(1 << 20, 1e9)]).expect("it ascends");
    StorageProfile::new("d", DeviceModel::Ssd(table))
}

/// Two workloads with a quarter of the device and of the link each, and bursts of 10 and 30 ms.
fn policy() -> Policy {
    let workload = |name: &str, priority, burst, bound| {
        let limits =
            Stage::ALL.map(|stage| StageLimit::new(stage, RateLimit { rate: 0.25, burst }, LINK)).to_vec();
        let priority = PerStage::from_fn(|_| priority);
        let placement = PolicyPlacement { server: "ssd-1".into(), priority, bound_s: Some(bound), limits };
        PolicyWorkload::admitted(name, "99.9% < 400ms".parse().expect("an SLO"), placement)
    };
    let server = PolicyServer {
        name: "ssd-1".into(),
        class: "ssd".into(),
        network_bytes_per_s: LINK,
        storage_profile: "d".into(),
        storage_profile_hash: None,
        enforcement: None,
    };
    let workloads = vec![workload("mail", 0, 0.01, 0.03), workload("web shop", 1, 0.03, 0.16)];
    Policy::new("tailwright", vec![server], workloads).expect("it is sound")
}

fn settings(name: &str) -> ExportSettings {
    let format = *EXPORT_FORMATS.iter().find(|format| format.name == name).expect("a format");
    ExportSettings {
        format,
        device: format.device.to_owned(),
        server: None,
        profile: profile(),
        request: Bytes(4096),
        read_share: 0.5,
        driver: DRIVERS[0],
        classes: None,
    }
}

fn exported(settings: &ExportSettings) -> Export {
    export(&policy(), settings).expect("it is one server")
}

/// A limit without the words and places of its format.
fn essence(limit: &FoundLimit) -> (Direction, LimitKind, LimitUnit, f64, Option<f64>) {
    (limit.direction, limit.kind, limit.unit, limit.value, limit.burst)
}

#[test]
fn readers_take_back_what_was_written() {
    for format in EXPORT_FORMATS {
        let done = exported(&settings(format.name));
        let sources = done.files.iter().map(|file| SourceText::new(file.name.as_str(), file.text.as_str()));
        let found = survey_of(sources.collect());
        assert_eq!(
            (found.unreadable_count, found.foreign, found.unknown_keys()),
            (0, 0, vec![]),
            "{}",
            format.name
        );
        let mut read: Vec<_> = found.limits.iter().map(essence).collect();
        let mut written: Vec<_> = done.limits.iter().map(essence).collect();
        if format.name == "vac" {
            // The document of a class does not have a bucket.
            written.iter_mut().for_each(|row| row.4 = None);
        }
        read.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        written.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        assert_eq!(read, written, "{}: {:?}", format.name, done.files);
    }
}

#[test]
fn ceilings_hold_for_small_and_large_requests() {
    let done = exported(&settings("cgroup"));
    assert_eq!(done.files[0].name, "mail/io.max");
    // A quarter of 10,000 requests, half of it for each direction.
    assert_eq!(done.files[0].text, "8:0 rbps=5120000 riops=1250 wbps=5120000 wiops=1250\n");
    assert_eq!(done.files[1].name, "web_shop/io.max");
}

#[test]
fn bounds_are_those_of_the_buckets_in_the_order_of_arrival() {
    let done = exported(&settings("cgroup"));
    // Two ceilings of the other at an eighth of the device, each with 0.22 s of it and a request of 0.1 ms.
    let other = 2.0 * (0.22 * 0.125 + 1e-4);
    for (bound, (own, planned)) in done.bounds.iter().zip([(0.01, 0.01), (0.03, (0.01 + 0.03) / 0.75)]) {
        let wait = own + other;
        assert!((bound.stage_wait_s.expect("a bound") - wait).abs() < 1e-8, "{bound:?}");
        assert!((bound.planned_wait_s.expect("a bound") - planned).abs() < 1e-8, "{bound:?}");
        let expected = bound.planned_bound_s.expect("promised") + wait - planned;
        assert!((bound.bound_s.expect("a bound") - expected).abs() < 1e-8, "{bound:?}");
        assert_eq!((bound.limit_wait_s, bound.is_kept()), (Some(0.0), true));
    }
    assert!(done.lost.iter().any(|sentence| sentence.contains("no priorities")));
}

#[test]
fn a_bucket_of_qemu_is_a_tenth_of_a_second_or_a_second() {
    let done = exported(&settings("qemu"));
    let text = &done.files[1].text;
    // A burst of 30 ms is more than 25 ms, a tenth of a second of the rate, so it becomes a second.
    assert!(text.contains("throttling.iops-total=2500,throttling.iops-total-max=2500"), "{text}");
    assert!(!done.files[0].text.contains("-max"), "{}", done.files[0].text);
}

#[test]
fn classes_of_htb_keep_priorities_and_bursts() {
    let done = exported(&settings("tc"));
    for bound in &done.bounds {
        // Only a packet that was begun comes on top.
        let beyond = bound.bound_s.expect("a bound") - bound.planned_bound_s.expect("promised");
        assert!((0.0..1e-6).contains(&beyond), "{bound:?}");
    }
}

#[test]
fn workloads_share_classes() {
    let one = ExportSettings { classes: Some(1), driver: DRIVERS[1], ..settings("vac") };
    let done = exported(&one);
    let text = &done.files[0].text;
    assert_eq!(text.matches("kind: VolumeAttributesClass").count(), 1, "{text}");
    // 2500 requests of 4 KiB are 9.8 MiB/s, and the driver takes whole ones.
    assert!(text.contains("throughput: \"10\"") && text.contains("iops: \"2500\""), "{text}");
}

#[test]
fn qemu_takes_the_drive() {
    let Some(qemu) = testkit::program("qemu-system-x86_64") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, vec![0; 1 << 20]).expect("the folder is ours");
    let done = exported(&ExportSettings { device: image.display().to_string(), ..settings("qemu") });
    let line = &done.files[1].text;
    let drive = line.split('\'').nth(1).expect("the drive is quoted");
    let mut child = Command::new(qemu)
        .args(["-display", "none", "-machine", "none", "-S", "-nodefaults", "-qmp", "stdio", "-drive", drive])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let talk = "{\"execute\":\"qmp_capabilities\"}{\"execute\":\"query-block\"}{\"execute\":\"quit\"}";
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), talk.as_bytes()).expect("it listens");
    let answer = String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("UTF-8");
    for part in ["\"iops\": 2500", "\"iops_max\": 2500", "\"bps\": 10240000", "\"bps_max\": 10240000"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
}

#[test]
fn systemd_knows_every_key() {
    let Some(analyze) = testkit::program("systemd-analyze") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let done = exported(&settings("systemd"));
    let file = &done.files[0];
    let path = folder.path().join(&file.name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is ours");
    let unit = folder.path().join("mail.service");
    std::fs::write(&unit, "[Service]\nExecStart=/bin/true\n").expect("the folder is ours");
    for (text, complaints) in [(file.text.clone(), 0), (file.text.replace("IORead", "IORaed"), 2)] {
        std::fs::write(&path, text).expect("the folder is ours");
        let output =
            Command::new(&analyze).args(["verify", "--man=no"]).arg(&unit).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches("Unknown key").count(), complaints, "{said}");
    }
}

#[test]
fn the_kernel_has_the_classes_that_tc_was_told() {
    let Some(tc) = testkit::program("tc") else { return };
    let Some(unshare) = testkit::program("unshare") else { return };
    let done = exported(&ExportSettings { device: "lo".into(), ..settings("tc") });
    // Not every kernel has the classifier that finds marks; the classes are judged here.
    let classes = done.files[0].text.lines().filter(|line| !line.starts_with("tc filter"));
    let script = classes.chain(["tc class show dev lo"]).collect::<Vec<_>>().join("\n");
    let output = Command::new(unshare).args(["-rn", "sh", "-euc", &script]).output().expect("it runs");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    if !output.status.success() {
        testkit::skip(&format!("{}: {}", tc.display(), String::from_utf8_lossy(&output.stderr)));
        return;
    }
    let found = survey_of(vec![SourceText::new("lo.txt", shown.as_str())]);
    let rates: Vec<_> = found.limits.iter().map(|limit| (limit.kind, limit.value, limit.priority)).collect();
    for (priority, kind) in [(0, LimitKind::Ceiling), (1, LimitKind::Reservation)] {
        assert!(rates.contains(&(kind, 0.25 * LINK, Some(priority))), "{rates:?}\n{shown}");
    }
}
