use crate::plan::{Cell, Plan};
use crate::run::Repeat;
use crate::stats::{self, Median};
use model::{Op, OperationError};
use units::{ByteRate, Bytes, Percentile, Seconds};
use workload::device::{BandwidthRow, BaseLatency, Device, QueueLimits, SsdTable, StorageProfile};

/// A parallelism saturates a device when it reaches this share of the best throughput.
const SATURATION: f64 = 0.95;
/// Intervals wider than this deserve a warning.
const NOISE_MAX: f64 = 0.10;

/// What was measured of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellResult {
    /// Which one.
    pub cell: Cell,
    /// Throughput of each repeat in bytes per second.
    pub bytes_per_s: Vec<f64>,
    /// Completed requests, all repeats together.
    pub requests: u64,
    /// Response times at one outstanding request in nanoseconds; empty at higher parallelism.
    pub latencies_ns: Vec<u64>,
}

/// Everything that was measured, complete or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    cells: Vec<CellResult>,
    repeats: usize,
    percentile: Percentile,
}

/// What a size sustains for one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpRow {
    /// Median throughput with [`OpRow::parallelism`] outstanding requests.
    pub bandwidth: ByteRate,
    /// Half the width of the median's confidence interval as a fraction of the median.
    pub noise: f64,
    /// The smallest parallelism that reaches 95 % of the best throughput.
    pub parallelism: usize,
    /// Whether the best throughput came with the largest parallelism and well above the one before, so
    /// that more might give more.
    pub growing: bool,
    /// Tail latency at one outstanding request, where that was measured.
    pub tail: Option<Seconds>,
    /// Requests behind [`OpRow::tail`].
    pub tail_samples: u64,
}

impl OpRow {
    /// Requests of `size` per second.
    pub fn requests_per_s(&self, size: Bytes) -> f64 {
        self.bandwidth.bytes_per_sec() / size.0 as f64
    }
}

/// One line of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRow {
    /// Request size.
    pub request: Bytes,
    /// Where reads were measured.
    pub read: Option<OpRow>,
    /// Where writes were measured.
    pub write: Option<OpRow>,
}

/// Where a profile's figures for writes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritesFrom {
    /// The measurement.
    Measured,
    /// Those for reads: right only for workloads that do not write.
    Reads,
}

impl Measurement {
    pub(crate) fn new(plan: &Plan) -> Self {
        let empty = |&cell: &Cell| CellResult {
            cell,
            bytes_per_s: Vec::new(),
            requests: 0,
            latencies_ns: Vec::new(),
        };
        Self {
            cells: plan.cells().iter().map(empty).collect(),
            repeats: plan.repeats(),
            percentile: plan.percentile(),
        }
    }

    pub(crate) fn add(&mut self, cell: usize, repeat: Repeat) {
        let result = &mut self.cells[cell];
        result.bytes_per_s.push(repeat.bytes_per_s);
        result.requests += repeat.requests;
        if result.cell.parallelism == 1 {
            result.latencies_ns.extend(repeat.latencies_ns);
        }
    }

    /// Every cell of the plan, measured or not, by operation, size and parallelism.
    pub fn cells(&self) -> &[CellResult] {
        &self.cells
    }

    /// Percentile of the tail latencies.
    pub fn percentile(&self) -> Percentile {
        self.percentile
    }

    /// Whether every cell has all its repeats.
    pub fn complete(&self) -> bool {
        self.cells.iter().all(|result| result.bytes_per_s.len() == self.repeats)
    }

