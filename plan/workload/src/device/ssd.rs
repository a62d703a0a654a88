//! SSDs: the work of a request depends on its size and direction, as a measured table says.

use super::error::ProfileError;
use model::{Op, Request};
use units::{ByteRate, Bytes, Work};

/// Requests are multiples of a sector on nearly every system; the work of these comes from a lookup table.
const SECTOR: u64 = 512;
/// Work is precomputed up to this request size: 32 KiB in all, which stays in the nearest cache.
const PRECOMPUTED_MAX: u64 = 1 << 20;
const PICOS_PER_SEC: f64 = 1e12;
/// Covers the five roundings of [`BandwidthInterval::work`], so that the result is never below the exact value.
const OUTWARD: f64 = 1.0 + 4.0 * f64::EPSILON;

/// The throughput of a device at saturation for requests of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandwidthRow {
    /// The size of every request.
    pub request: Bytes,
    /// The throughput when every request is a read.
    pub read: ByteRate,
    /// The throughput when every request is a write.
    pub write: ByteRate,
}

impl BandwidthRow {
    /// The throughput when every request is `op`.
    pub fn bandwidth(&self, op: Op) -> ByteRate {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
    }
}

/// An SSD as a table of bandwidth by request size (thesis §2.3.2, Figure 2.3): request sizes are positive
/// and strictly ascending, and there is at least one row.
#[derive(Debug, Clone, PartialEq)]
pub struct SsdTable {
    rows: Vec<BandwidthRow>,
}

impl SsdTable {
    /// Creates a table from rows, after checking them.
    ///
    /// # Errors
    /// When there are no rows, a size is zero, or sizes do not ascend.
    pub fn new(rows: Vec<BandwidthRow>) -> Result<Self, ProfileError> {
        let Some(first) = rows.first() else {
            return Err(ProfileError::new("the bandwidth table is empty: expected at least one row"));
        };
        if first.request.0 == 0 {
            return Err(ProfileError::new(
                "bandwidth table, row 1: request size 0, expected at least 1 byte",
            ));
        }
        match rows.windows(2).position(|pair| pair[0].request >= pair[1].request) {
            Some(at) => Err(ProfileError::new(format_args!(
                "bandwidth table, row {}: request size {} after {}, expected ascending sizes",
                at + 2,
                rows[at + 1].request.0,
                rows[at].request.0
            ))),
            None => Ok(Self { rows }),
        }
    }

    /// The rows in ascending order of request size.
    pub fn rows(&self) -> &[BandwidthRow] {
        &self.rows
    }

    /// Device time of a request: size / bandwidth(size), the inverse of the throughput in requests per
    /// second (thesis §2.3.2), with the bandwidth interpolated linearly between rows and constant outside
    /// the table. In picoseconds, rounded up: never below the exact value and at most 1 ps plus one part
    /// in 10^15 above it. A request without payload has no work.
    pub fn work(&self, op: Op, size: Bytes) -> Work {
        self.interval(op, size).work(size)
    }

    /// The two rows around `size`, or one row twice outside the table.
    fn interval(&self, op: Op, size: Bytes) -> BandwidthInterval {
        let above = self.rows.partition_point(|row| row.request < size);
        let low = &self.rows[above.saturating_sub(1)];
        let high = &self.rows[above.min(self.rows.len() - 1)];
        BandwidthInterval {
            sizes: (low.request.0, high.request.0),
            rates: (low.bandwidth(op).bytes_per_sec(), high.bandwidth(op).bytes_per_sec()),
        }
    }
}

/// Two neighbouring rows of the table, for one operation.
struct BandwidthInterval {
    sizes: (u64, u64),
    rates: (f64, f64),
}

impl BandwidthInterval {
    fn work(&self, size: Bytes) -> Work {
        let bytes = size.0 as f64;
        let span = (self.sizes.1 - self.sizes.0) as f64;
        let seconds = if span == 0.0 {
            bytes / self.rates.0
        } else {
            let weighted =
                self.rates.0 * (self.sizes.1 - size.0) as f64 + self.rates.1 * (size.0 - self.sizes.0) as f64;
            bytes * span / weighted
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates: an absurd size is an absurd, not a small, amount of work"
        )]
        Work((seconds * PICOS_PER_SEC * OUTWARD).ceil() as u64)
    }
}

/// Converts requests to work; the work of whole sectors is precomputed.
#[derive(Debug, Clone)]
pub(crate) struct SsdWork {
    table: SsdTable,
    /// The work of reads and writes of `index · SECTOR` bytes.
    sectors: Vec<[Work; 2]>,
}

impl SsdWork {
    pub(crate) fn new(table: &SsdTable) -> Self {
        let sizes = (0..=PRECOMPUTED_MAX / SECTOR).map(|sector| Bytes(sector * SECTOR));
        let sectors = sizes.map(|size| [Op::Read, Op::Write].map(|op| table.work(op, size))).collect();
        Self { table: table.clone(), sectors }
    }

