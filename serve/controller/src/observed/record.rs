//! The requests of one workload in sliding windows.
//!
//! The last five minutes are kept in periods of five seconds and the last six hours in periods of a minute, of which the
//! last hour has latencies. A busy workload takes at most about 240 KiB, and usually a tenth of it: 60 + 61 periods with
//! at most 98 buckets of 16 bytes, and 361 without.

use super::counts::Counts;
use super::live::LiveRecord;
use std::collections::VecDeque;
use verify::CountedPeriod;

const S: u64 = 1_000_000_000;
/// Length of short periods, nanoseconds.
const SHORT_NS: u64 = 5 * S;
/// Length of long periods, nanoseconds.
const LONG_NS: u64 = 60 * S;

/// Windows, nanoseconds: those of the usual alerts on burn rates.
pub(super) const FIVE_MINUTES: u64 = 300 * S;
pub(super) const HALF_HOUR: u64 = 1_800 * S;
pub(super) const HOUR: u64 = 3_600 * S;
pub(super) const SIX_HOURS: u64 = 6 * HOUR;

/// Requests of a workload, by the time of their report.
#[derive(Debug, Clone)]
pub(super) struct WorkloadRecord {
    /// Instant from which its requests are counted.
    pub(super) since: u64,
    /// Instant of the latest report with it.
    pub(super) reported_at: u64,
    /// Instant of the latest verdict event in this run.
    pub(super) told_at: Option<u64>,
    /// Instants of the latest event of each alert on its burn rate in this run.
    pub(super) burns_told_at: [Option<u64>; 2],
    pub(super) total: Counts,
    pub(super) live: LiveRecord,
    short: VecDeque<Period>,
    long: VecDeque<Period>,
}

/// Numbers of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LateCounts {
    pub(super) requests: u64,
    pub(super) late: u64,
}

/// A period with requests.
#[derive(Debug, Clone)]
struct Period {
    begin: u64,
    counts: Counts,
}

impl WorkloadRecord {
    pub(super) fn new(since: u64) -> Self {
        Self {
            since,
            reported_at: since,
            told_at: None,
            burns_told_at: [None; 2],
            total: Counts::default(),
            live: LiveRecord::new(),
            short: VecDeque::new(),
            long: VecDeque::new(),
        }
    }

    /// Adds requests that were reported at `now`.
    pub(super) fn add(&mut self, now: u64, increment: &Counts) {
        self.reported_at = now;
        if increment.requests > 0 {
            self.total.add(increment);
            add_to(&mut self.short, now - now % SHORT_NS, increment);
            add_to(&mut self.long, now - now % LONG_NS, increment);
        }
        forget(&mut self.short, now, FIVE_MINUTES, SHORT_NS);
        forget(&mut self.long, now, SIX_HOURS, LONG_NS);
        // Latencies are judged over an hour.
        let old = self.long.iter_mut().take_while(|period| period.begin + HOUR + LONG_NS <= now);
        old.for_each(|period| period.counts.latencies.clear());
    }

    /// Returns the counts of a window that ends now; it begins up to one period before.
    pub(super) fn window(&self, now: u64, window: u64) -> Counts {
        let mut counts = Counts::default();
        self.periods(now, window).for_each(|period| counts.add(&period.counts));
        counts
    }

    /// Returns the numbers of requests and of late ones of a window, as [`window`](Self::window) has them.
    pub(super) fn late(&self, now: u64, window: u64) -> LateCounts {
        let mut sum = LateCounts::default();
        for Period { counts, .. } in self.periods(now, window) {
            sum.requests += counts.requests;
            sum.late += counts.late;
        }
        sum
    }

    /// Returns the requests of a window in order of time, with the number of those that `over` counts.
    pub(super) fn counted(&self, now: u64, window: u64, over: fn(&Counts) -> u64) -> Vec<CountedPeriod> {
        let counted = |period: &Period| CountedPeriod {
            requests: period.counts.requests,
            over: over(&period.counts),
            latencies: period.counts.latencies.ends(),
        };
        self.periods(now, window).map(counted).collect()
    }

