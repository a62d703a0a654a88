//! Results of a measurement, and the conclusions from them: the figures of each size, warnings, and the
//! device profile.

use crate::plan::{MeasurementCell, MeasurementPlan};
use crate::stats::{self, Median};
use model::{Op, OperationError};
use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteRate, Bytes, Percentile, Seconds, in_base_units};
use workload::device::{
    BandwidthRow, BaseLatency, BaseLatencyRow, DeviceModel, QueueLimits, SsdTable, StorageProfile,
};

/// The relative noise above which a row deserves a warning.
const NOISE_MAX: f64 = 0.10;

/// Observations of one repeat of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// Throughput in bytes per second.
    pub bytes_per_s: f64,
    /// Completed requests.
    pub requests: u64,
    /// The response time of every request in nanoseconds, in no particular order.
    pub latencies_ns: Vec<u64>,
}

/// Measurements of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellMeasurement {
    /// The combination that was measured.
    #[serde(flatten)]
    pub cell: MeasurementCell,
    /// Completed requests, all repeats together.
    pub requests: u64,
    /// The throughput of each repeat, in bytes per second.
    #[serde(rename = "repeats_bytes_per_s")]
    pub bytes_per_s: Vec<f64>,
    /// Response times at one outstanding request in nanoseconds; empty at higher parallelism.
    #[serde(skip)]
    pub latencies_ns: Vec<u64>,
}

/// Everything that was measured, complete or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    cells: Vec<CellMeasurement>,
    repeats: usize,
    percentile: Percentile,
    saturation: f64,
}

/// Figures of the target for one operation and one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct OpMeasurement {
    /// Median throughput with `parallelism` outstanding requests.
    #[serde(rename = "bytes_per_s", serialize_with = "in_base_units")]
    #[schemars(with = "f64")]
    pub bandwidth: ByteRate,
    /// Half the width of the median's confidence interval, as a fraction of the median.
    pub noise: f64,
    /// The same throughput in requests.
    pub requests_per_s: f64,
    /// Smallest parallelism that reaches the share of the best throughput that counts as saturating.
    pub parallelism: usize,
    /// True if only the largest parallelism came close to the best throughput: a larger one might reach
    /// more.
    #[serde(skip)]
    pub is_growing: bool,
    /// Tail latency at one outstanding request, if that was measured.
    #[serde(rename = "tail_s", serialize_with = "in_base_units")]
    #[schemars(with = "Option<f64>")]
    pub tail: Option<Seconds>,
    /// Number of requests that the tail latency is estimated from.
    pub tail_samples: u64,
}

/// Figures of the target for one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SizeMeasurement {
    /// Size of requests.
    #[serde(rename = "request_bytes", serialize_with = "in_base_units")]
    #[schemars(with = "u64")]
    pub request: Bytes,
    /// Figures of reads, if they were measured.
    pub read: Option<OpMeasurement>,
    /// Figures of writes, if they were measured.
    pub write: Option<OpMeasurement>,
}

impl SizeMeasurement {
    /// The figures of `op`, where it was measured.
    pub fn for_op(&self, op: Op) -> Option<OpMeasurement> {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
    }
}

/// Source of a profile's figures for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritesFrom {
    /// The figures of measured writes are used.
    Measured,
    /// The figures for reads are used, which is right only for workloads that do not write.
    Reads,
}

impl Measurement {
    pub(crate) fn new(plan: &MeasurementPlan) -> Self {
        let mut cells = Vec::with_capacity(plan.cells().len());
        for &cell in plan.cells() {
            let bytes_per_s = Vec::new();
            let latencies_ns = Vec::new();
            cells.push(CellMeasurement { cell, bytes_per_s, requests: 0, latencies_ns });
        }
        Self { cells, repeats: plan.repeats(), percentile: plan.percentile(), saturation: plan.saturation() }
    }

    pub(crate) fn add(&mut self, cell: usize, repeat: Repeat) {
        let measured = &mut self.cells[cell];
        measured.bytes_per_s.push(repeat.bytes_per_s);
        measured.requests += repeat.requests;
        if measured.cell.parallelism == 1 {
            measured.latencies_ns.extend(repeat.latencies_ns);
        }
    }