    pub(crate) fn work(&self, request: &Request) -> Work {
        let sector = request.size.0 / SECTOR;
        let rest = request.size.0 % SECTOR;
        let known = usize::try_from(sector).ok().filter(|_| rest == 0).and_then(|at| self.sectors.get(at));
        known.map_or_else(|| self.table.work(request.op, request.size), |work| work[request.op as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::testing::request;
    use proptest::prelude::*;

    fn row(request: u64, read: f64, write: f64) -> BandwidthRow {
        let rate = |r| ByteRate::from_bytes_per_sec(r).unwrap();
        BandwidthRow { request: Bytes(request), read: rate(read), write: rate(write) }
    }

    /// 4 KiB at 1000 requests/s, 8 KiB at 1000 requests/s, 64 KiB at 250 requests/s; writes four times slower.
    fn table() -> SsdTable {
        let rows = [(4096, 4_096_000.0), (8192, 8_192_000.0), (65_536, 16_384_000.0)];
        SsdTable::new(rows.map(|(size, rate)| row(size, rate, rate / 4.0)).to_vec()).unwrap()
    }

    fn assert_picos(work: Work, exact: u64) {
        assert!((exact..=exact + 1).contains(&work.0), "{work:?} for exactly {exact} ps");
    }

    #[test]
    fn work_is_the_inverse_of_requests_per_second() {
        let ms = 1_000_000_000;
        for (op, size, picos) in [
            (Op::Read, 4096, ms),
            (Op::Write, 4096, 4 * ms),
            (Op::Read, 8192, ms),
            // Halfway in size is halfway in bandwidth: 6144 / 6,144,000.
            (Op::Read, 6144, ms),
            (Op::Read, 65_536, 4 * ms),
            // Outside the table the bandwidth stays.
            (Op::Read, 512, ms / 8),
            (Op::Read, 655_360, 40 * ms),
            // 244,140.625 ps.
            (Op::Read, 1, 244_141),
        ] {
            assert_picos(table().work(op, Bytes(size)), picos);
        }
        assert_eq!(table().work(Op::Read, Bytes(0)), Work::ZERO);
    }

    #[test]
    fn tables_that_mean_nothing_are_refused() {
        for (sizes, part) in [
            (vec![], "empty"),
            (vec![0], "row 1"),
            (vec![512, 1024, 1024], "row 3: request size 1024 after 1024"),
            (vec![512, 256], "row 2: request size 256 after 512"),
        ] {
            let rows = sizes.into_iter().map(|size| row(size, 1e6, 1e6)).collect();
            let message = SsdTable::new(rows).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    /// ⌈size / bandwidth⌉ in picoseconds, by integers alone; bandwidths are in quarters of a byte per second.
    fn exact_picos(rows: &[(u64, u64)], size: u64) -> u128 {
        let at = |s: u64| rows.iter().find(|row| row.0 == s).map(|row| row.1);
        let below = rows.iter().rev().find(|row| row.0 < size);
        let above = rows.iter().find(|row| row.0 > size);
        let (numerator, span) = match (at(size), below, above) {
            (Some(rate), _, _) | (None, None, Some(&(_, rate))) | (None, Some(&(_, rate)), None) => (rate, 1),
            (None, Some(&(s0, r0)), Some(&(s1, r1))) => (r0 * (s1 - size) + r1 * (size - s0), s1 - s0),
            (None, None, None) => unreachable!("the table is not empty"),
        };
        (u128::from(size) * 4_000_000_000_000 * u128::from(span)).div_ceil(u128::from(numerator))
    }

    prop_compose! {
        fn any_rows()(rows in prop::collection::btree_map(1u64..1 << 21, 1u64..1 << 36, 1..9))
            -> Vec<(u64, u64)> { rows.into_iter().collect() }
    }

    fn table_of(rows: &[(u64, u64)]) -> SsdTable {
        let quarters = |q| q as f64 / 4.0;
        SsdTable::new(rows.iter().map(|&(s, q)| row(s, quarters(q), quarters(q))).collect()).unwrap()
    }

    proptest! {
        #[test]
        fn agrees_with_exact_rationals_from_above(rows in any_rows(), size in 0u64..1 << 22) {
            let work = u128::from(table_of(&rows).work(Op::Write, Bytes(size)).0);
            let exact = exact_picos(&rows, size);
            prop_assert!(work >= exact && work - exact <= 1 + exact / 500_000_000_000_000, "{work} for {exact}");
        }

        #[test]
        fn bandwidth_lies_between_its_neighbours(rows in any_rows(), size in 1u64..1 << 22) {
            let work = table_of(&rows).work(Op::Read, Bytes(size)).0 as f64;
            let rates = || rows.iter().map(|&(_, q)| q as f64 / 4.0);
            let low = rates().fold(f64::MAX, f64::min);
            let high = rates().fold(0.0, f64::max);
            let picos = size as f64 * 1e12;
            prop_assert!(work >= picos / high && work <= (picos / low) * (1.0 + 1e-15) + 1.0);
            prop_assert!(work > 0.0);
        }

        #[test]
        fn beyond_the_table_work_grows_with_size(rows in any_rows(), more in 1u64..1 << 20) {
            let table = table_of(&rows);
            let last = rows.last().unwrap().0;
            prop_assert!(table.work(Op::Read, Bytes(last + more)) > table.work(Op::Read, Bytes(last)));
        }

        #[test]
        fn lookup_is_the_same_function(rows in any_rows(), size in 0u64..1 << 13, sectors: bool, write: bool) {
            let table = table_of(&rows);
            let size = if sectors { size * SECTOR } else { size };
            let op = if write { Op::Write } else { Op::Read };
            prop_assert_eq!(SsdWork::new(&table).work(&request(op, size)), table.work(op, Bytes(size)));
        }
    }
}
