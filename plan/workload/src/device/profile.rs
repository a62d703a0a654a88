//! Profile of a storage device.

use super::disk::{Disk, DiskWork};
use super::network::NetworkModel;
use super::ssd::{SsdTable, SsdWork};
use model::{Op, Request, Stage};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Percentile, Seconds, Work};

/// The smallest request of nearly every system.
const SECTOR: Bytes = Bytes(512);

/// A storage device as it was measured: the model that converts requests to device time, and the latency that the
/// device adds.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageProfile {
    pub(super) name: String,
    pub(super) source: Option<String>,
    pub(super) device: DeviceModel,
    pub(super) base_latency: Option<BaseLatency>,
    pub(super) queue_limits: Option<QueueLimits>,
    pub(super) channels: Option<u32>,
    pub(super) operation: Option<OperationCost>,
}

/// Model that converts requests to device time, by kind of device.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceModel {
    /// An SSD, whose work depends on operation and size.
    Ssd(SsdTable),
    /// A disk, whose work also depends on earlier requests.
    Disk(Disk),
}

/// The tail latency of an idle device with one outstanding request, to be added to queueing (thesis §2.3.2).
#[derive(Debug, Clone, PartialEq)]
pub struct BaseLatency {
    /// The percentile of the latency distribution that the values state.
    pub percentile: Percentile,
    /// The latency of reads of any size, which is finite and not negative.
    pub read: Seconds,
    /// The latency of writes of any size, which is finite and not negative.
    pub write: Seconds,
    /// The latency of smaller requests, by ascending size. Neither latency decreases from row to row, and none exceeds
    /// that of any size.
    pub sizes: Vec<BaseLatencyRow>,
}

/// The tail latency of requests up to a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaseLatencyRow {
    /// The largest of these requests; the smallest is above that of the row before.
    pub request: Bytes,
    pub read: Seconds,
    pub write: Seconds,
}

impl BaseLatency {
    /// The latency of requests of up to `size` bytes.
    fn of(&self, op: Op, size: Bytes) -> Seconds {
        let row = self.sizes.iter().find(|row| size <= row.request);
        let (read, write) = row.map_or((self.read, self.write), |row| (row.read, row.write));
        match op {
            Op::Read => read,
            Op::Write => write,
        }
    }

    /// Latencies as they were measured by ascending size. One that is below a smaller size's, which happens by chance, is
    /// raised to it, and any other size has the longest.
    pub fn by_size(percentile: Percentile, measured: impl IntoIterator<Item = BaseLatencyRow>) -> Self {
        let mut latency = Self { percentile, read: Seconds(0.0), write: Seconds(0.0), sizes: Vec::new() };
        for row in measured {
            latency.read.0 = latency.read.0.max(row.read.0);
            latency.write.0 = latency.write.0.max(row.write.0);
            latency.sizes.push(BaseLatencyRow { read: latency.read, write: latency.write, ..row });
        }
        latency
    }
}

/// Device time that the size of a request does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationCost {
    /// The least that a request takes, such as the lookup of a key that is not there.
    pub request: Nanos,
    /// The time of every key of a request beyond the first.
    pub key: Nanos,
}

/// Limits of the requests outstanding at the device: enough to keep it busy, and few enough to bound the wait
/// of a high-priority request (thesis §2.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLimits {
    /// The largest number of outstanding reads.
    pub read_requests_max: u64,
    /// The largest number of outstanding writes.
    pub write_requests_max: u64,
    /// The largest sum of the sizes of outstanding reads.
    pub read_bytes_max: u64,
    /// The largest sum of the sizes of outstanding writes.
    pub write_bytes_max: u64,
}

impl StorageProfile {
    /// Creates a profile without base latency and queue limits.
    pub fn new(name: impl Into<String>, device: DeviceModel) -> Self {
        Self {
            name: name.into(),
            source: None,
            device,
            base_latency: None,
            queue_limits: None,
            channels: None,
            operation: None,
        }
    }

    /// Gives the profile another name, for example that of its file.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// States where the figures come from, in a sentence for people.
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

    /// Adds the limits on outstanding requests.
    #[must_use]
    pub fn with_queue_limits(mut self, limits: QueueLimits) -> Self {
        self.queue_limits = Some(limits);
        self
    }

    /// Says how many requests the device serves at a time, at least 1.
    #[must_use]
    pub fn with_channels(mut self, channels: u32) -> Self {
        self.channels = Some(channels.max(1));
        self
    }

    /// Adds the device time that sizes do not show. No request then costs less than that.
    #[must_use]
    pub fn with_operation(mut self, operation: OperationCost) -> Self {
        self.operation = Some(operation);
        self
    }