    /// Every cell of the plan, measured or not, ordered by operation, size and parallelism.
    pub fn cells(&self) -> &[CellMeasurement] {
        &self.cells
    }

    /// The percentile of the tail latencies.
    pub fn percentile(&self) -> Percentile {
        self.percentile
    }

    /// True if every cell has all its repeats.
    pub fn is_complete(&self) -> bool {
        self.cells.iter().all(|measured| measured.bytes_per_s.len() == self.repeats)
    }

    /// The figures of each size, in ascending order.
    pub fn by_size(&self) -> Vec<SizeMeasurement> {
        let mut sizes: Vec<Bytes> = self.cells.iter().map(|measured| measured.cell.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut rows = Vec::with_capacity(sizes.len());
        for request in sizes {
            let read = self.for_op(Op::Read, request);
            let write = self.for_op(Op::Write, request);
            rows.push(SizeMeasurement { request, read, write });
        }
        rows
    }

    fn for_op(&self, op: Op, size: Bytes) -> Option<OpMeasurement> {
        let of_op = self.cells.iter().filter(|measured| measured.cell.op == op && measured.cell.size == size);
        let medians: Vec<(&CellMeasurement, Median)> = of_op
            .filter_map(|measured| Some((measured, Median::from_samples(&measured.bytes_per_s)?)))
            .collect();
        let best = medians.iter().map(|(_, median)| median.value).fold(0.0, f64::max);
        let (chosen, median) = medians.iter().find(|(_, median)| median.value >= self.saturation * best)?;
        // Cells are ordered by parallelism, and the smallest one is always 1.
        let single = &medians.first()?.0;
        let last = medians.last()?.0.cell;
        let mut latencies = single.latencies_ns.clone();
        latencies.sort_unstable();
        let bandwidth = ByteRate::from_bytes_per_sec(median.value)?;
        Some(OpMeasurement {
            bandwidth,
            noise: median.relative_noise(),
            requests_per_s: bandwidth.bytes_per_sec() / size.0 as f64,
            parallelism: chosen.cell.parallelism,
            is_growing: last.parallelism > 1 && chosen.cell == last,
            tail: stats::percentile(&latencies, self.percentile).map(|ns| Seconds(ns as f64 / 1e9)),
            tail_samples: latencies.len() as u64,
        })
    }

    /// Returns warnings about the result, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let rows = self.by_size();
        let samples_needed = stats::samples_needed(self.percentile);
        let few_samples = format!(
            "too few requests for {} (ten above it need {samples_needed}); give each cell more time",
            self.percentile
        );
        let mut warnings = Vec::new();
        for (op, name) in [(Op::Read, "reads"), (Op::Write, "writes")] {
            let measured: Vec<(Bytes, OpMeasurement)> =
                rows.iter().filter_map(|row| Some((row.request, row.for_op(op)?))).collect();
            let noise = "noise above 10 %; quiet the machine or give each cell more time";
            warnings.extend(warning(name, &measured, noise, |row| row.noise > NOISE_MAX));
            let growth = "throughput still grows with the parallelism; try more";
            warnings.extend(warning(name, &measured, growth, |row| row.is_growing));
            warnings.extend(warning(name, &measured, &few_samples, |row| {
                row.tail.is_some() && row.tail_samples < samples_needed
            }));
        }
        warnings
    }

    /// Returns the profile of an SSD. It has the bandwidths of all sizes. Its base latencies are the tails of
    /// each size at one outstanding request, a conservative choice: that contains the work of the request
    /// itself. Its queue limits are the requests that saturated the device.
    ///
    /// # Errors
    /// When an operation was not measured for some size, unless `writes` covers it.
    pub fn profile(&self, name: &str, writes: WritesFrom) -> Result<StorageProfile, OperationError> {
        let mut rows = Vec::new();
        for row in self.by_size() {
            let read = row.read.ok_or_else(|| not_measured("read", row.request))?;
            let write = match writes {
                WritesFrom::Measured => row.write.ok_or_else(|| not_measured("write", row.request))?,
                WritesFrom::Reads => read,
            };
            rows.push(ProfileRow { request: row.request, read, write });
        }
        let table = SsdTable::new(rows.iter().map(ProfileRow::bandwidths).collect())
            .map_err(|error| OperationError::input(error.to_string()))?;
        let profile = StorageProfile::new(name, DeviceModel::Ssd(table))
            .with_queue_limits(queue_limits(&rows))
            .with_channels(channels(&rows));
        let tails = rows.iter().filter_map(|row| {
            let [read, write] = [row.read.tail?, row.write.tail?];
            Some(BaseLatencyRow { request: row.request, read, write })
        });
        let base = BaseLatency::by_size(self.percentile, tails);
        Ok(if base.sizes.is_empty() { profile } else { profile.with_base_latency(base) })
    }
}