    /// One row per size, ascending.
    pub fn rows(&self) -> Vec<SizeRow> {
        let mut sizes: Vec<Bytes> = self.cells.iter().map(|result| result.cell.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let row = |request| SizeRow {
            request,
            read: self.op_row(Op::Read, request),
            write: self.op_row(Op::Write, request),
        };
        sizes.into_iter().map(row).collect()
    }

    fn op_row(&self, op: Op, size: Bytes) -> Option<OpRow> {
        let cells = self.cells.iter().filter(|result| result.cell.op == op && result.cell.size == size);
        let medians: Vec<(&CellResult, Median)> =
            cells.filter_map(|result| Some((result, Median::of(&result.bytes_per_s)?))).collect();
        let best = medians.iter().map(|(_, median)| median.value).fold(0.0, f64::max);
        let (chosen, median) = medians.iter().find(|(_, median)| median.value >= SATURATION * best)?;
        let (last, single) = (medians.last()?.0.cell, &medians.first()?.0);
        let mut latencies = single.latencies_ns.clone();
        latencies.sort_unstable();
        Some(OpRow {
            bandwidth: ByteRate::from_bytes_per_sec(median.value)?,
            noise: median.noise(),
            parallelism: chosen.cell.parallelism,
            growing: last.parallelism > 1 && chosen.cell == last,
            tail: stats::percentile(&latencies, self.percentile).map(|ns| Seconds(ns as f64 / 1e9)),
            tail_samples: latencies.len() as u64,
        })
    }

    /// What a reader of the result must know, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let rows = self.rows();
        let of = |op: Op| rows.iter().filter_map(move |row| Some((row.request, row.of(op)?)));
        let mut warnings = Vec::new();
        for (op, name) in [(Op::Read, "reads"), (Op::Write, "writes")] {
            let mut warn = |which: &dyn Fn(&OpRow) -> bool, what: &str| {
                let sizes: Vec<String> =
                    of(op).filter(|(_, row)| which(row)).map(|(size, _)| size.to_string()).collect();
                let all = of(op).count();
                if all > 0 && sizes.len() == all {
                    warnings.push(format!("{name} of every size: {what}"));
                } else if !sizes.is_empty() {
                    warnings.push(format!("{name} of {}: {what}", sizes.join(", ")));
                }
            };
            warn(
                &|row| row.noise > NOISE_MAX,
                "noise above 10 %; quiet the machine or give each cell more time",
            );
            warn(&|row| row.growing, "throughput still grows with the parallelism; try more");
            let enough = stats::samples_for(self.percentile);
            let few = format!(
                "too few requests for {} (ten above it need {enough}); give each cell more time",
                self.percentile
            );
            warn(&|row| row.tail.is_some() && row.tail_samples < enough, &few);
        }
        warnings
    }

    /// The profile of an SSD: the rows' bandwidths; as base latency the largest tail of any size at one
    /// outstanding request (a conservative choice: it contains that request's own work); as queue limits
    /// what saturated the device.
    ///
    /// # Errors
    /// An operation that was not measured for some size, unless `writes` covers it.
    pub fn profile(&self, name: &str, writes: WritesFrom) -> Result<StorageProfile, OperationError> {
        let rows = self.rows();
        let missing = |op: &str, size: Bytes| {
            OperationError::input(format!("{op}s of {size} were not measured, and a profile needs them"))
        };
        let mut pairs = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = row.read.ok_or_else(|| missing("read", row.request))?;
            let write = match writes {
                WritesFrom::Measured => row.write.ok_or_else(|| missing("write", row.request))?,
                WritesFrom::Reads => read,
            };
            pairs.push((row.request, read, write));
        }
        let bandwidth = |&(request, read, write): &(Bytes, OpRow, OpRow)| BandwidthRow {
            request,
            read: read.bandwidth,
            write: write.bandwidth,
        };
        let table = SsdTable::new(pairs.iter().map(bandwidth).collect())
            .map_err(|error| OperationError::input(error.to_string()))?;
        let profile = StorageProfile::new(name, Device::Ssd(table)).with_queue_limits(queue_limits(&pairs));
        let tail = |row: fn(&(Bytes, OpRow, OpRow)) -> OpRow| {
            pairs.iter().filter_map(|pair| row(pair).tail).map(|tail| tail.0).reduce(f64::max)
        };
        Ok(match (tail(|pair| pair.1), tail(|pair| pair.2)) {
            (Some(read), Some(write)) => profile.with_base_latency(BaseLatency {
                percentile: self.percentile,
                read: Seconds(read),
                write: Seconds(write),
            }),
            _ => profile,
        })
    }
}