    /// Periods of a window: short ones where there are, long ones before.
    fn periods(&self, now: u64, window: u64) -> impl Iterator<Item = &Period> {
        let first_short = now.saturating_sub(FIVE_MINUTES) / SHORT_NS * SHORT_NS;
        // Short ones replace whole long ones.
        let change =
            if window <= FIVE_MINUTES { first_short } else { first_short.div_ceil(LONG_NS) * LONG_NS };
        let is_in = move |begin: u64, length: u64| begin + length + window > now;
        let long = self.long.iter().filter(move |period| {
            window > FIVE_MINUTES && period.begin < change && is_in(period.begin, LONG_NS)
        });
        let short =
            self.short.iter().filter(move |period| period.begin >= change && is_in(period.begin, SHORT_NS));
        long.chain(short)
    }
}

fn add_to(periods: &mut VecDeque<Period>, begin: u64, increment: &Counts) {
    match periods.back_mut() {
        Some(last) if last.begin == begin => last.counts.add(increment),
        _ => periods.push_back(Period { begin, counts: increment.clone() }),
    }
}

/// Forgets periods that ended before the window.
fn forget(periods: &mut VecDeque<Period>, now: u64, window: u64, length: u64) {
    while periods.front().is_some_and(|first| first.begin + length + window <= now) {
        periods.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::super::latencies::LatencyCounts;
    use super::*;

    fn increment(requests: u64) -> Counts {
        let mut latencies = LatencyCounts::default();
        latencies.add(Some(1_000_000), requests);
        Counts { requests, late: requests / 2, latencies, ..Counts::default() }
    }

    #[test]
    fn every_window_has_the_requests_of_its_time_once() {
        let mut record = WorkloadRecord::new(0);
        let mut told = Vec::new();
        for at in (3..8 * 3600).step_by(7).map(|s| s * S) {
            record.add(at, &increment(10));
            told.push(at);
            for window in [FIVE_MINUTES, HALF_HOUR, HOUR, SIX_HOURS] {
                let counts = record.window(at, window);
                let within =
                    |slack: u64| 10 * told.iter().filter(|told| **told + window + slack > at).count() as u64;
                let allowed = within(0)..=within(LONG_NS);
                assert!(allowed.contains(&counts.requests), "{at} {window}: {} {allowed:?}", counts.requests);
                assert_eq!(counts.late, counts.requests / 2);
                let late = LateCounts { requests: counts.requests, late: counts.late };
                assert_eq!(record.late(at, window), late);
            }
        }
        assert_eq!(record.total.requests, 10 * told.len() as u64);
        assert!(record.short.len() <= 61 && record.long.len() <= 361, "memory is bounded");
        let with_latencies = record.long.iter().filter(|period| !period.counts.latencies.ends().is_empty());
        assert!(with_latencies.count() <= 62);
        // A workload that says nothing more has no requests in any window.
        record.add(20 * HOUR, &Counts::default());
        assert_eq!(record.window(20 * HOUR, SIX_HOURS).requests, 0);
    }

    #[test]
    fn the_hour_is_judged_in_its_order() {
        let mut record = WorkloadRecord::new(0);
        for at in (0..1000).map(|s| s * S) {
            record.add(at, &increment(s_of(at)));
        }
        let periods = record.counted(999 * S, HOUR, |counts| counts.late);
        assert_eq!(periods.iter().map(|period| period.requests).sum::<u64>(), (0..1000).sum::<u64>());
        assert!(periods.windows(2).all(|pair| pair[0].requests > 0 && pair[1].requests > 0));
        assert!(periods.len() > 60, "the last five minutes are in short periods: {}", periods.len());
    }

    fn s_of(at: u64) -> u64 {
        at / S
    }
}