/// Returns `message` as a sentence that names the sizes for which `applies` holds, if there are any.
fn warning(
    op_name: &str,
    rows: &[(Bytes, OpMeasurement)],
    message: &str,
    applies: impl Fn(&OpMeasurement) -> bool,
) -> Option<String> {
    let affected = rows.iter().filter(|(_, row)| applies(row));
    let sizes: Vec<String> = affected.map(|(size, _)| size.to_string()).collect();
    if sizes.is_empty() {
        None
    } else if sizes.len() == rows.len() {
        Some(format!("{op_name} of every size: {message}"))
    } else {
        Some(format!("{op_name} of {}: {message}", sizes.join(", ")))
    }
}

fn not_measured(op: &str, size: Bytes) -> OperationError {
    OperationError::input(format!("{op}s of {size} were not measured, and a profile needs them"))
}

/// The figures of one size from which a profile is made.
struct ProfileRow {
    request: Bytes,
    read: OpMeasurement,
    write: OpMeasurement,
}

impl ProfileRow {
    fn bandwidths(&self) -> BandwidthRow {
        BandwidthRow { request: self.request, read: self.read.bandwidth, write: self.write.bandwidth }
    }
}

/// Returns the largest number of requests, over all sizes, that saturated the device.
fn channels(rows: &[ProfileRow]) -> u32 {
    let most = rows.iter().map(|row| row.read.parallelism.max(row.write.parallelism)).max();
    most.and_then(|most| u32::try_from(most).ok()).unwrap_or(1)
}