impl SizeRow {
    /// The figures of `op`, where it was measured.
    pub fn of(&self, op: Op) -> Option<OpRow> {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
    }
}

fn queue_limits(pairs: &[(Bytes, OpRow, OpRow)]) -> QueueLimits {
    let largest = |value: &dyn Fn(&(Bytes, OpRow, OpRow)) -> u64| pairs.iter().map(value).max().unwrap_or(1);
    QueueLimits {
        read_requests_max: largest(&|pair| pair.1.parallelism as u64),
        write_requests_max: largest(&|pair| pair.2.parallelism as u64),
        read_bytes_max: largest(&|pair| pair.1.parallelism as u64 * pair.0.0),
        write_bytes_max: largest(&|pair| pair.2.parallelism as u64 * pair.0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanSettings;

    const KIB4: Bytes = Bytes(4096);
    const KIB8: Bytes = Bytes(8192);

    fn plan(ops: &[Op]) -> Plan {
        let settings = PlanSettings {
            sizes: vec![KIB4, KIB8],
            parallelism: vec![1, 2, 4],
            repeats: 3,
            ..PlanSettings::default()
        };
        Plan::new(&settings, ops, Bytes(512)).unwrap()
    }

    /// Every cell with the given throughput, three repeats of ±1 %, 1000 latencies of 1..=1000 us each.
    fn measured(ops: &[Op], throughput: impl Fn(Cell) -> f64) -> Measurement {
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
        let row = typical().rows()[0];
        let read = row.read.unwrap();
        assert_eq!((row.request, read.parallelism, read.growing), (KIB4, 2, false));
        assert_eq!(read.bandwidth.bytes_per_sec(), 4096e3);
        assert_eq!(read.requests_per_s(row.request), 1000.0);
        assert!((read.noise - 0.01).abs() < 1e-12);
        // The 999th of 1000 different latencies, three times each.
        assert_eq!((read.tail, read.tail_samples), (Some(Seconds(999e-6)), 3000));
        assert_eq!(row.write.unwrap().bandwidth.bytes_per_sec(), 2048e3);
    }

    #[test]
    fn profile_carries_the_rows_the_largest_tail_and_what_saturated() {
        let profile = typical().profile("nvme", WritesFrom::Measured).unwrap();
        let Device::Ssd(table) = profile.device() else { panic!("an SSD") };
        assert_eq!(table.rows().iter().map(|row| row.request).collect::<Vec<_>>(), [KIB4, KIB8]);
        assert_eq!(table.rows()[1].write.bytes_per_sec(), 4096e3);
        assert_eq!(profile.base_latency(Op::Read), Seconds(1998e-6));
        let limits = profile.queue_limits().unwrap();
        assert_eq!((limits.read_requests_max, limits.read_bytes_max), (2, 2 * 8192));
    }

    #[test]
    fn a_profile_never_invents_writes() {
        let reads = measured(&[Op::Read], |cell| cell.size.0 as f64 * 1e3);
        let error = reads.profile("x", WritesFrom::Measured).unwrap_err().to_string();
        assert!(error.contains("writes of 4KiB"), "{error}");
        let profile = reads.profile("x", WritesFrom::Reads).unwrap();
        assert_eq!(profile.base_latency(Op::Write), profile.base_latency(Op::Read));
    }

    #[test]
    fn partial_measurements_say_so() {
        let plan = plan(&[Op::Read]);
        let mut measurement = Measurement::new(&plan);
        assert!(!measurement.complete());
        assert!(measurement.rows().iter().all(|row| row.read.is_none()));
        measurement.add(0, Repeat { bytes_per_s: 1.0, requests: 1, latencies_ns: vec![1] });
        assert!(!measurement.complete());
        assert!(measurement.rows()[0].read.is_some());
        assert!(measurement.profile("x", WritesFrom::Reads).is_err());
        assert!(typical().complete());
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
