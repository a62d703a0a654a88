//! Scan of consecutive cells of time for periods in which requests may be late, and for those requests.
//!
//! The header of [`ArrivedWork`](super::arrived_work::ArrivedWork)'s file has the proof.

use std::ops::Range;

/// Arrivals among which there may be a late one; nanoseconds from the beginning of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BusyRun {
    /// When the replay begins: there is an instant at which the system is idle within a coarse cell from here.
    pub(super) from: u64,
    /// An upper bound of the unfinished work at `from`; `None` where no idle instant is known there.
    pub(super) level: Option<u64>,
    /// When the arrivals begin among which there may be a late one.
    pub(super) first: u64,
    /// No latency is longer than this, nanoseconds.
    pub(super) longest: u64,
    /// The end of the arrivals, exclusive.
    pub(super) end: u64,
}

/// A cell as it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellStart {
    pub(super) cell: u64,
    /// An upper bound of the unfinished work, nanoseconds.
    pub(super) level: u64,
    /// True if an instant of the cell is known to be idle.
    pub(super) sees_idle: bool,
}

/// A period in which requests may be late, by its cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatePeriod {
    pub(super) start: CellStart,
    /// The end of the cell in which the system is idle again, exclusive; `None` where that is not known.
    pub(super) end: Option<u64>,
    /// No latency is longer than this, nanoseconds.
    pub(super) longest: u64,
}

/// The cells of a period in which late requests may arrive.
#[derive(Debug, Clone)]
pub(super) struct LateCells {
    /// From the first one to the last one.
    pub(super) arrivals: Range<u64>,
    /// No latency is longer than this, nanoseconds.
    pub(super) longest: u64,
}

impl LateCells {
    pub(super) fn busy_run(self, period: LatePeriod, scan: CellScan) -> BusyRun {
        let CellStart { cell, level, sees_idle } = period.start;
        // A request that arrives less than the threshold before the system is empty is in time.
        let left_by = period.end.map_or(u64::MAX, |end| (end << scan.bits) - scan.threshold);
        let end = self.arrivals.end.checked_mul(1 << scan.bits).map_or(left_by, |end| end.min(left_by));
        BusyRun {
            from: cell << scan.bits,
            level: sees_idle.then_some(level),
            first: self.arrivals.start << scan.bits,
            longest: self.longest.max(scan.threshold),
            end,
        }
    }
}

/// A look at cells one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellScan {
    /// The length of a cell in nanoseconds, as a power of two.
    pub(super) bits: u32,
    /// The end of the arrivals, nanoseconds, exclusive.
    pub(super) close: u64,
    /// The latency above which a request is late, nanoseconds.
    pub(super) threshold: u64,
    /// True if the system is known to be idle by the end of the last cell.
    pub(super) ends_idle: bool,
}

impl CellScan {
    /// Tells of each period of these cells, from the one at `begin` on, in which a latency may exceed the threshold.
    pub(super) fn periods(self, begin: CellStart, cells: &[u64], mut found: impl FnMut(LatePeriod)) {
        let cell = 1u64 << self.bits;
        let mut start = begin;
        let mut level = begin.level;
        let mut next = begin.cell;
        // The work that was there or has arrived since the start.
        let mut since_idle = level;
        let longest =
            |start: CellStart, since_idle: u64, end: u64| since_idle.min((end - start.cell) << self.bits);
        for &work in cells {
            (since_idle, next) = (since_idle + work, next + 1);
            if level + work < cell {
                let longest = longest(start, since_idle, next);
                if longest > self.threshold {
                    found(LatePeriod { start, end: Some(next), longest });
                }
                (start, since_idle) = (CellStart { cell: next - 1, level, sees_idle: true }, work);
                if start.cell << self.bits >= self.close {
                    return;
                }
            }
            level = level.saturating_sub(cell) + work;
        }
        // Arrivals after the last cell are not known otherwise.
        let end = self.ends_idle.then_some(next);
        let longest = end.map_or(u64::MAX, |end| longest(start, since_idle, end));
        if longest > self.threshold {
            found(LatePeriod { start, end, longest });
        }
    }
}

/// The work in successive cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandCells<'c> {
    /// Work of a band and those before it, nanoseconds.
    pub(super) cells: &'c [u64],
    /// Work of those before it alone, nanoseconds.
    pub(super) before: &'c [u64],
    /// The number of the first cell.
    pub(super) first: u64,
}

impl BandCells<'_> {
    /// Returns the cells of a period in which a late request may arrive; `None` if there are none.
    /// `is_in_order` states that no request of the band overtakes another.
    pub(super) fn late_cells(
        &self,
        scan: CellScan,
        period: LatePeriod,
        is_in_order: bool,
    ) -> Option<LateCells> {
        if is_in_order {
            return self.late_in_order(scan, period);
        }
        let arrivals = period.start.cell..period.end.unwrap_or(u64::MAX);
        Some(LateCells { arrivals, longest: period.longest })
    }

    fn late_in_order(&self, scan: CellScan, period: LatePeriod) -> Option<LateCells> {
        let CellScan { bits, threshold, .. } = scan;
        let within = |cell: u64| usize::try_from(cell - self.first).expect("an index");
        let of_period = within(period.start.cell)..period.end.map_or(self.cells.len(), within);
        let [cells, before] = [&self.cells[of_period.clone()], &self.before[of_period]];
        let cell = 1u64 << bits;
        // Number of cells that begin before a request that arrives in a cell can be late.
        let window = usize::try_from(threshold.div_ceil(cell)).unwrap_or(usize::MAX);
        let mut level = period.start.level;
        let mut to_come = 0u64;
        let mut counted = 0;
        let mut left = before.iter().sum::<u64>();
        let mut late: Option<LateCells> = None;
        for (index, (number, &work)) in (period.start.cell..).zip(cells).enumerate() {
            let until = index.saturating_add(window).saturating_add(1);
            to_come += before[counted..until.min(before.len())].iter().sum::<u64>();
            counted = until.min(before.len());
            to_come -= before[index];
            left -= before[index];
            let is_known = period.end.is_some() || until <= before.len();
            if !is_known || level + work + to_come > threshold {
                // Everything of bands before it that comes until all have left.
                let by_work = if period.end.is_some() { level + work + left } else { u64::MAX };
                let by_time = period.end.map_or(u64::MAX, |end| (end - number) << bits);
                let longest = by_work.min(by_time).min(period.longest);
                let earlier = late.get_or_insert(LateCells { arrivals: number..number, longest });
                earlier.arrivals.end = number + 1;
                earlier.longest = earlier.longest.max(longest);
            }
            level = level.saturating_sub(cell) + work;
        }
        if period.end.is_none() {
            // Arrivals after the last cell are unknown.
            let behind = period.start.cell + cells.len() as u64;
            let open = late.get_or_insert(LateCells { arrivals: behind..behind, longest: u64::MAX });
            (open.arrivals.end, open.longest) = (u64::MAX, u64::MAX);
        }
        late
    }
}
