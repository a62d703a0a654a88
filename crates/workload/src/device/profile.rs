use super::disk::{Disk, DiskWork};
use super::ssd::{SsdTable, SsdWork};
use model::{Op, Request};
use serde::{Deserialize, Serialize};
use units::{Percentile, Seconds, Work};

/// A storage device as measured: what turns requests into device time, and what the device adds on top.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageProfile {
    pub(super) name: String,
    pub(super) source: Option<String>,
    pub(super) device: Device,
    pub(super) base_latency: Option<BaseLatency>,
    pub(super) queue_limits: Option<QueueLimits>,
}

/// Kinds of device, each with its own model of work.
#[derive(Debug, Clone, PartialEq)]
pub enum Device {
    /// Work depends on operation and size.
    Ssd(SsdTable),
    /// Work depends on the requests before, too.
    Disk(Disk),
}

/// Tail latency of an idle device at one outstanding request, to be added to queueing (thesis §2.3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaseLatency {
    /// Which part of the distribution lies below.
    pub percentile: Percentile,
    /// Of reads; finite, zero or more.
    pub read: Seconds,
    /// Of writes; finite, zero or more.
    pub write: Seconds,
}

/// How much may be outstanding at the device at once so that it is busy and a request of high priority
/// still waits a bounded time (thesis §2.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLimits {
    /// Outstanding reads.
    pub read_requests_max: u64,
    /// Outstanding writes.
    pub write_requests_max: u64,
    /// Sum of the sizes of outstanding reads.
    pub read_bytes_max: u64,
    /// Sum of the sizes of outstanding writes.
    pub write_bytes_max: u64,
}

impl StorageProfile {
    /// A profile without base latency and queue limits.
    pub fn new(name: impl Into<String>, device: Device) -> Self {
        Self { name: name.into(), source: None, device, base_latency: None, queue_limits: None }
    }

    /// The same profile under another name, e.g. that of its file.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Says where the figures come from, in a sentence for people.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the tail latency of the idle device.
    #[must_use]
    pub fn with_base_latency(mut self, latency: BaseLatency) -> Self {
        self.base_latency = Some(latency);
        self
    }

    /// Adds how much may be outstanding.
    #[must_use]
    pub fn with_queue_limits(mut self, limits: QueueLimits) -> Self {
        self.queue_limits = Some(limits);
        self
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the figures come from, if that is known.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The model behind the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How much may be outstanding, where the profile says so.
    pub fn queue_limits(&self) -> Option<QueueLimits> {
        self.queue_limits
    }

    /// Tail latency of the idle device for `op`; zero when the profile has none.
    pub fn base_latency(&self, op: Op) -> Seconds {
        self.base_latency.map_or(Seconds(0.0), |latency| match op {
            Op::Read => latency.read,
            Op::Write => latency.write,
        })
    }

    /// The percentile at which [`StorageProfile::base_latency`] was measured, if it was.
    pub fn base_latency_percentile(&self) -> Option<Percentile> {
        self.base_latency.map(|latency| latency.percentile)
    }

    /// A fresh converter of requests to work, at the beginning of a request stream.
    pub fn work_model(&self) -> StorageWork {
        StorageWork(match &self.device {
            Device::Ssd(table) => Stepper::Ssd(SsdWork::new(table)),
            Device::Disk(disk) => Stepper::Disk(DiskWork::new(disk.clone())),
        })
    }
}

/// Turns the requests of one stream, in order, into device time. One per stream: a disk's work depends
/// on the requests before.
#[derive(Debug, Clone)]
pub struct StorageWork(Stepper);

#[derive(Debug, Clone)]
enum Stepper {
    Ssd(SsdWork),
    Disk(DiskWork),
}

impl StorageWork {
    /// Device time of the next request, in picoseconds (thousandths of a nanosecond), rounded up;
    /// positive for a positive size.
    pub fn work(&mut self, request: &Request) -> Work {
        match &mut self.0 {
            Stepper::Ssd(ssd) => ssd.work(request),
            Stepper::Disk(disk) => disk.work(request),
        }
    }
}