    /// The device time that sizes do not show, if it was measured.
    pub fn operation(&self) -> Option<OperationCost> {
        self.operation
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A sentence that says where the figures come from, if that is known.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// The model that converts requests to device time.
    pub fn device(&self) -> &DeviceModel {
        &self.device
    }

    /// The limits on outstanding requests, if the profile has any.
    pub fn queue_limits(&self) -> Option<QueueLimits> {
        self.queue_limits
    }

    /// Returns the number of requests that the device serves at a time under the model, each with an equal
    /// part of its capacity, if known; at least 1.
    pub fn channels(&self) -> Option<u32> {
        self.channels
    }

    /// The tail latency of the idle device for `op` of up to `size` bytes; zero if the profile has none.
    pub fn base_latency(&self, op: Op, size: Bytes) -> Seconds {
        self.base_latency.as_ref().map_or(Seconds(0.0), |latency| latency.of(op, size))
    }

    /// The tail latency of the idle device for any request; zero if the profile has none.
    pub fn base_latency_of_any(&self) -> Seconds {
        let [read, write] = [Op::Read, Op::Write].map(|op| self.base_latency(op, Bytes(u64::MAX)));
        Seconds(read.0.max(write.0))
    }

    /// The tail latency of the idle device for every request of at most this device time (thesis §2.3.2): what enforcers
    /// allow a workload whose largest request takes as long.
    ///
    /// Device time is monotone between the sizes of the table and the rows of the latencies, so that no size in between
    /// takes less than both.
    pub fn base_latency_within(&self, longest: Seconds) -> Seconds {
        let [read, write] = [Op::Read, Op::Write].map(|op| self.base_latency_of_op_within(op, longest));
        Seconds(read.0.max(write.0))
    }

    /// As [`Self::base_latency_within`], for `op` alone; zero if each takes longer.
    pub fn base_latency_of_op_within(&self, op: Op, longest: Seconds) -> Seconds {
        let Some(latency) = &self.base_latency else { return Seconds(0.0) };
        let mut slowest = Seconds(0.0);
        let mut above = 0_u64;
        for row in latency.sizes.iter().map(|row| row.request.0).chain([u64::MAX]) {
            let smallest = above.saturating_add(1);
            let mut sizes = vec![smallest, row];
            if let DeviceModel::Ssd(table) = &self.device {
                let within = table.rows().iter().map(|row| row.request.0);
                sizes.extend(within.filter(|size| (smallest..row).contains(size)));
            }
            if sizes.into_iter().any(|size| self.least_time(op, Bytes(size)) <= longest) {
                slowest.0 = slowest.0.max(self.base_latency(op, Bytes(row)).0);
            }
            above = row;
        }
        slowest
    }

    /// The least device time of a request; on a disk that of one that continues another.
    fn least_time(&self, op: Op, size: Bytes) -> Seconds {
        match &self.device {
            DeviceModel::Ssd(_) => {
                let request = Request { arrival: Nanos(0), size, op, offset: None, response: None };
                Seconds(self.work_model().work(&request).base_units() / 1e9)
            }
            DeviceModel::Disk(disk) => Seconds(disk.transfer(op, size.0)),
        }
    }

    /// The latencies of the idle device for requests up to a size, ascending; none where they are not known by size.
    pub fn base_latency_rows(&self) -> &[BaseLatencyRow] {
        self.base_latency.as_ref().map_or(&[], |latency| &latency.sizes)
    }

    /// The percentile at which [`StorageProfile::base_latency`] was measured, if it was.
    pub fn base_latency_percentile(&self) -> Option<Percentile> {
        self.base_latency.as_ref().map(|latency| latency.percentile)
    }

    /// The most work at network-out per work at the storage that a request of a sector or more brings: bytes per nanosecond of
    /// device time.
    ///
    /// Bandwidth is linear between the rows of a table, so that bytes per device time are convex or monotone there and no
    /// size is denser than both its neighbouring rows; a disk does nothing faster than to transfer.
    pub fn densest_answer(&self, network: &NetworkModel) -> f64 {
        let answer = |op, size| {
            let request = Request { arrival: Nanos(0), size, op, offset: None, response: None };
            network.work(Stage::NetworkOut, &request).0 as f64 / units::MILLI as f64
        };
        let mut densest = 0.0_f64;
        for op in [Op::Read, Op::Write] {
            match &self.device {
                DeviceModel::Ssd(table) => {
                    let rows = table.rows().iter().map(|row| row.request).filter(|size| *size > SECTOR);
                    for size in std::iter::once(SECTOR).chain(rows) {
                        let nanoseconds = table.work(op, size).0 as f64 / units::MILLI as f64;
                        densest = densest.max(answer(op, size) / nanoseconds);
                    }
                }
                DeviceModel::Disk(disk) => {
                    let nanoseconds = disk.transfer(op, SECTOR.0) * 1e9;
                    densest = densest.max(answer(op, SECTOR) / nanoseconds);
                }
            }
        }
        densest
    }

    /// A converter of requests to device time for a new request stream.
    pub fn work_model(&self) -> StorageWork {
        let device = match &self.device {
            DeviceModel::Ssd(table) => DeviceWork::Ssd(SsdWork::new(table)),
            DeviceModel::Disk(disk) => DeviceWork::Disk(DiskWork::new(disk.clone())),
        };
        let least = self.operation.map_or(Work::ZERO, |operation| Work(operation.request.0 * units::MILLI));
        StorageWork { device, least }
    }
}

/// Converts the requests of one stream, in order, to device time. Each stream needs a converter of its own, because a
/// disk's work depends on earlier requests.
#[derive(Debug, Clone)]
pub struct StorageWork {
    device: DeviceWork,
    /// The least work of a request with a size.
    least: Work,
}

#[derive(Debug, Clone)]
enum DeviceWork {
    Ssd(SsdWork),
    Disk(DiskWork),
}

impl StorageWork {
    /// Device time of the next request, in picoseconds (thousandths of a nanosecond), rounded up;
    /// positive for a positive size.
    pub fn work(&mut self, request: &Request) -> Work {
        let work = match &mut self.device {
            DeviceWork::Ssd(ssd) => ssd.work(request),
            DeviceWork::Disk(disk) => disk.work(request),
        };
        if request.size.0 == 0 { work } else { work.max(self.least) }
    }
}