/// Returns the largest numbers of requests and of bytes, over all sizes, that saturated the device.
fn queue_limits(rows: &[ProfileRow]) -> QueueLimits {
    let mut limits =
        QueueLimits { read_requests_max: 1, write_requests_max: 1, read_bytes_max: 1, write_bytes_max: 1 };
    for row in rows {
        let reads = row.read.parallelism as u64;
        let writes = row.write.parallelism as u64;
        limits.read_requests_max = limits.read_requests_max.max(reads);
        limits.write_requests_max = limits.write_requests_max.max(writes);
        limits.read_bytes_max = limits.read_bytes_max.max(reads * row.request.0);
        limits.write_bytes_max = limits.write_bytes_max.max(writes * row.request.0);
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::MeasurementSettings;

    const KIB4: Bytes = Bytes(4096);
    const KIB8: Bytes = Bytes(8192);

    fn plan(ops: &[Op]) -> MeasurementPlan {
        let settings = MeasurementSettings {
            sizes: vec![KIB4, KIB8],
            parallelism: vec![1, 2, 4],
            repeats: 3,
            ..MeasurementSettings::default()
        };
        MeasurementPlan::new(&settings, ops, Bytes(512)).unwrap()
    }

    /// Every cell with the given throughput, three repeats of ±1 %, 1000 latencies of 1..=1000 us each.
    fn measured(ops: &[Op], throughput: impl Fn(MeasurementCell) -> f64) -> Measurement {
        let plan = plan(ops);
        let mut measurement = Measurement::new(&plan);
        for factor in [1.01, 0.99, 1.0] {
            for (at, &cell) in plan.cells().iter().enumerate() {
                let latencies_ns = (1..=1000).rev().map(|us| us * 1000 * cell.size.0 / 4096).collect();
                let bytes_per_s = factor * throughput(cell);
                measurement.add(at, Repeat { bytes_per_s, requests: 1000, latencies_ns });
            }
        }
        measurement
    }

    fn op_factor(op: Op) -> f64 {
        if op == Op::Read { 1.0 } else { 0.5 }
    }

    /// Saturates at two outstanding requests: four give 2 % more.
    fn typical() -> Measurement {
        measured(&[Op::Read, Op::Write], |cell| {
            let scale = [(1, 0.6), (2, 1.0), (4, 1.02)].into_iter().find(|s| s.0 == cell.parallelism);
            scale.unwrap().1 * cell.size.0 as f64 * 1e3 * op_factor(cell.op)
        })
    }

    #[test]
    fn a_row_is_the_smallest_parallelism_that_saturates() {
        let row = typical().by_size()[0];
        let read = row.read.unwrap();
        assert_eq!((row.request, read.parallelism, read.is_growing), (KIB4, 2, false));
        assert_eq!(read.bandwidth.bytes_per_sec(), 4096e3);
        assert_eq!(read.requests_per_s, 1000.0);
        assert!((read.noise - 0.01).abs() < 1e-12);
        // The 999th of 1000 different latencies, three times each.
        assert_eq!((read.tail, read.tail_samples), (Some(Seconds(999e-6)), 3000));
        assert_eq!(row.write.unwrap().bandwidth.bytes_per_sec(), 2048e3);
    }

    #[test]
    fn profile_carries_the_rows_the_tails_and_what_saturated() {
        let profile = typical().profile("nvme", WritesFrom::Measured).unwrap();
        let DeviceModel::Ssd(table) = profile.device() else { panic!("an SSD") };
        assert_eq!(table.rows().iter().map(|row| row.request).collect::<Vec<_>>(), [KIB4, KIB8]);
        assert_eq!(table.rows()[1].write.bytes_per_sec(), 4096e3);
        // 999 and 1,998 µs; a larger size than was measured counts as the slowest.
        let of = |bytes| profile.base_latency(Op::Read, Bytes(bytes)).0;
        assert_eq!(
            [of(1), of(4096), of(4097), of(8192), of(1 << 20)],
            [999e-6, 999e-6, 1998e-6, 1998e-6, 1998e-6]
        );
        let limits = profile.queue_limits().unwrap();
        assert_eq!((limits.read_requests_max, limits.read_bytes_max), (2, 2 * 8192));
    }

    #[test]
    fn a_profile_never_invents_writes() {
        let reads = measured(&[Op::Read], |cell| cell.size.0 as f64 * 1e3);
        let error = reads.profile("x", WritesFrom::Measured).unwrap_err().to_string();
        assert!(error.contains("writes of 4KiB"), "{error}");
        let profile = reads.profile("x", WritesFrom::Reads).unwrap();
        assert_eq!(profile.base_latency(Op::Write, KIB4), profile.base_latency(Op::Read, KIB4));
    }

    #[test]
    fn partial_measurements_say_so() {
        let plan = plan(&[Op::Read]);
        let mut measurement = Measurement::new(&plan);
        assert!(!measurement.is_complete());
        assert!(measurement.by_size().iter().all(|row| row.read.is_none()));
        measurement.add(0, Repeat { bytes_per_s: 1.0, requests: 1, latencies_ns: vec![1] });
        assert!(!measurement.is_complete());
        assert!(measurement.by_size()[0].read.is_some());
        assert!(measurement.profile("x", WritesFrom::Reads).is_err());
        assert!(typical().is_complete());
    }

    #[test]
    fn warnings_name_noise_growth_and_few_samples() {
        let quiet = typical().warnings().join("\n");
        assert!(!quiet.contains("noise") && !quiet.contains("grows"), "{quiet}");
        assert!(quiet.contains("reads of every size: too few requests for 99.9%"), "{quiet}");

        let plan = plan(&[Op::Read]);
        let mut noisy = Measurement::new(&plan);
        for factor in [0.5, 1.0, 1.5] {
            for (at, cell) in plan.cells().iter().enumerate() {
                let bytes_per_s = factor * 1e6 * cell.parallelism as f64;
                noisy.add(at, Repeat { bytes_per_s, requests: 1, latencies_ns: vec![1] });
            }
        }
        let warnings = noisy.warnings().join("\n");
        assert!(warnings.contains("noise above 10 %") && warnings.contains("still grows"), "{warnings}");
    }
}
