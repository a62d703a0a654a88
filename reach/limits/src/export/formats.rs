//! The formats of exports, a row each, and the keys of storage drivers.

use crate::limit::{Direction, LimitUnit};
use model::Stage;

/// Size of the token bucket of a format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BucketRule {
    /// As large as asked for.
    Free,
    /// Two slices of the kernel's throttling.
    Slices,
    /// A tenth of a second of the rate, or what a burst rate of at least the rate brings in a second.
    Qemu,
    /// Not documented: a second of the rate is assumed.
    Second,
}

/// A format that a policy can be written in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExportFormat {
    /// Name in options and documents.
    pub name: &'static str,
    /// Description for people.
    pub what: &'static str,
    pub(crate) stage: Stage,
    pub(crate) bucket: BucketRule,
    /// True if a ceiling can be for both directions together.
    pub(crate) has_total: bool,
    /// Example of a device.
    pub device: &'static str,
    /// Sentences about what it cannot express.
    pub(crate) lost: &'static [&'static str],
}

const NO_PRIORITY: &str = "It has no priorities: the device serves all in the order of arrival.";
const NO_BURST: &str = "It has no burst: 0.22 s of the rate may pass at once, and a larger burst waits.";
const NO_DEVICE_TIME: &str = "It counts requests and bytes, not device time.";

/// All formats.
pub const EXPORT_FORMATS: [ExportFormat; 5] = [
    ExportFormat {
        name: "cgroup",
        what: "io.max of control groups of version 2",
        stage: Stage::Storage,
        bucket: BucketRule::Slices,
        has_total: false,
        device: "8:0",
        lost: &[NO_DEVICE_TIME, NO_BURST, NO_PRIORITY],
    },
    ExportFormat {
        name: "systemd",
        what: "drop-ins of systemd units",
        stage: Stage::Storage,
        bucket: BucketRule::Slices,
        has_total: false,
        device: "/dev/sda",
        lost: &[NO_DEVICE_TIME, NO_BURST, NO_PRIORITY],
    },
    ExportFormat {
        name: "qemu",
        what: "throttling of QEMU drives",
        stage: Stage::Storage,
        bucket: BucketRule::Qemu,
        has_total: true,
        device: "/dev/vg0/disk",
        lost: &[
            NO_DEVICE_TIME,
            "A burst below the rate of a second becomes a tenth of a second, or a whole one.",
            NO_PRIORITY,
        ],
    },
    ExportFormat {
        name: "vac",
        what: "Kubernetes VolumeAttributesClasses",
        stage: Stage::Storage,
        bucket: BucketRule::Second,
        has_total: false,
        device: "",
        lost: &[
            NO_DEVICE_TIME,
            "It has no burst: what the driver lets pass at once is not documented, and a second of the rate is assumed.",
            NO_PRIORITY,
        ],
    },
    ExportFormat {
        name: "tc",
        what: "HTB classes of Linux traffic control",
        stage: Stage::NetworkOut,
        bucket: BucketRule::Free,
        has_total: true,
        device: "eth0",
        lost: &["It is one direction: what the server sends. Requests are limited where clients send them."],
    },
];

/// A key of a driver's class: direction, unit, name, and base units of one.
pub(crate) type DriverKey = (Direction, LimitUnit, &'static str, f64);

/// A storage driver with the keys of its attribute classes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriverRow {
    pub name: &'static str,
    pub(crate) keys: &'static [DriverKey],
}

/// Drivers whose classes can be written.
pub const DRIVERS: [DriverRow; 2] = [
    DriverRow {
        name: "rbd.csi.ceph.com",
        keys: &[
            (Direction::Read, LimitUnit::BytesPerS, "maxReadBps", 1.0),
            (Direction::Write, LimitUnit::BytesPerS, "maxWriteBps", 1.0),
            (Direction::Read, LimitUnit::RequestsPerS, "maxReadIops", 1.0),
            (Direction::Write, LimitUnit::RequestsPerS, "maxWriteIops", 1.0),
        ],
    },
    DriverRow {
        name: "ebs.csi.aws.com",
        keys: &[
            (Direction::Total, LimitUnit::BytesPerS, "throughput", 1_048_576.0),
            (Direction::Total, LimitUnit::RequestsPerS, "iops", 1.0),
        ],
    },
];

impl DriverRow {
    /// Returns true if its ceilings are for both directions together.
    pub(crate) fn has_total(&self) -> bool {
        self.keys.iter().all(|(direction, ..)| *direction == Direction::Total)
    }

    /// Returns the base units of one unit of a key.
    pub(crate) fn step(&self, unit: LimitUnit) -> f64 {
        self.keys.iter().find(|(_, known, ..)| *known == unit).map_or(1.0, |(.., step)| *step)
    }
}
